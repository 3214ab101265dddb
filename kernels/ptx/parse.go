package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds on what Parse reads, so that broken text costs little memory.
const (
	maxText      = 64 << 20 // bytes
	maxRegisters = 1 << 20  // of a class
	maxShared    = 1 << 30  // bytes of a variable
	maxAlign     = 1 << 12
	maxStmts     = 1 << 20 // of a module
	maxArgs      = 8       // of an instruction, and registers of a vector
	maxParts     = 16      // of an opcode
)

// Parse reads the text of a module as Text prints it; blanks, ends of lines and
// comments may stand anywhere between its parts. It knows the language's form but
// not its instructions: Verify does. Errors match ErrSyntax.
func Parse(text []byte) (*Module, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%w: line 1: a text of %d bytes; want at most %d", ErrSyntax, len(text), maxText)
	}
	p := parser{scanner: scanner{text: string(text), line: 1}}
	m := p.module()
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

type parser struct {
	scanner
	stmts int // so far

	// Parts of the instruction at hand, and room to keep those to come.
	mods     []string
	types    []Type
	args     []Operand
	instRoom []Inst
	modRoom  []string
	typeRoom []Type
	argRoom  []Operand
}

// keep copies what is at hand to its room.
func keep[T any](room *[]T, at []T) []T {
	if len(at) == 0 {
		return nil
	}
	if len(*room) < len(at) {
		*room = make([]T, 128)
	}
	kept := (*room)[:len(at):len(at)]
	*room = (*room)[len(at):]
	copy(kept, at)
	return kept
}

func (p *parser) module() *Module {
	m := &Module{}
	p.directive("version")
	m.Major = p.number("a version", 0, 99)
	p.expect('.')
	m.Minor = p.number("a version", 0, 99)
	p.directive("target")
	m.Target = p.name("a target")
	p.directive("address_size")
	p.number("an address size", 64, 64)
	if p.acceptDirective("extern") {
		m.Dynamic = &Var{}
		p.variable(m.Dynamic, true)
	}
	for p.err == nil && p.peek() != 0 {
		m.Kernels = append(m.Kernels, p.kernel())
	}
	// peek says 0 for a byte 0, too.
	if p.pos < len(p.text) {
		p.fail("a kernel, .visible .entry")
	}
	return m
}

// variable passes ".shared .align A .b8 NAME[BYTES];".
func (p *parser) variable(v *Var, dynamic bool) {
	p.directive("shared")
	p.directive("align")
	v.Align = p.number("an alignment", 1, maxAlign)
	p.directive("b8")
	v.Name = p.name("a variable")
	p.expect('[')
	if !dynamic {
		v.Bytes = p.number("a size", 1, maxShared)
	}
	p.expect(']')
	p.expect(';')
}

func (p *parser) kernel() *Kernel {
	k := &Kernel{}
	p.directive("visible")
	p.directive("entry")
	k.Name = p.name("a kernel")
	p.expect('(')
	for p.err == nil && !p.accept(')') {
		if len(k.Params) > 0 {
			p.expect(',')
		}
		p.directive("param")
		t := p.typ()
		k.Params = append(k.Params, Param{p.name("a parameter"), t})
	}
	if p.acceptDirective("maxntid") {
		k.Threads = p.number("threads", 1, 1<<16)
		for range 2 {
			p.expect(',')
			p.number("threads in the other directions", 1, 1)
		}
	}
	if p.acceptDirective("minnctapersm") {
		k.Blocks = p.number("blocks", 1, 1<<16)
	}
	p.expect('{')
	p.declarations(k)
	for p.err == nil && !p.accept('}') {
		k.Body = append(k.Body, p.stmt())
	}
	return k
}

func (p *parser) declarations(k *Kernel) {
	for p.err == nil && p.peek() == '.' {
		if !p.acceptDirective("reg") {
			k.Shared = append(k.Shared, Var{})
			p.variable(&k.Shared[len(k.Shared)-1], false)
			continue
		}
		c, start := p.typ().Class(), p.pos
		p.expect('%')
		if p.err == nil && (c == NoClass || p.word() != letters[c] || k.Regs[c] != 0) {
			p.pos = start
			p.fail("registers .pred %p, .b16 %h, .b32 %r, .b64 %d, each once")
		}
		p.expect('<')
		k.Regs[c] = int32(p.number("registers", 1, maxRegisters))
		p.expect('>')
		p.expect(';')
	}
}

// typ passes a type of a declaration with its dot.
func (p *parser) typ() Type {
	p.skip()
	start := p.pos
	p.expect('.')
	t := typesByName[p.word()]
	if t == NoType && p.err == nil {
		p.pos = start
		p.fail("a type")
	}
	return t
}

func (p *parser) stmt() Stmt {
	if p.stmts++; p.stmts > maxStmts {
		p.fail(fmt.Sprintf("at most %d labels and instructions", maxStmts))
	}
	if startsName(p.peek()) {
		start, line := p.pos, p.line
		label := p.word()
		if p.accept(':') && !strings.HasPrefix(p.text[p.pos:], ":") {
			return Stmt{Label: label}
		}
		p.pos, p.line = start, line
	}
	return Stmt{Inst: p.inst()}
}

func (p *parser) inst() *Inst {
	if len(p.instRoom) == 0 {
		p.instRoom = make([]Inst, 64)
	}
	in := &p.instRoom[0]
	p.instRoom = p.instRoom[1:]
	in.Line = p.line
	if p.accept('@') {
		in.Negated = p.accept('!')
		in.Guard = p.reg()
	}
	p.opcode(in)
	p.args = p.args[:0]
	for p.err == nil && !p.accept(';') {
		if len(p.args) > 0 {
			p.expect(',')
		}
		if len(p.args) == maxArgs {
			p.fail(fmt.Sprintf("at most %d operands", maxArgs))
		}
		p.args = append(p.args, p.operand())
	}
	in.Args = keep(&p.argRoom, p.args)
	return in
}

