package simt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the text of a module and verifies it. Errors name the line. A line that
// starts with # is a comment.
func Parse(text string) (*Module, error) {
	p := &parser{m: &Module{}, lines: strings.Split(text, "\n"), types: map[Value]Type{}, opByName: map[string]Op{}}
	for o := range numOps {
		p.opByName[o.String()] = o
	}
	if err := p.module(); err != nil {
		return nil, fmt.Errorf("%w: line %d: %w", ErrModule, p.at, err)
	}
	return p.m, p.m.Verify()
}

type parser struct {
	m        *Module
	lines    []string
	at       int // number of the line that was taken last
	types    map[Value]Type
	opByName map[string]Op
}

// take returns the words of the next line that has some, nil at the end.
func (p *parser) take() []string {
	for p.at < len(p.lines) {
		line := p.lines[p.at]
		p.at++
		if w := strings.Fields(line); len(w) > 0 && w[0][0] != '#' {
			return w
		}
	}
	return nil
}

// module reads a whole text: the name, then inputs, outputs and tables, then the body. Errors
// do not have the line, which the caller adds.
func (p *parser) module() error {
	w := p.take()
	if len(w) == 0 || w[0] != "module" {
		return fmt.Errorf("want module and a name in quotes first")
	}
	_, quoted, _ := strings.Cut(p.lines[p.at-1], "module")
	name, err := strconv.Unquote(strings.TrimSpace(quoted))
	if err != nil {
		return fmt.Errorf("want the module's name in quotes")
	}
	p.m.Name = name
	for w = p.take(); len(w) > 0; w = p.take() {
		switch w[0] {
		case "input":
			err = p.param(w, &p.m.Inputs)
		case "output":
			err = p.param(w, &p.m.Outputs)
		case "table":
			err = p.table(w)
		default:
			if p.m.Body, w, err = p.block(w, 0); err != nil {
				return err
			}
			if w != nil {
				return fmt.Errorf("%.20q outside a block", w[0])
			}
			return p.number()
		}
		if err != nil {
			return err
		}
	}
	return p.number()
}

// number turns the types of values into a list without gaps.
func (p *parser) number() error {
	p.m.Types = make([]Type, len(p.types))
	for v, t := range p.types {
		if int(v) >= len(p.types) {
			return fmt.Errorf("value %%%d of %d values; number them without gaps", v, len(p.types))
		}
		p.m.Types[v] = t
	}
	if len(p.m.Types) == 0 {
		p.m.Types = nil
	}
	return nil
}

// param reads the declaration of an input or output: name, type, layout and number of columns.
// Whether these make sense is for the verifier.
func (p *parser) param(w []string, list *[]Param) error {
	if len(w) != 5 {
		return fmt.Errorf("want %s, a name, a type, rows or columns, and the number of columns", w[0])
	}
	t, err := parseType(w[2])
	if err != nil {
		return err
	}
	layout := Rows
	switch w[3] {
	case "rows":
	case "columns":
		layout = Columns
	default:
		return fmt.Errorf("%.20q, want rows or columns", w[3])
	}
	width, err := strconv.Atoi(w[4])
	if err != nil {
		return fmt.Errorf("%.20q, want a number of columns", w[4])
	}
	*list = append(*list, Param{w[1], t, layout, width})
	return nil
}

func (p *parser) table(w []string) error {
	if len(w) < 4 {
		return fmt.Errorf("want table, a name, a type and at least one element")
	}
	t, err := parseType(w[2])
	if err != nil {
		return err
	}
	bits := make([]uint64, len(w)-3)
	for i, s := range w[3:] {
		if bits[i], err = parseLiteral(t, s); err != nil {
			return fmt.Errorf("%.40q is not an element of type %v", s, t)
		}
	}
	p.m.Tables = append(p.m.Tables, Table{w[1], t, bits})
	return nil
}

func parseType(s string) (Type, error) {
	if i := slices.Index(typeNames[:], s); i >= 0 {
		return Type(i), nil
	}
	return 0, fmt.Errorf("%.20q, want one of the types %v", s, typeNames)
}

