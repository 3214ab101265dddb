package simt

import (
	"fmt"
)

// Verify reports the first rule of the language that a module breaks.
func (m *Module) Verify() error {
	v := &verifier{m: m, state: make([]uint8, len(m.Types))}
	if err := v.head(); err != nil {
		return err
	}
	if err := v.block(m.Body, 0); err != nil {
		return err
	}
	for i, s := range v.state {
		if s == unseen {
			return v.fail("value %%%d is defined nowhere; number values without gaps", i)
		}
	}
	return nil
}

// The states of a value: not defined yet, in scope, out of scope again.
const (
	unseen uint8 = iota
	live
	gone
)

type verifier struct {
	m     *Module
	state []uint8
}

func (v *verifier) fail(format string, args ...any) error {
	return fmt.Errorf("%w: %.60q: %s", ErrModule, v.m.Name, fmt.Sprintf(format, args...))
}

// head checks everything but the body: names, types, widths and the elements of tables, with
// bounds on how many values and elements there are. The body is checked on the strength of it.
func (v *verifier) head() error {
	m := v.m
	if len(m.Types) > MaxValues {
		return v.fail("%d values, want at most %d", len(m.Types), MaxValues)
	}
	for i, t := range m.Types {
		if t >= numTypes {
			return v.fail("value %%%d has the unknown type %d", i, t)
		}
	}
	seen := make(map[string]bool, len(m.Inputs)+len(m.Outputs)+len(m.Tables))
	name := func(what string, number int, n string) error {
		if !isName(n) {
			return v.fail("%s %d has the name %.40q; want letters, digits and _, a letter first", what, number, n)
		}
		if seen[n] {
			return v.fail("two of its inputs, outputs and tables are named %s; rename one", n)
		}
		seen[n] = true
		return nil
	}
	for i, p := range append(m.Inputs[:len(m.Inputs):len(m.Inputs)], m.Outputs...) {
		what, number := "input", i
		if i >= len(m.Inputs) {
			what, number = "output", i-len(m.Inputs)
		}
		if err := name(what, number, p.Name); err != nil {
			return err
		}
		if p.Type >= Pred || p.Layout > Columns || p.Width < 1 || p.Width > MaxWidth {
			return v.fail("%s %d is %d columns of %v in layout %d; want 1 to %d of a type but pred, by rows or columns", what, number, p.Width, p.Type, p.Layout, MaxWidth)
		}
	}
	if len(m.Outputs) == 0 {
		return v.fail("no outputs; a program has at least one")
	}
	total := 0
	for i, t := range m.Tables {
		if err := name("table", i, t.Name); err != nil {
			return err
		}
		if t.Type >= Pred || len(t.Bits) == 0 || len(t.Bits) > maxTable-total {
			return v.fail("table %s has %d elements of %v; want at least one of a type but pred, and at most %d in all tables", t.Name, len(t.Bits), t.Type, maxTable)
		}
		total += len(t.Bits)
		for k, b := range t.Bits {
			if n := t.Type.Bits(); n < 64 && b>>n != 0 {
				return v.fail("table %s: element %d has the bits %#x, want %d bits", t.Name, k, b, n)
			}
		}
	}
	return nil
}

// isName reports whether s can name an input, output or table.
func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// use checks that a value may be read and returns its type.
func (v *verifier) use(x Value) (Type, error) {
	if x < 0 || int(x) >= len(v.state) {
		return 0, v.fail("operand %%%d is no value; there are %d", x, len(v.state))
	}
	switch v.state[x] {
	case unseen:
		return 0, v.fail("operand %%%d is used before it is defined", x)
	case gone:
		return 0, v.fail("operand %%%d is used outside the block that defines it; yield it", x)
	}
	return v.m.Types[x], nil
}

func (v *verifier) define(x Value, own *[]Value) error {
	if x < 0 || int(x) >= len(v.state) {
		return v.fail("result %%%d is no value; there are %d", x, len(v.state))
	}
	if v.state[x] != unseen {
		return v.fail("value %%%d is defined twice", x)
	}
	v.state[x] = live
	*own = append(*own, x)
	return nil
}