// opcode passes the dotted parts of an instruction.
func (p *parser) opcode(in *Inst) {
	if !startsName(p.peek()) {
		p.fail("a label, an instruction or }")
		return
	}
	in.Op = p.word()
	if in.Op == "cp" && strings.HasPrefix(p.text[p.pos:], ".async") && (len(p.text) == p.pos+6 || !inName(p.text[p.pos+6])) {
		in.Op = "cp.async"
		p.pos += len(".async")
	}
	p.mods, p.types = p.mods[:0], p.types[:0]
	for p.err == nil && p.pos < len(p.text) && p.text[p.pos] == '.' {
		start := p.pos
		p.pos++
		for p.pos < len(p.text) && (inName(p.text[p.pos]) || p.text[p.pos] == ':') {
			p.pos++
		}
		part := p.text[start+1 : p.pos]
		t, isType := typesByName[part]
		switch {
		case len(p.mods)+len(p.types) == maxParts || part == "" || !isType && len(p.types) > 0:
			p.pos = start
			p.fail(fmt.Sprintf("at most %d parts of an opcode, types last", maxParts))
		case isType:
			p.types = append(p.types, t)
		default:
			p.mods = append(p.mods, part)
		}
	}
	in.Mods, in.Types = keep(&p.modRoom, p.mods), keep(&p.typeRoom, p.types)
}

func (p *parser) operand() Operand {
	switch c := p.peek(); {
	case c == '%':
		return p.register()
	case c == '-' || isDigit(c):
		return p.literal()
	case startsName(c):
		return Operand{Kind: SymOperand, Symbol: p.word()}
	case c == '[':
		return p.address()
	case c == '{':
		p.pos++
		o := Operand{Kind: VecOperand}
		for p.err == nil && !p.accept('}') {
			if len(o.Vec) > 0 {
				p.expect(',')
			}
			if len(o.Vec) == maxArgs {
				p.fail(fmt.Sprintf("at most %d registers", maxArgs))
			}
			o.Vec = append(o.Vec, p.reg())
		}
		return o
	}
	p.fail("an operand")
	return Operand{}
}

// register passes a register or a special register.
func (p *parser) register() Operand {
	p.skip()
	start, line := p.pos, p.line
	p.expect('%')
	w := p.word()
	if len(w) > 1 && isDigit(w[1]) {
		p.pos, p.line = start, line
		return Operand{Kind: RegOperand, Reg: p.reg()}
	}
	if p.pos < len(p.text) && p.text[p.pos] == '.' {
		p.pos++
		w = p.text[start+1 : p.pos]
		w += p.word()
	}
	if p.text[start:p.pos] != "%"+w || w == "" || !startsName(w[0]) {
		p.pos, p.line = start, line
		p.fail("a register")
	}
	return Operand{Kind: SpecOperand, Symbol: "%" + w}
}

// reg passes a register with a number.
func (p *parser) reg() Reg {
	p.skip()
	start, line := p.pos, p.line
	p.expect('%')
	w := p.word()
	if p.err == nil && len(w) > 1 && start+1+len(w) == p.pos {
		for c := P; c <= D; c++ {
			if w[0] == letters[c][0] {
				if id, err := strconv.ParseUint(w[1:], 10, 32); err == nil && id < maxRegisters {
					return Reg{c, int32(id)}
				}
			}
		}
	}
	p.pos, p.line = start, line
	p.fail(fmt.Sprintf("a register %%p, %%h, %%r or %%d with a number below %d", maxRegisters))
	return Reg{}
}

// literal passes a number: decimal, 0x and digits, 0f and 8 digits or 0d and 16.
func (p *parser) literal() Operand {
	p.skip()
	start, line := p.pos, p.line
	negative := p.accept('-')
	w := p.word()
	o := Operand{Kind: IntOperand}
	var bits uint64
	var err error
	switch {
	case len(w) == 10 && w[:2] == "0f" && !negative:
		o.Kind = F32Operand
		bits, err = strconv.ParseUint(w[2:], 16, 32)
		o.Int = int64(bits)
	case len(w) == 18 && w[:2] == "0d" && !negative:
		o.Kind = F64Operand
		bits, err = strconv.ParseUint(w[2:], 16, 64)
		o.Int = int64(bits)
	case len(w) > 2 && w[:2] == "0x" && !negative:
		bits, err = strconv.ParseUint(w[2:], 16, 64)
		o.Int = int64(bits)
	case negative:
		o.Int, err = strconv.ParseInt("-"+w, 10, 64)
	default:
		o.Int, err = strconv.ParseInt(w, 10, 64)
	}
	if err != nil && p.err == nil {
		p.pos, p.line = start, line
		p.fail("a number of 64 bits, 0f and 8 hexadecimal digits or 0d and 16")
	}
	return o
}

// address passes [register+offset] or [symbol+offset].
func (p *parser) address() Operand {
	p.expect('[')
	o := Operand{Kind: AddrOperand}
	if p.peek() == '%' {
		o.Reg = p.reg()
	} else {
		o.Symbol = p.name("a variable, or a register")
	}
	if p.accept('+') {
		p.skip()
		start, line := p.pos, p.line
		n := p.literal()
		if n.Kind != IntOperand {
			p.pos, p.line = start, line
			p.fail("an offset")
		}
		o.Int = n.Int
	}
	p.expect(']')
	return o
}
