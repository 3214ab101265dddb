package reduction

import (
	"io"
	"strconv"
	"strings"
)

// ReadSource returns the text of a program for Parse. Of an endless one it reads one byte more than Parse takes, so
// that Parse refuses it.
func ReadSource(r io.Reader) (string, error) {
	source, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	return string(source), err
}

// Parse reads a program and checks it: names, types, the number of indices, that
// left sides and domains are affine, and that domains are bounded. It is the only
// way to make a Program.
func Parse(source string) (*Program, error) {
	if len(source) > maxSource {
		return nil, errorf(Pos{1, 1}, "more than %d bytes of source; give a smaller program", maxSource)
	}
	source = strings.TrimPrefix(source, "\ufeff") // the mark of some editors
	p := &parser{lexer: lexer{src: source, line: 1, column: 1}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	prog := &Program{Sizes: map[string]int64{}, byName: map[string]*Array{}}
	for p.tok.kind != end {
		if err := p.declaration(prog); err != nil {
			return nil, err
		}
	}
	if err := check(prog); err != nil {
		return nil, err
	}
	return prog, nil
}

// parser reads declarations and statements by recursive descent with one token
// in hand.
type parser struct {
	lexer lexer
	tok   token
	depth int // of the expression
}

// advance takes the next token in hand.
func (p *parser) advance() (err error) {
	p.tok, err = p.lexer.next()
	return err
}

// is reports whether the token in hand is this symbol or word.
func (p *parser) is(text string) bool { return p.tok.kind != end && p.tok.text == text }

// accept takes a symbol or word if it comes next.
func (p *parser) accept(text string) (bool, error) {
	if !p.is(text) {
		return false, nil
	}
	return true, p.advance()
}

// expect takes a symbol or word that has to come next.
func (p *parser) expect(text string) error {
	if !p.is(text) {
		return errorf(p.tok.Pos, "%v, want '%s'", p.tok, text)
	}
	return p.advance()
}

// name takes an identifier; what says for what.
func (p *parser) name(what string) (string, Pos, error) {
	t := p.tok
	if t.kind != identifier {
		return "", t.Pos, errorf(t.Pos, "%v, want the name of %s", t, what)
	}
	return t.text, t.Pos, p.advance()
}

// list reads items that commas separate.
func (p *parser) list(item func() error) error {
	for {
		if err := item(); err != nil {
			return err
		}
		if more, err := p.accept(","); err != nil || !more {
			return err
		}
	}
}

// bracketed reads a list of items in brackets, which may be empty.
func (p *parser) bracketed(item func() error) error {
	if err := p.expect("["); err != nil {
		return err
	}
	if done, err := p.accept("]"); err != nil || done {
		return err
	}
	if err := p.list(item); err != nil {
		return err
	}
	return p.expect("]")
}

// declaration reads one declaration or statement into prog.
func (p *parser) declaration(prog *Program) error {
	var err error
	switch word := p.tok; word.text {
	case "param":
		err = p.params(prog)
	case "size":
		err = p.sizes(prog)
	case "input", "array":
		err = p.arrays(prog, word.text == "input")
	case "output":
		err = p.outputs(prog)
	default:
		err = p.statement(prog)
	}
	if err != nil {
		return err
	}
	return p.expect(";")
}

func (p *parser) params(prog *Program) error {
	if err := p.advance(); err != nil {
		return err
	}
	err := p.list(func() error {
		name, at, err := p.name("a parameter")
		prog.Params = append(prog.Params, Param{at, name})
		return err
	})
	if err != nil {
		return err
	}
	known, err := p.accept(":")
	if err != nil || !known {
		return err
	}
	prog.Context, err = p.chains(prog.Context)
	return err
}

func (p *parser) sizes(prog *Program) error {
	if err := p.advance(); err != nil {
		return err
	}
	return p.list(func() error {
		name, at, err := p.name("a parameter")
		if err != nil {
			return err
		}
		if _, ok := prog.Sizes[name]; ok {
			return errorf(at, "the size of %s is given twice", name)
		}
		if err := p.expect("="); err != nil {
			return err
		}
		value, err := p.affine()
		if err != nil {
			return err
		}
		if !value.constant() {
			return errorf(value.Pos, "the size of %s is not a number", name)
		}
		prog.Sizes[name] = value.Constant
		return nil
	})
}

func (p *parser) arrays(prog *Program, input bool) error {
	if err := p.advance(); err != nil {
		return err
	}
	var typ Type
	switch {
	case p.is("int"):
		typ = Int
	case p.is("float"):
		typ = Float
	default:
		return errorf(p.tok.Pos, "%v, want 'int' or 'float'", p.tok)
	}
	if err := p.advance(); err != nil {
		return err
	}
	return p.list(func() error {
		a := &Array{Type: typ, Input: input, Scalar: true}
		var err error
		if a.Name, a.Pos, err = p.name("an array"); err != nil {
			return err
		}
		if p.is("[") {
			a.Scalar = false
			if err := p.bracketed(func() error { return p.extent(a) }); err != nil {
				return err
			}
		}
		prog.Arrays = append(prog.Arrays, a)
		ranged, err := p.accept("in")
		if err != nil || !ranged {
			return err
		}
		a.Range, err = p.valueRange()
		return err
	})
}

// extent reads the extent of an index, and whether the array is kept in place along it.
func (p *parser) extent(a *Array) error {
	if err := p.affineInto(&a.Extents)(); err != nil {
		return err
	}
	step, ok := foldWords[p.tok.text]
	switch {
	case !ok:
		return nil
	case a.Input:
		return errorf(p.tok.Pos, "%s is an input; only an array that is computed is kept in place", a.Name)
	case a.Fold != nil:
		return errorf(p.tok.Pos, "%s is kept in place along index %d already; want one index", a.Name, a.Fold.Index+1)
	}
	a.Fold = &Fold{len(a.Extents) - 1, step}
	return p.advance()
}

// valueRange reads [low,high).
func (p *parser) valueRange() (*Range, error) {
	var r Range
	if err := p.expect("["); err != nil {
		return nil, err
	}
	var err error
	if r.Low, err = p.affine(); err != nil {
		return nil, err
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	if r.High, err = p.affine(); err != nil {
		return nil, err
	}
	return &r, p.expect(")")
}

func (p *parser) outputs(prog *Program) error {
	if err := p.advance(); err != nil {
		return err
	}
	return p.list(func() error {
		name, at, err := p.name("an array")
		if err != nil {
			return err
		}
		if contains(prog.Outputs, name) {
			return errorf(at, "%s is an output twice", name)
		}
		prog.Outputs = append(prog.Outputs, name)
		return nil
	})
}

func (p *parser) statement(prog *Program) error {
	if len(prog.Statements) == MaxStatements {
		return errorf(p.tok.Pos, "more than %d statements", MaxStatements)
	}
	s := &Statement{}
	var err error
	if s.Array, s.Pos, err = p.name("an array, or param, size, input, array or output"); err != nil {
		return err
	}
	if err := p.bracketed(p.affineInto(&s.Index)); err != nil {
		return err
	}
	if err := p.operator(s); err != nil {
		return err
	}
	if s.Body, err = p.expr(); err != nil {
		return err
	}
	if err := p.domain(s); err != nil {
		return err
	}
	prog.Statements = append(prog.Statements, s)
	guarded, err := p.accept("if")
	for err == nil && guarded {
		var g Expr
		if g, err = p.expr(); err != nil {
			return err
		}
		s.Guards = append(s.Guards, g)
		guarded, err = p.accept("and")
	}
	return err
}

// operator reads what stands between the left side and the body.
func (p *parser) operator(s *Statement) error {
	at := p.tok
	switch at.text {
	case "=", "+=", "*=":
		s.Op = map[string]Operator{"=": Assign, "+=": Add, "*=": Multiply}[at.text]
		return p.advance()
	case "max", "min", "lse":
		s.Op = map[string]Operator{"max": Max, "min": Min, "lse": LogSumExp}[at.text]
		if err := p.advance(); err != nil {
			return err
		}
		return p.expect("=")
	case "draw", "drawlog":
		s.Op = map[string]Operator{"draw": Draw, "drawlog": DrawLog}[at.text]
		if err := p.advance(); err != nil {
			return err
		}
		if err := p.expect("("); err != nil {
			return err
		}
		var err error
		if s.Uniform, err = p.expr(); err != nil {
			return err
		}
		if err := p.expect(")"); err != nil {
			return err
		}
		return p.expect("=")
	}
	return errorf(at.Pos, "%v, want =, +=, *=, max=, min=, lse=, draw(u)= or drawlog(u)=", at)
}

// domain reads : { [dims] : constraints }.
func (p *parser) domain(s *Statement) error {
	for _, t := range []string{":", "{"} {
		if err := p.expect(t); err != nil {
			return err
		}
	}
	err := p.bracketed(func() error {
		name, at, err := p.name("a dimension")
		if err == nil && contains(s.Dims, name) {
			err = errorf(at, "dimension %s is there twice", name)
		}
		s.Dims = append(s.Dims, name)
		return err
	})
	if err != nil {
		return err
	}
	if err := p.expect(":"); err != nil {
		return err
	}
	if !p.is("}") {
		if s.Domain, err = p.chains(nil); err != nil {
			return err
		}
	}
	return p.expect("}")
}

// chains reads constraints such as 0 <= i < N, i != j and adds them to list.
func (p *parser) chains(list []Chain) ([]Chain, error) {
	err := p.list(func() error {
		c := Chain{Pos: p.tok.Pos}
		for {
			a, err := p.affine()
			if err != nil {
				return err
			}
			c.Terms = append(c.Terms, a)
			r, ok := relation(p.tok)
			if !ok {
				break
			}
			c.Relations = append(c.Relations, r)
			if err := p.advance(); err != nil {
				return err
			}
		}
		if len(c.Relations) == 0 {
			return errorf(p.tok.Pos, "%v, want <, <=, >, >=, = or !=", p.tok)
		}
		list = append(list, c)
		return nil
	})
	return list, err
}

func relation(t token) (Relation, bool) {
	if t.kind == symbol {
		for r := Less; r <= NotEqual; r++ {
			if t.text == r.String() {
				return r, true
			}
		}
	}
	return 0, false
}

// affine reads an affine expression.
func (p *parser) affine() (Affine, error) {
	e, err := p.sum()
	if err != nil {
		return Affine{}, err
	}
	return affine(e)
}

// affineInto reads an affine expression and adds it to list.
func (p *parser) affineInto(list *[]Affine) func() error {
	return func() error {
		a, err := p.affine()
		*list = append(*list, a)
		return err
	}
}

// literal reads the number in hand.
func literal(t token) (*Number, error) {
	n := &Number{Pos: t.Pos, Integer: t.kind == integer}
	var err error
	if n.Integer {
		n.I, err = strconv.ParseInt(t.text, 10, 64)
	} else {
		n.F, err = strconv.ParseFloat(t.text, 64)
	}
	if err != nil {
		return nil, errorf(t.Pos, "%s does not fit into 64 bits", t.text)
	}
	return n, nil
}
