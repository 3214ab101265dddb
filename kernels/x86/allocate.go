package x86

import (
	"math"

	"github.com/pce-engine/pce/kernels/x86/asm"
)

// never is where a register is read next that is not read again.
const never = math.MaxInt32

// near is how many nodes ahead a read is worth a register for a value that is in memory.
const near = 24

// The general registers of native code.
const (
	argsReg  = asm.DI
	frameReg = asm.SI
	poolReg  = asm.DX
	rowReg   = asm.CX
	endReg   = asm.R8
	ptrReg   = asm.AX
	tempReg  = asm.R9
	nearReg  = asm.BX
	highReg  = asm.R10
	indexReg = asm.R11
)

// allocator gives virtual registers places in one pass over the nodes, and encodes them. A value
// that has no register has a slot of the frame, where it is stored once; constants have one in the
// pool. Where registers run out, the one whose value is read last is taken. Blocks start and end with
// empty registers.
type allocator struct {
	*code
	shape
	out    asm.Code
	file   []reg   // what registers hold: vector registers, and mask registers from masksAt on
	locked uint64  // registers that the present node uses
	loc    []int8  // the place in file of a virtual register; -1: none
	slot   []int32 // its place in the frame; -1: none
	next   []int32 // where the block reads it next, while it has a register
	cur    []int32 // scratch of scan
	free   []int32 // slots
	freed  []int32 // slots that the present node still reads
	frame  int32   // bytes
	now    int32   // the node
	window int32   // where nearReg points in the pool; -1: unknown
	far    int32   // the last element of the pool that was read; see follow
	again  int32   // how many nodes ahead a read is worth a register for a constant
	points pointed // what ptrReg has
	block  *block
}

// pointed is a pointer plus the row times a distance of rows in bytes.
type pointed struct {
	num, side int32
	known     bool
}

func newAllocator(c *code, s shape) *allocator {
	n := len(c.regs)
	a := &allocator{code: c, shape: s, file: make([]reg, masksAt+8), loc: make([]int8, n), slot: make([]int32, n), next: make([]int32, n), cur: make([]int32, n)}
	for i := range a.loc {
		a.loc[i], a.slot[i], a.cur[i] = -1, -1, never
	}
	a.window, a.far = -1, -1
	return a
}

// scan finds where the block reads each argument and result of its nodes next, and which nodes
// nothing reads.
func (a *allocator) scan(b *block) {
	for i := len(b.nodes) - 1; i >= 0; i-- {
		n := &b.nodes[i]
		n.first = a.cur[n.dst]
		if n.dst != none && n.kind != put {
			if n.kind != variable && n.first == never {
				n.dead = true
				continue
			}
			a.cur[n.dst] = never
		}
		for k, r := range n.args {
			n.next[k] = a.cur[r]
		}
		if n.body != nil {
			n.body.outerNext = make([]int32, len(n.body.outer))
			for k, r := range n.body.outer {
				n.body.outerNext[k] = a.cur[r]
			}
		}
		a.mention(n, int32(i))
	}
	for i := range b.nodes { // leave nothing behind
		a.mention(&b.nodes[i], never)
	}
}

// mention notes that a node reads or fills registers.
func (a *allocator) mention(n *node, at int32) {
	for _, r := range n.args {
		a.cur[r] = at
	}
	if n.kind == put || at == never {
		a.cur[n.dst] = at
	}
	if n.body != nil {
		for _, r := range n.body.outer {
			a.cur[r] = at
		}
	}
}

// place returns where a value is in memory.
func (a *allocator) place(r reg) asm.Operand {
	if at := a.regs[r].pool; at >= 0 {
		if each := a.regs[r].each; each != 0 {
			return a.elementAt(at, int32(each)).Each()
		}
		return asm.At(poolReg, at)
	}
	if a.slot[r] < 0 {
		panic("BUG: x86: a value is neither in a register nor in memory")
	}
	return asm.At(frameReg, a.slot[r])
}

// reach is how far from a register an element of the pool may be on either side, in sizes of the element, so that its
// displacement takes a byte.
const reach = 127

// follow moves nearReg on to elements of the pool that a node is the first to read. They lie in the order in which they are first
// read, so most instructions have them in reach. It comes before the node's operands are chosen, as these keep the register's value.
func (a *allocator) follow(n *node) {
	for _, r := range n.args {
		i := &a.regs[r]
		if i.pool < 0 || i.each == 0 || i.pool <= a.far {
			continue
		}
		a.far = i.pool
		if a.window < 0 || i.pool-a.window > 4*reach {
			a.window = (i.pool + 4*reach) &^ 7 // whole steps from elements of either size
			a.out.Address(nearReg, asm.At(poolReg, a.window))
		}
	}
}

// elementAt returns where an element of the pool is: from nearReg, or from the start.
func (a *allocator) elementAt(at, size int32) asm.Operand {
	if d := at - a.window; a.window >= 0 && d >= -size*reach && d <= size*reach && d%size == 0 {
		return asm.At(nearReg, d)
	}
	return asm.At(poolReg, at)
}

// Mask registers are places of file from masksAt on: the first one is that of no mask, and the last one is scratch.
const masksAt = 32

// where returns the register that a place of file is.
func where(place int8) asm.Reg { return asm.Reg(place) % masksAt }

// take returns a register for a value, and moves the value that is there to memory.
func (a *allocator) take(r reg) asm.Reg {
	first, last := 0, a.registers
	if a.regs[r].mask {
		first, last = masksAt+1, masksAt+int(scratch)
	}
	best, far := -1, int32(-1)
	for i := first; i < last; i++ {
		held := a.file[i]
		switch {
		case a.locked>>i&1 != 0:
		case held == none:
			if far < never {
				best, far = i, never
			}
		case a.next[held] > far:
			best, far = i, a.next[held]
		}
	}
	if best < 0 {
		panic("BUG: x86: a node locks every register")
	}
	if a.file[best] != none {
		a.store(a.file[best])
		a.drop(a.file[best])
	}
	a.file[best], a.loc[r] = r, int8(best)
	a.locked |= 1 << best
	return where(int8(best))
}

