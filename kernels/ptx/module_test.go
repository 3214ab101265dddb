package ptx

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// allOpcodes are the opcodes of the table, sorted.
func allOpcodes() []string {
	var all []string
	for text := range opcodes() {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// split takes an opcode apart as the parser does.
func split(text string) *Inst {
	in := &Inst{}
	parts := strings.Split(text, ".")
	in.Op, parts = parts[0], parts[1:]
	if in.Op == "cp" {
		in.Op, parts = "cp.async", parts[1:]
	}
	for _, part := range parts {
		if t := typesByName[part]; t != NoType {
			in.Types = append(in.Types, t)
		} else {
			in.Mods = append(in.Mods, part)
		}
	}
	return in
}

// maker makes instructions that fit the table.
type maker struct {
	rng *rand.Rand
	// regs are the registers that may be read, one number for all classes.
	regs int32
}

func (g *maker) reg(c Class) Reg { return Reg{c, g.rng.Int32N(g.regs)} }

func (g *maker) class(in *Inst, c choice) Class {
	switch {
	case c.kind == regOfClass || c.kind == vecOfClass:
		return c.class
	case in.Types[c.index].Bytes() == 1:
		return []Class{H, R}[g.rng.IntN(2)]
	}
	return in.Types[c.index].Class()
}

func (g *maker) operand(in *Inst, c choice, param string) Operand {
	offset := 16 * (g.rng.Int64N(64) - 32)
	switch c.kind {
	case regOfType, regOfClass:
		return Operand{Kind: RegOperand, Reg: g.reg(g.class(in, c))}
	case vecOfType, vecOfClass:
		o := Operand{Kind: VecOperand}
		class := g.class(in, c)
		for _, id := range g.rng.Perm(int(g.regs))[:c.count] {
			o.Vec = append(o.Vec, Reg{class, int32(id)})
		}
		return o
	case literal:
		switch t := in.Types[0]; t {
		case F32:
			return Operand{Kind: F32Operand, Int: int64(g.rng.Uint32())}
		case F64:
			return Operand{Kind: F64Operand, Int: int64(g.rng.Uint64())}
		default:
			bits := 8 * t.Bytes()
			return Operand{Kind: IntOperand, Int: int64(g.rng.Uint64()) >> (64 - bits)}
		}
	case integer32:
		return Operand{Kind: IntOperand, Int: g.rng.Int64N(1<<32+1<<31) - 1<<31}
	case natural:
		return Operand{Kind: IntOperand, Int: g.rng.Int64N(4)}
	case exactly:
		return Operand{Kind: IntOperand, Int: int64(c.count)}
	case boolean:
		return Operand{Kind: IntOperand, Int: g.rng.Int64N(3) - 1}
	case sharedAddr:
		if g.rng.IntN(2) == 0 {
			return Operand{Kind: AddrOperand, Symbol: []string{"tile", "room"}[g.rng.IntN(2)], Int: 16 * g.rng.Int64N(4)}
		}
		return Operand{Kind: AddrOperand, Reg: g.reg(R), Int: offset}
	case globalAddr:
		return Operand{Kind: AddrOperand, Reg: g.reg(D), Int: offset}
	case paramAddr:
		return Operand{Kind: AddrOperand, Symbol: param}
	case labelName:
		return Operand{Kind: SymOperand, Symbol: fmt.Sprintf("L%d", g.rng.IntN(3))}
	case sharedName:
		return Operand{Kind: SymOperand, Symbol: []string{"tile", "room"}[g.rng.IntN(2)]}
	}
	var names []string
	for name, kind := range specials {
		if kind == c.kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return Operand{Kind: SpecOperand, Symbol: names[g.rng.IntN(len(names))]}
}

// inst makes an instruction of an opcode, in each of its forms and choices in turn.
func (g *maker) inst(text string, turn int) *Inst {
	in := split(text)
	shapes := opcodes()[text].shapes
	s := shapes[turn%len(shapes)]
	for i, slot := range s.slots {
		c := slot[(turn/len(shapes)+i)%len(slot)]
		param := ""
		if c.kind == paramAddr {
			param = "a_" + in.Types[0].String()
		}
		in.Args = append(in.Args, g.operand(in, c, param))
	}
	if !s.warp && g.rng.IntN(4) == 0 {
		in.Guard, in.Negated = g.reg(P), g.rng.IntN(2) == 0
	}
	return in
}

// module makes a module whose body is a chain of the instructions, all registers
// written before.
func (g *maker) module(insts []*Inst) *Module {
	k := &Kernel{Name: "k", Threads: 64, Shared: []Var{{"tile", 16, 64}}}
	for _, t := range []Type{B32, U32, S32, F32, B64, U64, S64, F64} {
		k.Params = append(k.Params, Param{"a_" + t.String(), t})
	}
	for c := P; c <= D; c++ {
		k.Regs[c] = g.regs
		for id := range g.regs {
			k.Body = append(k.Body, Stmt{Inst: &Inst{Op: "mov", Types: []Type{c.Type()},
				Args: []Operand{{Kind: RegOperand, Reg: Reg{c, id}}, {Kind: IntOperand, Int: int64(id % 2)}}}})
		}
	}
	k.Body = append(k.Body, Stmt{Label: "L0"})
	for i, in := range insts {
		if i == len(insts)/2 {
			k.Body = append(k.Body, Stmt{Label: "L1"})
		}
		k.Body = append(k.Body, Stmt{Inst: in})
	}
	if len(insts) == 0 {
		k.Body = append(k.Body, Stmt{Label: "L1"})
	}
	k.Body = append(k.Body, Stmt{Label: "L2"}, Stmt{Inst: &Inst{Op: "exit"}})
	return &Module{Major: 8, Target: "sm_90a", Dynamic: &Var{Name: "room", Align: 128}, Kernels: []*Kernel{k}}
}

// checkModule wants a module to be right and to come back from its text.
func checkModule(t *testing.T, m *Module) {
	t.Helper()
	if err := m.Verify(); err != nil {
		t.Fatalf("%v in\n%s", err, m.Text())
	}
	text := m.Text()
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if !bytes.Equal(again.Text(), text) {
		t.Fatalf("printed, read and printed\n%s\ninstead of\n%s", again.Text(), text)
	}
	if !reflect.DeepEqual(unlined(again), m) {
		t.Fatalf("another module came back from\n%s", text)
	}
	if err := again.Verify(); err != nil {
		t.Fatalf("%v after printing\n%s", err, text)
	}
}

// TestEveryForm makes every opcode of the table with every choice of operands.
func TestEveryForm(t *testing.T) {
	g := &maker{rand.New(rand.NewPCG(5, 6)), 8}
	for _, text := range allOpcodes() {
		var insts []*Inst
		for turn := range 8 {
			insts = append(insts, g.inst(text, turn))
		}
		checkModule(t, g.module(insts))
	}
}

// TestTable holds the rows to their own form.
func TestTable(t *testing.T) {
	if n := len(opcodes()); n < 1000 {
		t.Errorf("the table has %d opcodes", n)
	}
	for i := range forms {
		s := newShape(&forms[i])
		for _, text := range expand(s.opcode) {
			if in := split(text); in.Opcode() != text {
				t.Errorf("%s: %s has a type in front of a modifier", s.opcode, text)
			}
			types := opcodes()[text].types
			for _, slot := range s.slots {
				for _, c := range slot {
					if (c.kind == regOfType || c.kind == vecOfType) && c.index >= types || c.kind == literal && types == 0 {
						t.Errorf("%s: operands %s name a type that there is not", text, s.args)
					}
				}
			}
		}
		for j := range forms[:i] {
			if forms[j].opcode == s.opcode && forms[j].args == s.args {
				t.Errorf("%s stands in the table twice", s.opcode)
			}
		}
	}
}

// TestTableKnowsItsLimits breaks each operand of every opcode.
func TestTableKnowsItsLimits(t *testing.T) {
	g := &maker{rand.New(rand.NewPCG(7, 8)), 8}
	wrong := []Operand{
		{},
		{Kind: SymOperand, Symbol: "nowhere"},
		{Kind: SpecOperand, Symbol: "%warpid"},
		{Kind: RegOperand, Reg: Reg{R, 8}},
		{Kind: RegOperand, Reg: Reg{NoClass, 0}},
		{Kind: RegOperand, Reg: Reg{Class: 200}},
		{Kind: AddrOperand, Symbol: "nowhere"},
		{Kind: AddrOperand, Reg: Reg{D, 8}},
		{Kind: VecOperand},
		{Kind: VecOperand, Vec: []Reg{{R, 8}, {R, 0}}},
		{Kind: IntOperand, Int: -1 << 62},
		{Kind: F32Operand, Int: 1 << 40},
		{Kind: OperandKind(77)},
	}
	for _, text := range allOpcodes() {
		in := g.inst(text, 0)
		in.Guard = Reg{}
		m := g.module([]*Inst{in})
		for i := range in.Args {
			good := in.Args[i]
			for _, kind := range []OperandKind{NoOperand, RegOperand, AddrOperand, VecOperand, SymOperand, SpecOperand} {
				in.Args[i].Kind = kind
				if kind != good.Kind && m.Verify() == nil {
					t.Errorf("accepted: %s, where operand %d is of kind %d", in, i+1, kind)
				}
			}
			for _, bad := range wrong {
				if bad.Kind == IntOperand && opcodes()[text].types > 0 && in.Types[0].Bytes() == 8 {
					continue // a literal of 64 bits
				}
				in.Args[i] = bad
				if m.Verify() == nil {
					t.Errorf("accepted: %s", in)
				}
			}
			in.Args[i] = good
		}
		for _, args := range [][]Operand{append(slices.Clone(in.Args), Operand{Kind: IntOperand}, Operand{Kind: IntOperand}), nil} {
			if len(args) == len(in.Args) {
				continue
			}
			good := in.Args
			in.Args = args
			if m.Verify() == nil {
				t.Errorf("accepted: %s", in)
			}
			in.Args = good
		}
	}
}

// FuzzModule wants modules of the table's instructions to be right, to come back
// from their text, and to be judged without a panic after a change of one byte.
func FuzzModule(f *testing.F) {
	f.Add(uint64(1), uint16(10), 400, byte('x'))
	f.Add(uint64(2), uint16(200), 90000, byte('%'))
	f.Add(uint64(3), uint16(0), 60, byte('9'))
	all := allOpcodes()
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, at int, change byte) {
		g := &maker{rand.New(rand.NewPCG(seed, 0)), 4 + int32(seed%8)}
		var insts []*Inst
		for range n % 500 {
			insts = append(insts, g.inst(all[g.rng.IntN(len(all))], g.rng.IntN(16)))
		}
		m := g.module(insts)
		checkModule(t, m)
		text := m.Text()
		text[int(uint(at)%uint(len(text)))] = change
		if m, err := Parse(text); err == nil {
			_ = m.Verify() // either way
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	g := &maker{rand.New(rand.NewPCG(9, 10)), 64}
	all := allOpcodes()
	var insts []*Inst
	for range 20000 {
		insts = append(insts, g.inst(all[g.rng.IntN(len(all))], g.rng.IntN(16)))
	}
	m := g.module(insts)
	text := m.Text()
	b.Run("print", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			m.Text()
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if err := m.Verify(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
