package ptx

import (
	"fmt"
	"math"
	"strconv"
)

// Value is a register with the type of what is in it, or a literal.
type Value struct {
	Type Type
	op   Operand
}

// Reg returns the register of a value that is one.
func (v Value) Reg() Reg { return v.op.Reg }

// Builder writes the body of one kernel. Its methods append instructions and
// return their results in new registers, or in the one that Into has named. An
// operand is a Value, or a Go number that becomes a literal of the type of the
// other operands. Operands that do not fit an instruction are a mistake in the
// kernel's source; the builder panics.
type Builder struct {
	k       *Kernel
	labels  int
	guard   Reg
	negated bool
	into    Reg
	special map[string]Value
}

// NewKernel starts a kernel whose blocks have at most threads threads, blocks of
// which must fit on a multiprocessor.
func NewKernel(name string, threads, blocks int) *Builder {
	return &Builder{k: &Kernel{Name: name, Threads: threads, Blocks: blocks}, special: map[string]Value{}}
}

// Kernel ends the kernel and returns it.
func (b *Builder) Kernel() *Kernel {
	b.emit("ret", nil, nil)
	return b.k
}

// Var returns a new register for values of a type.
func (b *Builder) Var(t Type) Value {
	c := t.Class()
	if c == NoClass {
		panic(fmt.Sprintf("ptx: kernel %s: no register holds type %d", b.k.Name, t))
	}
	id := b.k.Regs[c]
	b.k.Regs[c]++
	return Value{t, Operand{Kind: RegOperand, Reg: Reg{c, id}}}
}

// Vars returns n new registers.
func (b *Builder) Vars(t Type, n int) []Value {
	vs := make([]Value, n)
	for i := range vs {
		vs[i] = b.Var(t)
	}
	return vs
}

// Into returns a builder of the same kernel whose first result goes to the register
// of v. It is for one instruction, whose operands may come from instructions of b.
func (b *Builder) Into(v Value) *Builder {
	if v.op.Kind != RegOperand {
		panic(fmt.Sprintf("ptx: kernel %s: a result needs a register", b.k.Name))
	}
	one := *b
	one.into = v.op.Reg
	return &one
}

// result returns the destination of the next instruction.
func (b *Builder) result(t Type) Value {
	if b.into.Class == NoClass {
		return b.Var(t)
	}
	v := Value{t, Operand{Kind: RegOperand, Reg: b.into}}
	if b.into.Class != t.Class() {
		panic(fmt.Sprintf("ptx: kernel %s: result of type %d in a register of another class", b.k.Name, t))
	}
	b.into = Reg{}
	return v
}

func (b *Builder) emit(op string, mods []string, types []Type, args ...Operand) {
	if b.into.Class != NoClass {
		panic(fmt.Sprintf("ptx: kernel %s: %s has no result to put anywhere", b.k.Name, op))
	}
	b.k.Body = append(b.k.Body, Stmt{Inst: &Inst{Guard: b.guard, Negated: b.negated, Op: op, Mods: mods, Types: types, Args: args}})
}

// operand turns x into an operand of type t.
func (b *Builder) operand(x any, t Type) Operand {
	switch x := x.(type) {
	case Value:
		if x.op.Kind == RegOperand && x.op.Reg.Class != t.Class() && !(t.Class() == H && x.op.Reg.Class == R) {
			panic(fmt.Sprintf("ptx: kernel %s: operand of type %d, want %d", b.k.Name, x.Type, t))
		}
		return x.op
	case int:
		return b.literal(float64(x), int64(x), t)
	case int64:
		return b.literal(float64(x), x, t)
	case uint32:
		return b.literal(float64(x), int64(x), t)
	case uint64:
		return b.literal(float64(x), int64(x), t)
	case float64:
		return b.literal(x, int64(x), t)
	case float32:
		return b.literal(float64(x), int64(x), t)
	}
	panic(fmt.Sprintf("ptx: kernel %s: operand of Go type %T", b.k.Name, x))
}

func (b *Builder) literal(f float64, i int64, t Type) Operand {
	switch t {
	case F32:
		return Operand{Kind: F32Operand, Int: int64(math.Float32bits(float32(f)))}
	case F64:
		return Operand{Kind: F64Operand, Int: int64(math.Float64bits(f))}
	}
	return Operand{Kind: IntOperand, Int: i}
}

// typeOf is the type of the first operand that is a value.
func (b *Builder) typeOf(xs ...any) Type {
	for _, x := range xs {
		if v, ok := x.(Value); ok {
			return v.Type
		}
	}
	panic(fmt.Sprintf("ptx: kernel %s: an instruction on literals alone", b.k.Name))
}

// op emits an instruction whose operands and result have one type.
func (b *Builder) op(name string, mods []string, t Type, xs ...any) Value {
	args := make([]Operand, 1, len(xs)+1)
	for _, x := range xs {
		args = append(args, b.operand(x, t))
	}
	d := b.result(t)
	args[0] = d.op
	b.emit(name, mods, []Type{t}, args...)
	return d
}