// store makes sure that a value that has a register is in memory too.
func (a *allocator) store(r reg) {
	if a.regs[r].pool >= 0 || a.slot[r] >= 0 {
		return
	}
	a.slot[r] = a.newSlot()
	a.keep(r, where(a.loc[r]), a.place(r))
}

// keep encodes a store of a register that has a value like that of r.
func (a *allocator) keep(r reg, from asm.Reg, to asm.Operand) {
	if a.regs[r].mask {
		a.out.VEX(a.masks.Store, asm.X, from, 0, to)
		return
	}
	a.vector(asm.MoveTo, a.full, from, 0, to)
}

func (a *allocator) newSlot() int32 {
	if n := len(a.free); n > 0 {
		s := a.free[n-1]
		a.free = a.free[:n-1]
		return s
	}
	a.frame += a.bytes
	return a.frame - a.bytes
}

// drop takes a value's register away.
func (a *allocator) drop(r reg) {
	if l := a.loc[r]; l >= 0 {
		a.file[l], a.loc[r] = none, -1
	}
}

// use returns the register of an argument, which it loads if it has none.
func (a *allocator) use(r reg, next int32) asm.Reg {
	if a.loc[r] < 0 {
		d := a.take(r)
		switch i := &a.regs[r]; {
		case i.mask:
			a.out.VEX(a.masks.Move, asm.X, d, 0, a.place(r))
		case i.each == 4:
			a.vector(asm.LoadEach, a.full, d, 0, a.elementAt(i.pool, 4))
		case i.each == 8:
			a.vector(asm.LoadEach64, a.full, d, 0, a.elementAt(i.pool, 8))
		default:
			a.vector(asm.Move, a.full, d, 0, a.place(r))
		}
	}
	a.locked |= 1 << a.loc[r]
	a.next[r] = next
	return where(a.loc[r])
}

// operand returns a register or the memory of an argument of an instruction: memory if it is there alone, is not read
// again soon, and the instruction can read it there.
func (a *allocator) operand(in *asm.Inst, r reg, next int32) asm.Operand {
	if other, ok := renamed[in]; ok {
		in = other
	}
	if i := &a.regs[r]; a.loc[r] < 0 && !i.mask && (i.each == 0 || in.Broadcasts(i.each)) && (next == never || next-a.now > a.worth(i)) {
		return a.place(r)
	}
	return asm.R(a.use(r, next))
}

// worth returns how many nodes ahead a read is worth a register for a value that is in memory.
func (a *allocator) worth(i *info) int32 {
	if i.pool >= 0 {
		return a.again
	}
	return near
}

// end frees what an argument has if the block does not read it again. Slots of values of other
// blocks stay, as loops come back to them.
func (a *allocator) end(r reg, next int32) {
	if r == none || next != never {
		return
	}
	a.drop(r)
	if a.regs[r].pool < 0 && a.regs[r].owner == a.block.id && a.slot[r] >= 0 {
		a.freed = append(a.freed, a.slot[r])
		a.slot[r] = -1
	}
}

// ends frees the arguments of a node that are not read again. A result that is chosen afterwards may
// take the register of any of them: instructions read before they write.
func (a *allocator) ends(n *node) {
	for k, r := range n.args {
		a.end(r, n.next[k])
	}
	a.locked = 0
}

// result gives the result of a node a register.
func (a *allocator) result(n *node) asm.Reg {
	a.next[n.dst] = n.first
	d := a.take(n.dst)
	a.locked = 0
	return d
}

// flush stores the values that are read later and empties all registers.
func (a *allocator) flush() {
	for _, r := range a.file {
		if r != none {
			if a.next[r] != never {
				a.store(r)
			}
			a.drop(r)
		}
	}
}

// emit encodes a block, which starts and ends with empty registers.
func (a *allocator) emit(b *block) {
	outer, now := a.block, a.now
	a.block = b
	a.scan(b)
	for i := range b.nodes {
		if a.now = int32(i); !b.nodes[i].dead {
			a.follow(&b.nodes[i])
			a.node(&b.nodes[i])
			a.free, a.freed = append(a.free, a.freed...), a.freed[:0]
		}
	}
	for _, r := range a.file {
		a.drop(r)
	}
	a.block, a.now = outer, now
}

// control encodes a guard or a loop.
func (a *allocator) control(n *node) {
	end := a.out.Label()
	var counter asm.Operand
	var count int32
	top := a.out.Label()
	if n.kind == loop {
		count = a.newSlot()
		counter = asm.At(frameReg, count)
		a.flush()
		a.out.StoreImm(counter, n.num)
		a.out.Here(top)
		a.window = -1
	}
	a.points = pointed{}
	mask := a.use(n.args[0], n.next[0])
	a.any(mask)
	a.locked = 0
	if n.kind == loop {
		a.drop(n.args[0])
	} else {
		a.next[n.args[0]] = a.now // the body may read it
		a.flush()
	}
	a.out.JumpIf(asm.Zero, end)
	a.emit(n.body)
	if n.kind == loop {
		a.out.SubMem(counter, 1)
		a.out.JumpIf(asm.NotZero, top)
		a.free = append(a.free, count)
	}
	a.out.Here(end)
	a.window, a.points = -1, pointed{}
	for k, r := range n.body.outer {
		a.end(r, n.body.outerNext[k])
	}
	a.end(n.args[0], n.next[0])
}
