package ptx

import (
	"fmt"
	"strconv"
)

// At returns the address of element i, of size bytes, of what base points to.
func (b *Builder) At(base Value, i any, size int) Value {
	switch base.Type {
	case U64:
		if _, ok := i.(Value); !ok {
			panic(fmt.Sprintf("ptx: kernel %s: address of a literal element; use an offset", b.k.Name))
		}
		x := i.(Value)
		switch x.Type {
		case U32, B32:
			return b.MadWide(x.As(U32), size, base)
		case S32:
			return b.MadWide(x, size, base.As(S64)).As(U64)
		}
		return b.Mad(x.As(U64), size, base)
	case U32:
		return b.Mad(i.(Value).As(U32), size, base)
	}
	panic(fmt.Sprintf("ptx: kernel %s: an address of type %d", b.k.Name, base.Type))
}

func space(addr Value) string {
	if addr.Type == U64 {
		return "global"
	}
	return "shared"
}

func address(addr Value, offset int) Operand {
	return Operand{Kind: AddrOperand, Reg: addr.op.Reg, Int: int64(offset)}
}

// Load reads a value of type t at addr+offset: global memory at U64 addresses,
// shared memory at U32 ones. Values of 8 and 16 bits come widened to U32 where t is
// U8 or U16.
func (b *Builder) Load(t Type, addr Value, offset int, mods ...string) Value {
	r := t
	if t == U8 || t == U16 {
		r = U32
	}
	if t == U16 { // loads of 16 bits need a register of 16
		h := b.Var(U16)
		b.load(t, addr, offset, mods, h.op)
		return b.Cvt(U32, h)
	}
	d := b.result(r)
	b.load(t, addr, offset, mods, d.op)
	return d
}

// LoadN reads n values, 2 or 4, at an address that is a multiple of their size.
func (b *Builder) LoadN(t Type, n int, addr Value, offset int, mods ...string) []Value {
	vs := b.Vars(t, n)
	b.load(t, addr, offset, append(mods[:len(mods):len(mods)], "v"+strconv.Itoa(n)), vec(vs))
	return vs
}

func (b *Builder) load(t Type, addr Value, offset int, mods []string, dst Operand) {
	b.emit("ld", append([]string{space(addr)}, mods...), []Type{t}, dst, address(addr, offset))
}

func vec(vs []Value) Operand {
	o := Operand{Kind: VecOperand}
	for _, v := range vs {
		o.Vec = append(o.Vec, v.op.Reg)
	}
	return o
}

// Store writes x at addr+offset.
func (b *Builder) Store(t Type, addr Value, offset int, x any) {
	b.emit("st", []string{space(addr)}, []Type{t}, address(addr, offset), b.operand(x, t))
}

// StoreN writes 2 or 4 values.
func (b *Builder) StoreN(t Type, addr Value, offset int, xs []Value) {
	b.emit("st", []string{space(addr), "v" + strconv.Itoa(len(xs))}, []Type{t}, address(addr, offset), vec(xs))
}

// Red adds to, or takes the extreme with, a number in memory: op is "add", "min",
// "max", "or" or "and".
func (b *Builder) Red(op string, t Type, addr Value, offset int, x any) {
	b.emit("red", []string{space(addr), op}, []Type{t}, address(addr, offset), b.operand(x, t))
}

// CopyAsync starts a copy of size bytes, 4, 8 or 16, from global to shared memory.
// With have, a register, only that many are read and zeros follow.
func (b *Builder) CopyAsync(dst Value, dstOffset int, src Value, srcOffset, size int, have ...Value) {
	level := "ca"
	if size == 16 {
		level = "cg"
	}
	args := []Operand{address(dst, dstOffset), address(src, srcOffset), {Kind: IntOperand, Int: int64(size)}}
	for _, h := range have {
		args = append(args, h.op)
	}
	b.emit("cp.async", []string{level, "shared", "global"}, nil, args...)
}

// Commit ends a group of copies.
func (b *Builder) Commit() { b.emit("cp.async", []string{"commit_group"}, nil) }

// WaitGroup waits until at most n groups of copies are under way.
func (b *Builder) WaitGroup(n int) {
	b.emit("cp.async", []string{"wait_group"}, nil, Operand{Kind: IntOperand, Int: int64(n)})
}

// Sync waits for all threads of the block.
func (b *Builder) Sync() {
	b.emit("bar", []string{"sync"}, nil, Operand{Kind: IntOperand})
}

const allLanes = 0xffffffff

// SyncWarp waits for all lanes of the warp.
func (b *Builder) SyncWarp() {
	b.emit("bar", []string{"warp", "sync"}, nil, Operand{Kind: IntOperand, Int: allLanes})
}

// Shuffle exchanges values between lanes: mode is "bfly", "idx", "down" or "up".
func (b *Builder) Shuffle(mode string, x Value, lane any) Value {
	clamp := int64(31)
	if mode == "up" {
		clamp = 0
	}
	arg := b.operand(lane, U32)
	d := b.result(x.Type)
	b.emit("shfl", []string{"sync", mode}, []Type{B32}, d.op, x.op, arg,
		Operand{Kind: IntOperand, Int: clamp}, Operand{Kind: IntOperand, Int: allLanes})
	return d
}

// Any reports whether p holds in a lane of the warp.
func (b *Builder) Any(p Value) Value {
	d := b.result(Pred)
	b.emit("vote", []string{"sync", "any"}, []Type{Pred}, d.op, p.op, Operand{Kind: IntOperand, Int: allLanes})
	return d
}

// Ballot returns the lanes in which p holds, a bit each.
func (b *Builder) Ballot(p Value) Value {
	d := b.result(B32)
	b.emit("vote", []string{"sync", "ballot"}, []Type{B32}, d.op, p.op, Operand{Kind: IntOperand, Int: allLanes})
	return d.As(U32)
}

// WarpReduce combines x over the lanes of a warp, by "add" or "max", in the order
// of a butterfly; every lane gets the result.
func (b *Builder) WarpReduce(x Value, combine func(x, y any) Value) Value {
	for _, m := range []int{16, 8, 4, 2, 1} {
		x = combine(x, b.Shuffle("bfly", x, m))
	}
	return x
}

// MMA adds the product of two fragments of type t to acc, four F32: m16n8k16 of
// F16 or BF16, or m16n8k8 of TF32.
func (b *Builder) MMA(t Type, acc, x, y []Value) {
	shape := "m16n8k16"
	if t == TF32 {
		shape = "m16n8k8"
	}
	b.emit("mma", []string{"sync", "aligned", shape, "row", "col"}, []Type{F32, t, t, F32}, vec(acc), vec(x), vec(y), vec(acc))
}