// block checks the instructions of a block, then ends the lives of its values.
func (v *verifier) block(b Block, depth int) error {
	own, err := v.open(b, depth)
	v.close(own)
	return err
}

// open checks the instructions of a block and returns the values that it defines.
func (v *verifier) open(b Block, depth int) (own []Value, err error) {
	if depth > MaxDepth {
		return nil, v.fail("blocks within blocks %d deep, want at most %d", depth, MaxDepth)
	}
	own = make([]Value, 0, len(b))
	for i := range b {
		if err := v.instr(&b[i], depth, &own); err != nil {
			return own, err
		}
	}
	return own, nil
}

func (v *verifier) close(own []Value) {
	for _, x := range own {
		v.state[x] = gone
	}
}

// instr checks one instruction: operands that are defined before it, their types, a result that
// is defined once, and fields that the operation does not use being empty, so that equal
// programs are equal values. own gets the values that it defines.
func (v *verifier) instr(in *Instr, depth int, own *[]Value) error {
	if in.Op >= numOps {
		return v.fail("unknown operation %d", in.Op)
	}
	var args [3]Type
	for i, x := range in.Args {
		if i >= in.Op.Args() {
			if x != None {
				return v.fail("%v has %%%d as operand %d, want %d operands", in.Op, x, i, in.Op.Args())
			}
			continue
		}
		t, err := v.use(x)
		if err != nil {
			return err
		}
		args[i] = t
	}
	if (in.If != nil) != (in.Op == If) || (in.Loop != nil) != (in.Op == Loop) {
		return v.fail("%v has blocks that are not its own", in.Op)
	}
	switch in.Op {
	case If:
		return v.branch(in, args[0], depth, own)
	case Loop:
		return v.loop(in, depth, own)
	case Store:
		if in.Out != None {
			return v.fail("store has the result %%%d, want none", in.Out)
		}
		if err := v.param(in, v.m.Outputs, args[0]); err != nil {
			return err
		}
		return nil
	case StoreAt:
		if in.Ref < 0 || in.Ref >= len(v.m.Outputs) || in.Imm != 0 || in.Out != None {
			return v.fail("storeat to output %d of %d, with the result %%%d; want none", in.Ref, len(v.m.Outputs), in.Out)
		}
		if p := &v.m.Outputs[in.Ref]; args[0] != I32 || args[1] != p.Type || p.Layout != Rows || !numbers.has(args[1]) {
			return v.fail("storeat of %v at a column of %v to %s, which has %v by %v; want an index of i32, and f32, f64, i32 or i64 by rows", args[1], args[0], p.Name, p.Type, p.Layout)
		}
		return nil
	}
	if err := v.define(in.Out, own); err != nil {
		return err
	}
	out := v.m.Types[in.Out]
	switch in.Op {
	case Load:
		return v.param(in, v.m.Inputs, out)
	case LoadAt:
		if in.Ref < 0 || in.Ref >= len(v.m.Inputs) || in.Imm != 0 {
			return v.fail("%%%d loads from input %d of %d", in.Out, in.Ref, len(v.m.Inputs))
		}
		if p := &v.m.Inputs[in.Ref]; args[0] != I32 || out != p.Type || p.Layout != Rows || !numbers.has(out) {
			return v.fail("%%%d loads %v at a column of %v from %s, which has %v by %v; want an index of i32, and f32, f64, i32 or i64 by rows", in.Out, out, args[0], p.Name, p.Type, p.Layout)
		}
		return nil
	case Gather:
		if in.Ref < 0 || in.Ref >= len(v.m.Tables) || in.Imm != 0 {
			return v.fail("%%%d gathers from table %d of %d", in.Out, in.Ref, len(v.m.Tables))
		}
		if t := v.m.Tables[in.Ref].Type; args[0] != I32 || out != t {
			return v.fail("%%%d gathers %v by %v from a table of %v; want an index of i32", in.Out, out, args[0], t)
		}
		return nil
	}
	if in.Ref != 0 {
		return v.fail("%%%d: %v has the reference %d, want none", in.Out, in.Op, in.Ref)
	}
	if wrong := in.Op.check(args[:in.Op.Args()], out); wrong != "" {
		return v.fail("%%%d: %v %s", in.Out, in.Op, wrong)
	}
	bits := uint64(0) // one more than the largest Imm
	switch {
	case in.Op == Const && out.Bits() == 64:
		return nil
	case in.Op == Const:
		bits = 1 << out.Bits()
	case forms[in.Op].shift:
		bits = uint64(out.Bits())
	default:
		bits = 1
	}
	if in.Imm >= bits {
		return v.fail("%%%d: %v of %v has the constant %#x, want one below %#x", in.Out, in.Op, out, in.Imm, bits)
	}
	return nil
}

