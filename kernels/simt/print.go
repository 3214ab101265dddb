package simt

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Text returns a verified module as text that Parse reads back as the same module:
//
//	module "name"
//	input x f32 columns 5
//	output y f64 rows 1
//	table t f64 0x1p-01 0x1.8p+01
//	%0 = load x 3
//	%1 = const f32 0x1p-01
//	%2 = lt %0 %1
//	%3 = if %2 {
//	  yield %1
//	} else {
//	  yield %0
//	}
//	%5 = loop 10 %4 = %3 {
//	  %6 = add %4 %4
//	  %7 = lt %6 %1
//	  next %7 %6
//	}
//	%8 = convert f64 %5
//	store y 0 %8
//
// Floats are in hexadecimal, without rounding; a NaN is nan and its bits. The type of a
// value follows from its operation, and is written where it does not.
func (m *Module) Text() string {
	p := printer{m: m}
	fmt.Fprintf(&p.b, "module %q\n", m.Name)
	for _, q := range m.Inputs {
		fmt.Fprintf(&p.b, "input %s %v %v %d\n", q.Name, q.Type, q.Layout, q.Width)
	}
	for _, q := range m.Outputs {
		fmt.Fprintf(&p.b, "output %s %v %v %d\n", q.Name, q.Type, q.Layout, q.Width)
	}
	for _, t := range m.Tables {
		fmt.Fprintf(&p.b, "table %s %v", t.Name, t.Type)
		for _, x := range t.Bits {
			p.b.WriteByte(' ')
			p.b.WriteString(literal(t.Type, x))
		}
		p.b.WriteByte('\n')
	}
	p.block(m.Body, "")
	return p.b.String()
}

type printer struct {
	m *Module
	b strings.Builder
}

func (p *printer) block(b Block, indent string) {
	for i := range b {
		p.b.WriteString(indent)
		p.instr(&b[i], indent)
		p.b.WriteByte('\n')
	}
}

func (p *printer) values(list []Value) {
	for _, v := range list {
		fmt.Fprintf(&p.b, " %%%d", v)
	}
}

// instr writes an instruction without its line end, and the lines of the blocks of If and Loop,
// indented. parser.instr reads it.
func (p *printer) instr(in *Instr, indent string) {
	switch in.Op {
	case Store:
		fmt.Fprintf(&p.b, "store %s %d %%%d", p.m.Outputs[in.Ref].Name, in.Imm, in.Args[0])
		return
	case StoreAt:
		fmt.Fprintf(&p.b, "storeat %s %%%d %%%d", p.m.Outputs[in.Ref].Name, in.Args[0], in.Args[1])
		return
	case If:
		p.results(in.If.Results)
		fmt.Fprintf(&p.b, "if %%%d {\n", in.Args[0])
		p.block(in.If.Then, indent+"  ")
		p.b.WriteString(indent + "  yield")
		p.values(in.If.ThenYield)
		p.b.WriteString("\n" + indent + "} else {\n")
		p.block(in.If.Else, indent+"  ")
		p.b.WriteString(indent + "  yield")
		p.values(in.If.ElseYield)
		p.b.WriteString("\n" + indent + "}")
		return
	case Loop:
		l := in.Loop
		p.results(l.Results)
		fmt.Fprintf(&p.b, "loop %d", l.Most)
		for i, c := range l.Carried {
			fmt.Fprintf(&p.b, " %%%d = %%%d", c, l.Init[i])
		}
		p.b.WriteString(" {\n")
		p.block(l.Body, indent+"  ")
		fmt.Fprintf(&p.b, "%s  next %%%d", indent, l.Continue)
		p.values(l.Next)
		p.b.WriteString("\n" + indent + "}")
		return
	}
	fmt.Fprintf(&p.b, "%%%d = %v", in.Out, in.Op)
	t := p.m.Types[in.Out]
	switch in.Op {
	case Const:
		fmt.Fprintf(&p.b, " %v %s", t, literal(t, in.Imm))
	case Load:
		fmt.Fprintf(&p.b, " %s %d", p.m.Inputs[in.Ref].Name, in.Imm)
	case LoadAt:
		fmt.Fprintf(&p.b, " %s", p.m.Inputs[in.Ref].Name)
	case Gather:
		fmt.Fprintf(&p.b, " %s", p.m.Tables[in.Ref].Name)
	case Convert, Bitcast:
		fmt.Fprintf(&p.b, " %v", t)
	}
	p.values(in.Args[:in.Op.Args()])
	if forms[in.Op].shift {
		fmt.Fprintf(&p.b, " %d", in.Imm)
	}
}

func (p *printer) results(list []Value) {
	for _, v := range list {
		fmt.Fprintf(&p.b, "%%%d ", v)
	}
	if len(list) > 0 {
		p.b.WriteString("= ")
	}
}

// literal is the text of an element by its bits.
func literal(t Type, bits uint64) string {
	size := t.Bits()
	switch t {
	case F32, F64:
		x := math.Float64frombits(bits)
		if t == F32 {
			x = float64(math.Float32frombits(uint32(bits)))
		}
		if x != x {
			return fmt.Sprintf("nan:%x", bits)
		}
		return strconv.FormatFloat(x, 'x', -1, size)
	case I32:
		return strconv.Itoa(int(int32(bits)))
	case I64:
		return strconv.FormatInt(int64(bits), 10)
	}
	return strconv.FormatUint(bits, 10)
}

// parseLiteral is the inverse of literal. NaN is written by its bits, nan:7fc00000, so that
// every constant comes back; a number that the type does not hold is an error.
func parseLiteral(t Type, s string) (bits uint64, err error) {
	size := t.Bits()
	switch t {
	case F32, F64:
		if hex, ok := strings.CutPrefix(s, "nan:"); ok {
			bits, err = strconv.ParseUint(hex, 16, size)
			if x := math.Float64frombits(bits); err == nil && (t == F64 && x == x || t == F32 && math.Float32frombits(uint32(bits)) == math.Float32frombits(uint32(bits))) {
				err = strconv.ErrSyntax
			}
			return bits, err
		}
		x, err := strconv.ParseFloat(s, size)
		if x != x {
			return 0, strconv.ErrSyntax
		}
		return FloatBits(t, x), err
	case I32:
		x, err := strconv.ParseInt(s, 10, 32)
		return uint64(uint32(x)), err
	case I64:
		x, err := strconv.ParseInt(s, 10, 64)
		return uint64(x), err
	}
	return strconv.ParseUint(s, 10, size)
}
