package emulator

import (
	"unsafe"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// run is a row of operations that every lane which begins it also ends: nothing in
// it branches, waits or fails. They are counted once and computed by one call.
type run struct {
	ops  int         // how many
	code *lanes.Inst // nil: there is nothing to compute
}

// layout says where the registers lie in a warp's file, and how large that is.
type layout struct{ wide, narrow, preds, bytes int }

// computes lets a routine of the set compute the operation, if there is one of this
// name, on the slots that the operation has.
func (d *decoder) computes(name string, t ptx.Type) {
	d.computesOn(name, t, d.op.d, d.op.a, d.op.b, d.op.c)
}

// computesOn is computes with other slots, in the order of the routine's form.
func (d *decoder) computesOn(name string, t ptx.Type, slots ...int32) {
	if d.op.routine = d.k.set.Find(name, t); d.op.routine != nil {
		copy(d.op.slots[:], slots)
	}
}

// join makes runs of operations, once all slots are known. A run begins where a
// label stands, at the latest.
func (k *kernel) join(labels map[string]int) {
	l := &k.layout
	l.wide = lanes.FileStart
	l.narrow = l.wide + 256*k.slots64
	l.preds = l.narrow + 128*k.slots32
	l.bytes = l.preds + 4*k.preds
	starts := make([]bool, len(k.ops)+1)
	for _, at := range labels {
		starts[at] = true
	}
	simple := func(o *op) bool { return o.routine != nil || o.idle }
	var code []lanes.Inst
	type place struct{ run, code int }
	var places []place
	var runs []run
	for i := 0; i < len(k.ops); {
		if !simple(&k.ops[i]) {
			i++
			continue
		}
		n := 1
		for k.ops[i].guard < 0 && i+n < len(k.ops) && simple(&k.ops[i+n]) && k.ops[i+n].guard < 0 && !starts[i+n] {
			n++
		}
		first := len(code)
		for j := range k.ops[i : i+n] {
			if o := &k.ops[i+j]; o.routine != nil {
				code = append(code, o.routine.Inst(l.offsets(o)))
			}
		}
		if len(code) > first {
			code = append(code, k.set.Stop())
		} else {
			first = -1
		}
		places, runs = append(places, place{i, first}), append(runs, run{ops: n})
		i += n
	}
	for i, p := range places {
		if p.code >= 0 {
			runs[i].code = &code[p.code]
		}
		k.ops[p.run].run = &runs[i]
	}
}

// offsets says where in a file the slots of an operation lie.
func (l *layout) offsets(o *op) (at [4]uint32) {
	for i, class := range o.routine.Form {
		slot := int(o.slots[i])
		switch class {
		case 'd':
			at[i] = uint32(l.wide + 256*slot)
		case 'r':
			at[i] = uint32(l.narrow + 128*slot)
		default:
			at[i] = uint32(l.preds + 4*slot)
		}
	}
	return at
}

// newWarp makes a warp with registers for a kernel.
func (k *kernel) newWarp(b *block, index int) *warp {
	const align = 64
	memory := make([]uint64, (k.layout.bytes+align)/8+1)
	p := unsafe.Pointer(&memory[0])
	p = unsafe.Add(p, -uintptr(p)%align)
	return &warp{
		blk: b, index: index, file: p,
		d: unsafe.Slice((*wide)(unsafe.Add(p, k.layout.wide)), k.slots64),
		r: unsafe.Slice((*narrow)(unsafe.Add(p, k.layout.narrow)), k.slots32),
		p: unsafe.Slice((*uint32)(unsafe.Add(p, k.layout.preds)), k.preds),
	}
}

// spread gives each operation of a run what its first one counted.
func (k *kernel) spread(count []executed) {
	for i := range k.ops {
		if r := k.ops[i].run; r != nil {
			for j := 1; j < r.ops; j++ {
				count[i+j] = count[i]
			}
		}
	}
}
