package emulator

import (
	"math/bits"
	"unsafe"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// all is the mask of a whole warp.
const all = 0xffffffff

// narrow and wide hold a register of each lane of a warp.
type (
	narrow = lanes.Narrow
	wide   = lanes.Wide
)

// signal says how a warp continues after an operation.
type signal uint8

const (
	next    signal = iota
	yielded        // it may wait for others: let them run
	waiting        // at a barrier
	done           // all lanes have exited
	failed         // warp.fault says why
)

// step does an operation for the lanes of a mask, which is not empty.
type step func(w *warp, o *op, m uint32) signal

// op is an instruction, decoded: registers are slots of the warp's files, literals
// and special registers are slots that are filled once.
type op struct {
	step    step
	guard   int32 // slot of the predicate, -1 for none
	flip    uint32
	d       int32 // destination
	a       int32
	b       int32
	c       int32
	e       int32
	vec     []int32 // registers of a vector operand
	vec2    []int32
	vec3    []int32
	size    uint64 // bytes of an element
	off     uint64 // of an address; or a number
	run     *run   // that begins here
	target  int    // of a branch
	join    int    // where a branch's lanes meet again; -1: they do not
	kind    kind
	sign    bool           // a load extends the sign
	orders  bool           // a load acquires, a store releases
	idle    bool           // there is nothing to do
	routine *lanes.Routine // does what step does; nil: there is none
	slots   [4]int32       // of the routine's destination and operands
	line    int
	from    int32 // of its instruction in the kernel's text
	to      int32 // from: the decoder has added the operation
}

// region is code that some lanes of a warp still have to run: from pc, until join.
type region struct {
	pc, join int
	mask     uint32
}

// warp is 32 threads that run together.
type warp struct {
	blk       *block
	index     int
	file      unsafe.Pointer // what holds the registers r, d and p
	r         []narrow
	d         []wide
	p         []uint32
	pc        int
	join      int
	active    uint32
	alive     uint32
	outer     []region
	state     signal
	jumps     int         // branches taken, against endless loops
	near      *allocation // of the last global access
	fault     *Fault
	spare     narrow // results before they are blended in
	spareWide wide
	places    narrow // that an access of memory finds
	copies    []asyncCopy
	groups    narrow // committed groups of each lane
}

// nowhere is the allocation of a warp that has accessed none.
var nowhere = &allocation{}

// start makes a warp ready to run a block's first instruction.
func (w *warp) start(threads int) {
	w.alive = all
	if left := threads - w.index*32; left < 32 {
		w.alive = 1<<left - 1
	}
	w.pc, w.join, w.active = 0, -1, w.alive
	w.outer, w.copies = w.outer[:0], w.copies[:0]
	w.state, w.jumps, w.near, w.fault = next, 0, nowhere, nil
	w.groups = narrow{}
}

// run continues until the warp waits, yields, ends or fails.
func (w *warp) run() signal {
	ops, count := w.blk.run.kernel.ops, w.blk.count
	for {
		o := &ops[w.pc]
		m := w.active
		if o.guard >= 0 {
			m &= w.p[o.guard] ^ o.flip
		}
		c := &count[w.pc]
		c.lanes += uint64(bits.OnesCount32(m))
		c.warps++
		if r := o.run; r != nil {
			if r.code != nil && m != 0 {
				w.blk.run.kernel.set.Run(r.code, w.file, m)
			}
			w.pc += r.ops
			continue
		}
		w.pc++
		if m == 0 {
			continue
		}
		if s := o.step(w, o, m); s != next {
			w.state = s
			return s
		}
	}
}

// branch sends lanes m to the target; the others continue.
func branch(w *warp, o *op, m uint32) signal {
	if o.target < w.pc {
		if w.jumps++; w.jumps > w.blk.run.maxJumps {
			return w.fail(bits.TrailingZeros32(m), "endless loop? %d branches back were taken", w.jumps-1)
		}
	}
	if m == w.active {
		w.pc = o.target
		return next
	}
	fall := region{w.pc, o.join, w.active &^ m}
	taken := region{o.target, o.join, m}
	if o.join != w.join && o.join >= 0 {
		w.outer = append(w.outer, region{o.join, w.join, w.active})
	}
	// The lanes that are at the meeting point already wait for the others.
	switch {
	case fall.pc == o.join:
		w.enter(taken)
	case taken.pc == o.join:
		w.enter(fall)
	default:
		w.outer = append(w.outer, fall)
		w.enter(taken)
	}
	return next
}

// branchUniform is a branch that all lanes of the warp must take together.
func branchUniform(w *warp, o *op, m uint32) signal {
	if m != w.active {
		return w.fail(bits.TrailingZeros32(w.active&^m), "bra.uni is taken by some lanes only (%08x of %08x)", m, w.active)
	}
	return branch(w, o, m)
}

// enter makes a region the one that runs.
func (w *warp) enter(r region) {
	w.pc, w.join, w.active = r.pc, r.join, r.mask
}

// meet ends a region that reaches its join.
func meet(w *warp, o *op, _ uint32) signal {
	if w.join == w.pc-1 {
		return w.leave()
	}
	return next
}

// leave continues with the region outside, or the next one that has lanes.
func (w *warp) leave() signal {
	for len(w.outer) > 0 {
		r := w.outer[len(w.outer)-1]
		w.outer = w.outer[:len(w.outer)-1]
		if r.mask &= w.alive; r.mask != 0 {
			w.enter(r)
			return next
		}
	}
	w.active = 0
	return done
}

// exit ends lanes.
func exit(w *warp, o *op, m uint32) signal {
	w.alive &^= m
	w.active &^= m
	if w.active == 0 {
		return w.leave()
	}
	return next
}

// trap ends the launch.
func trap(w *warp, o *op, m uint32) signal {
	return w.fail(bits.TrailingZeros32(m), "trap")
}

// nothing is an operation without effect here.
func nothing(*warp, *op, uint32) signal { return next }

// blockBarrier waits for all warps of the block.
func blockBarrier(w *warp, o *op, m uint32) signal {
	if m != w.alive {
		lane := bits.TrailingZeros32(w.alive &^ m)
		return w.fail(lane, "bar.sync in divergent code: lanes %08x are here, %08x have not exited", m, w.alive)
	}
	return waiting
}

// whole reports whether all lanes of a mask run; if not, it fails.
func (w *warp) whole(o *op, mask, m uint32) bool {
	if m == mask {
		return true
	}
	lane := bits.TrailingZeros32(m ^ mask)
	w.fail(lane, "lanes %08x run this, it is for lanes %08x", m, mask)
	return false
}

// warpBarrier joins the lanes that its mask names.
func warpBarrier(w *warp, o *op, m uint32) signal {
	if !w.sameMask(o, m) {
		return failed
	}
	return next
}

// bra decodes branches.
func (d *decoder) bra() {
	a := d.arg(0)
	at, ok := d.labels[a.Symbol]
	if a.Kind != ptx.SymOperand || !ok {
		d.refuse("no label %q", a.Symbol)
		return
	}
	d.op.kind, d.op.target, d.op.step = kindControl, at, branch
	if d.mod("uni") {
		d.op.step = branchUniform
	}
}

// ret decodes ret, exit and trap.
func (d *decoder) ret() {
	d.op.kind, d.op.step = kindControl, exit
	if d.in.Op == "trap" {
		d.op.step = trap
	}
}

// bar decodes barriers of the block and of the warp.
func (d *decoder) bar() {
	d.op.kind = kindBarrier
	a := d.arg(0)
	switch {
	case d.mod("warp"):
		d.op.e, d.op.step = d.narrow(0), warpBarrier
	case a.Kind == ptx.IntOperand && a.Int == 0 && len(d.in.Args) == 1:
		d.op.step = blockBarrier
	default:
		d.refuse("the emulator knows barrier 0 of all threads alone")
	}
}

// fence decodes fences. Memory is in order here; for the hunt for races, an atomic
// behind a fence releases what came before it.
func (d *decoder) fence() {
	d.op.kind = kindBarrier
	d.op.step = func(w *warp, _ *op, _ uint32) signal {
		if w.blk.run.em.memory.races {
			w.blk.fence()
		}
		return next
	}
}

// griddepcontrol decodes the edges between dependent grids: launches run one after
// the other here.
func (d *decoder) griddepcontrol() { d.op.kind, d.op.step = kindControl, nothing }