// param checks the column of a Load or Store of type t.
func (v *verifier) param(in *Instr, list []Param, t Type) error {
	if in.Ref < 0 || in.Ref >= len(list) {
		return v.fail("%v refers to number %d of %d", in.Op, in.Ref, len(list))
	}
	p := &list[in.Ref]
	if p.Type != t || in.Imm >= uint64(p.Width) {
		return v.fail("%v of column %d as %v; %s has %d columns of %v", in.Op, in.Imm, t, p.Name, p.Width, p.Type)
	}
	return nil
}

func (v *verifier) branch(in *Instr, condition Type, depth int, own *[]Value) error {
	b := in.If
	if condition != Pred || in.Out != None || in.Imm != 0 || in.Ref != 0 {
		return v.fail("if has a condition of type %v, want pred", condition)
	}
	if len(b.ThenYield) != len(b.Results) || len(b.ElseYield) != len(b.Results) {
		return v.fail("if yields %d and %d values for %d results", len(b.ThenYield), len(b.ElseYield), len(b.Results))
	}
	for i, block := range []Block{b.Then, b.Else} {
		inner, err := v.open(block, depth+1)
		if err == nil {
			err = v.yields([][]Value{b.ThenYield, b.ElseYield}[i], b.Results)
		}
		v.close(inner)
		if err != nil {
			return err
		}
	}
	return v.defineAll(b.Results, own)
}

// yields checks values that a block hands to others of the same types.
func (v *verifier) yields(from, to []Value) error {
	for i, x := range from {
		t, err := v.use(x)
		if err != nil {
			return err
		}
		if to[i] < 0 || int(to[i]) >= len(v.m.Types) || v.m.Types[to[i]] != t {
			return v.fail("%%%d of type %v is handed to %%%d, which has another type", x, t, to[i])
		}
	}
	return nil
}

func (v *verifier) defineAll(list []Value, own *[]Value) error {
	for _, x := range list {
		if err := v.define(x, own); err != nil {
			return err
		}
	}
	return nil
}

// loop checks a Loop: bounds on its turns, and that starts, carried values, next values and
// results agree in number and types. Values of the body are not defined after it.
func (v *verifier) loop(in *Instr, depth int, own *[]Value) error {
	l := in.Loop
	if in.Out != None || in.Imm != 0 || in.Ref != 0 || l.Most < 1 || l.Most > MaxTurns {
		return v.fail("loop of %d turns, want 1 to %d", l.Most, MaxTurns)
	}
	if n := len(l.Carried); len(l.Init) != n || len(l.Next) != n || len(l.Results) != n {
		return v.fail("loop starts with %d, carries %d, computes %d and results in %d values, want as many", len(l.Init), n, len(l.Next), len(l.Results))
	}
	if err := v.yields(l.Init, l.Carried); err != nil {
		return err
	}
	var carried []Value
	err := v.defineAll(l.Carried, &carried)
	if err == nil {
		var inner []Value
		if inner, err = v.open(l.Body, depth+1); err == nil {
			err = v.yields(l.Next, l.Carried)
		}
		if err == nil {
			var t Type
			if t, err = v.use(l.Continue); err == nil && t != Pred {
				err = v.fail("loop continues by a value of type %v, want pred", t)
			}
		}
		if err == nil {
			err = v.yields(l.Carried, l.Results)
		}
		v.close(inner)
	}
	v.close(carried)
	if err != nil {
		return err
	}
	return v.defineAll(l.Results, own)
}