func parseValue(s string) (Value, error) {
	digits, ok := strings.CutPrefix(s, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if !ok || err != nil || n >= MaxValues {
		return 0, fmt.Errorf("%.20q, want a value such as %%12", s)
	}
	return Value(n), nil
}

func (p *parser) values(w []string) (list []Value, err error) {
	for _, s := range w {
		v, err := p.operand(s)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func (p *parser) operand(s string) (Value, error) {
	v, err := parseValue(s)
	if err != nil {
		return 0, err
	}
	if _, ok := p.types[v]; !ok {
		return 0, fmt.Errorf("%s is used before it is defined", s)
	}
	return v, nil
}

// define gives a value its type.
func (p *parser) define(s string, t Type) (Value, error) {
	v, err := parseValue(s)
	if err != nil {
		return 0, err
	}
	if _, ok := p.types[v]; ok {
		return 0, fmt.Errorf("%s is defined twice", s)
	}
	p.types[v] = t
	return v, nil
}

// block reads instructions from the words of a line on, up to one that ends a block, which
// it returns.
func (p *parser) block(w []string, depth int) (Block, []string, error) {
	if depth > MaxDepth {
		return nil, nil, fmt.Errorf("blocks within blocks more than %d deep", MaxDepth)
	}
	var b Block
	for ; len(w) > 0; w = p.take() {
		if w[0] == "yield" || w[0] == "next" || w[0] == "}" {
			return b, w, nil
		}
		in, err := p.instr(w, depth)
		if err != nil {
			return nil, nil, err
		}
		b = append(b, in)
	}
	return b, nil, nil
}

// instr reads one instruction, whose line is w, and for If and Loop the lines of their blocks.
// Types of results follow from operands and declarations, as they are not written; the verifier
// checks all of them afterwards.
func (p *parser) instr(w []string, depth int) (Instr, error) {
	none := Instr{Out: None, Args: [3]Value{None, None, None}}
	results := w[:0]
	if eq := slices.Index(w, "="); eq > 0 && strings.HasPrefix(w[0], "%") {
		results, w = w[:eq], w[eq+1:]
	}
	if len(w) == 0 {
		return none, fmt.Errorf("want an operation")
	}
	op, ok := p.opByName[w[0]]
	if !ok {
		return none, fmt.Errorf("unknown operation %.20q", w[0])
	}
	w = w[1:]
	in := none
	in.Op = op
	switch op {
	case If:
		return p.branch(in, results, w, depth)
	case Loop:
		return p.loop(in, results, w, depth)
	case Store:
		if len(results) != 0 || len(w) != 3 {
			return in, fmt.Errorf("want store, an output, a column and a value")
		}
		if err := p.column(&in, p.m.Outputs, w); err != nil {
			return in, err
		}
		v, err := p.operand(w[2])
		in.Args[0] = v
		return in, err
	case StoreAt:
		if len(results) != 0 || len(w) != 3 {
			return in, fmt.Errorf("want storeat, an output, an index and a value")
		}
		in.Ref = slices.IndexFunc(p.m.Outputs, func(q Param) bool { return q.Name == w[0] })
		if in.Ref < 0 {
			return in, fmt.Errorf("no output %.20q", w[0])
		}
		for i, s := range w[1:] {
			v, err := p.operand(s)
			if err != nil {
				return in, err
			}
			in.Args[i] = v
		}
		return in, nil
	}
	if len(results) != 1 {
		return in, fmt.Errorf("%v with %d results, want one", op, len(results))
	}
	t := numTypes // given by the operands
	var err error
	switch op {
	case Const:
		if len(w) != 2 {
			return in, fmt.Errorf("want const, a type and a number")
		}
		if t, err = parseType(w[0]); err != nil {
			return in, err
		}
		if in.Imm, err = parseLiteral(t, w[1]); err != nil {
			return in, fmt.Errorf("%.40q is not a number of type %v", w[1], t)
		}
		w = nil
	case Load:
		if len(w) != 2 {
			return in, fmt.Errorf("want load, an input and a column")
		}
		if err := p.column(&in, p.m.Inputs, w); err != nil {
			return in, err
		}
		t, w = p.m.Inputs[in.Ref].Type, nil
	case LoadAt:
		if len(w) < 1 {
			return in, fmt.Errorf("want loadat, an input and an index")
		}
		name := w[0]
		in.Ref = slices.IndexFunc(p.m.Inputs, func(q Param) bool { return q.Name == name })
		if in.Ref < 0 {
			return in, fmt.Errorf("no input %.20q", name)
		}
		t, w = p.m.Inputs[in.Ref].Type, w[1:]
	case Gather:
		if len(w) < 1 {
			return in, fmt.Errorf("want gather, a table and an index")
		}
		name := w[0]
		in.Ref = slices.IndexFunc(p.m.Tables, func(t Table) bool { return t.Name == name })
		if in.Ref < 0 {
			return in, fmt.Errorf("no table %.20q", name)
		}
		t, w = p.m.Tables[in.Ref].Type, w[1:]
	case Convert, Bitcast:
		if len(w) < 1 {
			return in, fmt.Errorf("want %v, a type and a value", op)
		}
		if t, err = parseType(w[0]); err != nil {
			return in, err
		}
		w = w[1:]
	}
	if forms[op].shift && len(w) > 0 {
		last := len(w) - 1
		if in.Imm, err = strconv.ParseUint(w[last], 10, 8); err != nil {
			return in, fmt.Errorf("%.20q, want a distance", w[last])
		}
		w = w[:last]
	}
	if len(w) != op.Args() {
		return in, fmt.Errorf("%v has %d operands, want %d", op, len(w), op.Args())
	}
	for i, s := range w {
		if in.Args[i], err = p.operand(s); err != nil {
			return in, err
		}
	}
	switch {
	case op.compares():
		t = Pred
	case op == Select:
		t = p.types[in.Args[1]]
	case t == numTypes:
		t = p.types[in.Args[0]]
	}
	in.Out, err = p.define(results[0], t)
	return in, err
}

// column reads the name of an input or output and a column of it.
func (p *parser) column(in *Instr, list []Param, w []string) (err error) {
	in.Ref = slices.IndexFunc(list, func(q Param) bool { return q.Name == w[0] })
	if in.Ref < 0 {
		return fmt.Errorf("%v: no input or output %.20q", in.Op, w[0])
	}
	if in.Imm, err = strconv.ParseUint(w[1], 10, 31); err != nil {
		return fmt.Errorf("%.20q, want the number of a column", w[1])
	}
	return nil
}

// end reads the line that ends a block: the values behind a word.
func (p *parser) end(w []string, word string) ([]Value, error) {
	if len(w) == 0 || w[0] != word {
		return nil, fmt.Errorf("want %s at the end of a block", word)
	}
	return p.values(w[1:])
}

// line takes the next line, which has to be the given words.
func (p *parser) line(want ...string) error {
	if w := p.take(); !slices.Equal(w, want) {
		return fmt.Errorf("want %s", strings.Join(want, " "))
	}
	return nil
}

// branch reads an If: the condition, a block that ends with yield, else and another one. Both
// yield as many values as there are results.
func (p *parser) branch(in Instr, results, w []string, depth int) (Instr, error) {
	if len(w) != 2 || w[1] != "{" {
		return in, fmt.Errorf("want if, a condition and {")
	}
	var err error
	if in.Args[0], err = p.operand(w[0]); err != nil {
		return in, err
	}
	br := &Branch{}
	in.If = br
	var end []string
	if br.Then, end, err = p.block(p.take(), depth+1); err != nil {
		return in, err
	}
	if br.ThenYield, err = p.end(end, "yield"); err != nil {
		return in, err
	}
	if err := p.line("}", "else", "{"); err != nil {
		return in, err
	}
	if br.Else, end, err = p.block(p.take(), depth+1); err != nil {
		return in, err
	}
	if br.ElseYield, err = p.end(end, "yield"); err != nil {
		return in, err
	}
	if err := p.line("}"); err != nil {
		return in, err
	}
	br.Results, err = p.results(results, br.ThenYield)
	return in, err
}

// results defines the results of blocks, of the types of what these yield.
func (p *parser) results(names []string, like []Value) (list []Value, err error) {
	if len(names) != len(like) {
		return nil, fmt.Errorf("%d results of %d values", len(names), len(like))
	}
	for i, s := range names {
		v, err := p.define(s, p.types[like[i]])
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// loop reads a Loop: the most turns, carried values with their starts, and a block that ends
// with next, the condition to continue and the next values.
func (p *parser) loop(in Instr, results, w []string, depth int) (Instr, error) {
	if len(w) < 2 || w[len(w)-1] != "{" || (len(w)-2)%3 != 0 {
		return in, fmt.Errorf("want loop, a number of turns, values such as %%1 = %%0, and {")
	}
	l := &Repeat{}
	in.Loop = l
	var err error
	if l.Most, err = strconv.Atoi(w[0]); err != nil {
		return in, fmt.Errorf("%.20q, want a number of turns", w[0])
	}
	for w = w[1 : len(w)-1]; len(w) > 0; w = w[3:] {
		from, err := p.operand(w[2])
		if err != nil || w[1] != "=" {
			return in, fmt.Errorf("want carried values such as %%1 = %%0")
		}
		c, err := p.define(w[0], p.types[from])
		if err != nil {
			return in, err
		}
		l.Init, l.Carried = append(l.Init, from), append(l.Carried, c)
	}
	var end []string
	if l.Body, end, err = p.block(p.take(), depth+1); err != nil {
		return in, err
	}
	next, err := p.end(end, "next")
	if err != nil {
		return in, err
	}
	if len(next) == 0 {
		return in, fmt.Errorf("want a condition behind next")
	}
	l.Continue = next[0]
	if len(next) > 1 {
		l.Next = next[1:]
	}
	if err := p.line("}"); err != nil {
		return in, err
	}
	l.Results, err = p.results(results, l.Carried)
	return in, err
}