// Param declares a parameter and loads it. Pointers are U64.
func (b *Builder) Param(name string, t Type) Value {
	b.k.Params = append(b.k.Params, Param{name, t})
	d := b.result(t)
	b.emit("ld", []string{"param"}, []Type{t}, d.op, Operand{Kind: AddrOperand, Symbol: name})
	return d
}

// Pointer declares a parameter that is an address of global memory, and loads it.
func (b *Builder) Pointer(name string) Value {
	p := b.Param(name, U64)
	d := b.Var(U64)
	b.emit("cvta", []string{"to", "global"}, []Type{U64}, d.op, p.op)
	return d
}

// Shared declares bytes of shared memory and returns their address.
func (b *Builder) Shared(name string, align, bytes int) Value {
	b.k.Shared = append(b.k.Shared, Var{name, align, bytes})
	return b.Symbol(name)
}

// Symbol returns the address of a shared variable.
func (b *Builder) Symbol(name string) Value {
	d := b.result(U32)
	b.emit("mov", nil, []Type{U32}, d.op, Operand{Kind: SymOperand, Symbol: name})
	return d
}

// Special reads a special register, once in a kernel: call it before any branch.
func (b *Builder) Special(name string) Value {
	v, ok := b.special[name]
	if !ok {
		v = b.Var(U32)
		b.emit("mov", nil, []Type{U32}, v.op, Operand{Kind: SpecOperand, Symbol: name})
		b.special[name] = v
	}
	return v
}

// Mov copies a value or a literal of type t to a new register.
func (b *Builder) Mov(t Type, x any) Value { return b.op("mov", nil, movType(t), x).As(t) }

// movType is the type under which mov copies values of type t.
func movType(t Type) Type {
	switch t {
	case Pred, F32, F64, U32, S32, U64:
		return t
	}
	switch t.Class() {
	case H:
		return B16
	case R:
		return B32
	}
	return B64
}

// Set copies x to the register of v.
func (b *Builder) Set(v Value, x any) { b.Into(v).Mov(v.Type, x) }

// As is the same register seen as another type of its size.
func (v Value) As(t Type) Value {
	if v.op.Kind != RegOperand || t.Class() != v.op.Reg.Class {
		panic(fmt.Sprintf("ptx: a value of type %d seen as %d", v.Type, t))
	}
	return Value{t, v.op}
}

func (b *Builder) label() string {
	b.labels++
	return "L" + strconv.Itoa(b.labels)
}

func (b *Builder) place(label string) { b.k.Body = append(b.k.Body, Stmt{Label: label}) }

// branch goes to a label, if p is given where it is not negated.
func (b *Builder) branch(label string, p *Value, negated bool) {
	g, n := b.guard, b.negated
	if g.Class != NoClass {
		panic(fmt.Sprintf("ptx: kernel %s: a branch under Guard", b.k.Name))
	}
	if p != nil {
		b.guard, b.negated = p.op.Reg, negated
	}
	b.emit("bra", nil, nil, Operand{Kind: SymOperand, Symbol: label})
	b.guard, b.negated = g, n
}

// If emits what then emits, for the threads in which p holds.
func (b *Builder) If(p Value, then func()) { b.IfElse(p, then, nil) }

// Unless emits what then emits, for the threads in which p does not hold.
func (b *Builder) Unless(p Value, then func()) {
	end := b.label()
	b.branch(end, &p, false)
	then()
	b.place(end)
}

// IfElse is If with another branch for the other threads.
func (b *Builder) IfElse(p Value, then, otherwise func()) {
	end := b.label()
	if otherwise == nil {
		b.branch(end, &p, true)
		then()
		b.place(end)
		return
	}
	second := b.label()
	b.branch(second, &p, true)
	then()
	b.branch(end, nil, false)
	b.place(second)
	otherwise()
	b.place(end)
}

// Guard puts a predicate on every instruction that do emits; these may not branch.
func (b *Builder) Guard(p Value, do func()) {
	if b.guard.Class != NoClass {
		panic(fmt.Sprintf("ptx: kernel %s: Guard in Guard", b.k.Name))
	}
	b.guard = p.op.Reg
	do()
	b.guard = Reg{}
}

// For counts i from lo while it is below hi, in steps. The bound is read in every
// round.
func (b *Builder) For(t Type, lo, hi, step any, body func(i Value)) {
	i := b.Mov(t, lo)
	b.While(func() Value { return b.Lt(i, hi) }, func() {
		body(i)
		b.Into(i).Add(i, step)
	})
}

// While repeats body as long as the predicate that cond emits holds.
func (b *Builder) While(cond func() Value, body func()) {
	top, end := b.label(), b.label()
	b.place(top)
	p := cond()
	b.branch(end, &p, true)
	body()
	b.branch(top, nil, false)
	b.place(end)
}

// Repeat does body, again as long as the predicate that it returns holds.
func (b *Builder) Repeat(body func() Value) {
	top := b.label()
	b.place(top)
	p := body()
	b.branch(top, &p, false)
}

// Return ends the thread, or those in which the guard holds.
func (b *Builder) Return() { b.emit("ret", nil, nil) }

// ReturnIf ends the threads in which p holds.
func (b *Builder) ReturnIf(p Value) { b.Guard(p, b.Return) }
