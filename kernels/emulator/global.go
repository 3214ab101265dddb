package emulator

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// ld decodes loads of parameters, global and shared memory.
func (d *decoder) ld() {
	t := d.typ(-1)
	d.op.size, d.op.sign = uint64(t.Bytes()), lanes.Signed(t)
	if d.mod("param") {
		d.param(t)
		return
	}
	d.elements(0, t)
	d.address(1)
	switch {
	case d.mod("shared"):
		d.op.kind, d.op.step = kindLoadShared, loadShared
		if d.mod("volatile") {
			d.op.step = loadSharedVolatile
		}
	case d.mod("global"):
		d.op.kind, d.op.step = kindLoadGlobal, loadGlobal
		if d.mod("acquire") || d.mod("volatile") {
			d.k.talks = true
			d.op.step, d.op.orders = loadStrong, d.mod("acquire")
		}
	}
}

// st decodes stores.
func (d *decoder) st() {
	t := d.typ(-1)
	d.op.size = uint64(t.Bytes())
	d.elements(1, t)
	d.address(0)
	switch {
	case d.mod("shared"):
		d.op.kind, d.op.step = kindStoreShared, storeShared
	case d.mod("global"):
		d.op.kind, d.op.step = kindStoreGlobal, storeGlobal
		if d.mod("release") || d.mod("volatile") {
			d.k.talks = true
			d.op.step, d.op.orders = storeStrong, d.mod("release")
		}
	}
}

// elements decodes what a load fills or a store takes, operand i.
func (d *decoder) elements(i int, t ptx.Type) {
	n := 1
	switch {
	case d.mod("v2"):
		n = 2
	case d.mod("v4"):
		n = 4
	}
	class := ptx.R
	if t.Bytes() == 8 {
		class = ptx.D
	}
	if a := d.arg(i); a.Kind != ptx.RegOperand && a.Kind != ptx.VecOperand {
		d.op.vec = []int32{d.value(i, t)} // a number that is stored
		return
	}
	d.op.vec = d.registers(i, n, class)
}

// address decodes [register+offset] or [symbol+offset], operand i.
func (d *decoder) address(i int) {
	a := d.arg(i)
	d.op.off = uint64(a.Int)
	class := ptx.D
	if d.mod("shared") {
		class = ptx.R
	}
	switch {
	case a.Kind != ptx.AddrOperand:
		d.refuse("operand %d must be an address", i+1)
	case a.Reg.Class == class:
		d.op.a = d.slot(a.Reg)
	case a.Reg.Class == ptx.NoClass && class == ptx.R:
		d.op.a = d.constant(false, d.symbol(a.Symbol))
	default:
		d.refuse("an address here is a register %s", class)
	}
}

// param decodes loads of parameters: they are constants of a launch.
func (d *decoder) param(t ptx.Type) {
	d.op.a = d.parameter(t)
	if t.Bytes() == 8 {
		d.op.d = d.reg(0, ptx.D)
		d.op.step = step64(copy64)
		d.computes("mov", ptx.B64)
	} else {
		d.op.d = d.reg(0, ptx.R)
		d.op.step = step32(copy32)
		d.computes("mov", ptx.B32)
	}
}

// parameter is the slot of the parameter that operand 1 names, read as a type.
func (d *decoder) parameter(t ptx.Type) int32 {
	a := d.arg(1)
	for i, p := range d.source.Params {
		if p.Name != a.Symbol || a.Kind != ptx.AddrOperand || a.Int != 0 {
			continue
		}
		if p.Type.Bytes() < t.Bytes() {
			d.refuse("parameter %s has %d bytes", p.Name, p.Type.Bytes())
			return 0
		}
		c := constant{wide: t.Bytes() == 8, from: func(w *warp) uint64 { return lanes.Extend(w.blk.run.args[i], t) }}
		return d.add(fmt.Sprint("param ", i, t), c)
	}
	d.refuse("no parameter %q", a.Symbol)
	return 0
}

// locate finds size bytes of global memory, or fails.
func (w *warp) locate(address, size uint64, lane int) (*allocation, uint64, bool) {
	a := w.near
	at := address - a.base
	n := uint64(len(a.data))
	if at >= n || n-at < size {
		m := &w.blk.run.em.memory
		a = m.find(address)
		if why := m.why(a, address, int64(size)); why != "" {
			w.fail(lane, "%d bytes at %#x: %s", size, address, why)
			return nil, 0, false
		}
		w.near, at = a, address-a.base
	}
	if address&(size-1) != 0 {
		w.fail(lane, "%d bytes at %#x: misaligned", size, address)
		return nil, 0, false
	}
	w.blk.touched[a.index] |= reads
	return a, at, true
}

// consecutive reports whether lanes access consecutive places of a size.
func consecutive(address *wide, size uint64) bool {
	want := address[0]
	for i := range address {
		if address[i] != want {
			return false
		}
		want += size
	}
	return true
}

// wholeWarp finds the bytes of all lanes where they are consecutive and need no
// check of their own; nil where each lane must be looked at.
func (w *warp) wholeWarp(o *op, m uint32, size uint64) (*allocation, uint64) {
	address := &w.d[o.a]
	base := address[0] + o.off
	if m != all || base&(size-1) != 0 || !consecutive(address, size) {
		return nil, 0
	}
	a := w.near
	at, n := base-a.base, uint64(len(a.data))
	if at >= n || n-at < 32*size {
		mem := &w.blk.run.em.memory
		a = mem.find(base)
		if mem.why(a, base, int64(32*size)) != "" {
			return nil, 0
		}
		w.near, at = a, base-a.base
	}
	if a.words != nil {
		return nil, 0
	}
	w.blk.touched[a.index] |= reads
	return a, at
}

// loadGlobal is ld.global.
func loadGlobal(w *warp, o *op, m uint32) signal {
	size := o.size * uint64(len(o.vec))
	w.blk.loaded += size * uint64(bits.OnesCount32(m))
	if w.fetch(o, m, size) {
		return next
	}
	if a, at := w.wholeWarp(o, m, size); a != nil && a.isKnown(at, 32*size) {
		w.fill(o, a.data[at:at+32*size], int(size))
		return next
	}
	if w.gather(o, m, size) {
		return next
	}
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		a, at, ok := w.locate(w.d[o.a][lane]+o.off, size, lane)
		if !ok || !w.readable(a, at, size, lane) {
			return failed
		}
		w.put(o, lane, a.data[at:at+size])
	}
	return next
}

// fetch loads elements by what their places have in common, where all lanes find
// theirs in the allocation of the first and nothing is wrong with them. If not, or
// without assembly, it reports false.
func (w *warp) fetch(o *op, m uint32, size uint64) bool {
	address := &w.d[o.a]
	run := w.blk.run
	a := run.em.memory.find(address[bits.TrailingZeros32(m)&31] + o.off)
	if a == nil || a.words != nil || uint64(len(a.data)) < size || len(a.data) > math.MaxInt32 {
		return false
	}
	set, at := run.kernel.set, &w.places
	switch set.Locate(address, a.base-o.off, uint64(len(a.data))-size, size, m, at) {
	case lanes.Same:
		first := uint64(at[bits.TrailingZeros32(m)&31])
		if !a.isKnown(first, size) {
			return false
		}
		w.fillSame(o, a.data[first:first+size], m)
	case lanes.Row:
		first := uint64(at[0])
		if !a.isKnown(first, 32*size) {
			return false
		}
		if o.size != 4 || size == 4 {
			w.fill(o, a.data[first:first+32*size], int(size))
			break
		}
		for e, slot := range o.vec {
			set.Gather(&w.r[slot], &a.data[4*e], at, m)
		}
	case lanes.Apart:
		if o.size != 4 || a.known != nil && !set.Known(&a.known[0], at, len(o.vec), m) {
			return false
		}
		for e, slot := range o.vec {
			set.Gather(&w.r[slot], &a.data[4*e], at, m)
		}
	default:
		return false
	}
	w.blk.touched[a.index] |= reads
	return true
}

// fillSame puts the same elements into the registers of the lanes of a mask.
func (w *warp) fillSame(o *op, src []byte, m uint32) {
	for e, slot := range o.vec {
		switch {
		case o.size == 4:
			w.spread(slot, binary.LittleEndian.Uint32(src[4*e:]), m)
		case o.size == 8:
			v, d := binary.LittleEndian.Uint64(src[8*e:]), &w.d[slot]
			for i := range d {
				if m>>i&1 != 0 {
					d[i] = v
				}
			}
		case o.size == 2 && o.sign:
			w.spread(slot, uint32(int32(int16(binary.LittleEndian.Uint16(src[2*e:])))), m)
		case o.size == 2:
			w.spread(slot, uint32(binary.LittleEndian.Uint16(src[2*e:])), m)
		case o.sign:
			w.spread(slot, uint32(int32(int8(src[e]))), m)
		default:
			w.spread(slot, uint32(src[e]), m)
		}
	}
}

// gather loads elements where all lanes find theirs in the allocation of the first
// and nothing is wrong with them. If not, it reports false.
func (w *warp) gather(o *op, m uint32, size uint64) bool {
	address := &w.d[o.a]
	a := w.blk.run.em.memory.find(address[bits.TrailingZeros32(m)&31] + o.off)
	if a == nil || a.words != nil || uint64(len(a.data)) < size {
		return false
	}
	w.blk.touched[a.index] |= reads
	last, base := uint64(len(a.data))-size, a.base-o.off
	for rest := m; rest != 0; rest &= rest - 1 {
		lane := bits.TrailingZeros32(rest) & 31
		at := address[lane] - base
		if at > last || (at+a.base)&(size-1) != 0 || a.known != nil && !a.isKnown(at, size) {
			return false
		}
	}
	for ; m != 0; m &= m - 1 { // once all are found, as elements may be loaded over addresses
		lane := bits.TrailingZeros32(m) & 31
		src := a.data[address[lane]-base:][:size]
		if o.size != 4 {
			w.put(o, lane, src)
			continue
		}
		w.r[o.vec[0]][lane] = binary.LittleEndian.Uint32(src)
		for e := 1; e < len(o.vec); e++ {
			w.r[o.vec[e]][lane] = binary.LittleEndian.Uint32(src[4*e:])
		}
	}
	return true
}

// readable checks that bytes were written, and by whom.
func (w *warp) readable(a *allocation, at, size uint64, lane int) bool {
	if a.known != nil && !a.isKnown(at, size) {
		w.fail(lane, "%d bytes at %#x: not initialised", size, a.base+at)
		return false
	}
	return a.words == nil || w.noteRead(a, at, size, lane)
}

// fill puts consecutive elements into the registers of all lanes.
func (w *warp) fill(o *op, src []byte, stride int) {
	switch o.size {
	case 4:
		for e, slot := range o.vec {
			d := &w.r[slot]
			for i := range d {
				d[i] = binary.LittleEndian.Uint32(src[i*stride+4*e:])
			}
		}
	case 8:
		for e, slot := range o.vec {
			d := &w.d[slot]
			for i := range d {
				d[i] = binary.LittleEndian.Uint64(src[i*stride+8*e:])
			}
		}
	default:
		for lane := range 32 {
			w.put(o, lane, src[lane*stride:])
		}
	}
}

// put puts elements into the registers of a lane.
func (w *warp) put(o *op, lane int, src []byte) {
	for e, slot := range o.vec {
		switch o.size {
		case 4:
			w.r[slot][lane] = binary.LittleEndian.Uint32(src[4*e:])
		case 8:
			w.d[slot][lane] = binary.LittleEndian.Uint64(src[8*e:])
		case 2:
			v := uint32(binary.LittleEndian.Uint16(src[2*e:]))
			if o.sign {
				v = uint32(int32(int16(v)))
			}
			w.r[slot][lane] = v
		case 1:
			v := uint32(src[e])
			if o.sign {
				v = uint32(int32(int8(v)))
			}
			w.r[slot][lane] = v
		}
	}
}

// take writes the elements of a lane to memory.
func (w *warp) take(o *op, lane int, dst []byte) {
	for e, slot := range o.vec {
		switch o.size {
		case 4:
			binary.LittleEndian.PutUint32(dst[4*e:], w.r[slot][lane])
		case 8:
			binary.LittleEndian.PutUint64(dst[8*e:], w.d[slot][lane])
		case 2:
			binary.LittleEndian.PutUint16(dst[2*e:], uint16(w.r[slot][lane]))
		case 1:
			dst[e] = byte(w.r[slot][lane])
		}
	}
}

// storeGlobal is st.global.
func storeGlobal(w *warp, o *op, m uint32) signal {
	size := o.size * uint64(len(o.vec))
	w.wrote(size * uint64(bits.OnesCount32(m)))
	if a, at := w.wholeWarp(o, m, size); a != nil {
		w.blk.touched[a.index] |= writes
		dst := a.data[at : at+32*size]
		for lane := range 32 {
			w.take(o, lane, dst[lane*int(size):])
		}
		if a.known != nil {
			copy(a.known[at:at+32*size], ones)
		}
		return next
	}
	for ; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m) & 31
		a, at, ok := w.locate(w.d[o.a][lane]+o.off, size, lane)
		if !ok || !w.writable(a, at, size, lane) {
			return failed
		}
		w.take(o, lane, a.data[at:at+size])
	}
	return next
}

// wrote counts bytes stored to global memory.
func (w *warp) wrote(n uint64) {
	w.blk.stored += n
	w.blk.moves++
}

// writable notes that bytes are written, and by whom.
func (w *warp) writable(a *allocation, at, size uint64, lane int) bool {
	w.blk.touched[a.index] |= writes
	if a.known != nil {
		copy(a.known[at:at+size], ones)
	}
	return a.words == nil || w.noteWrite(a, at, size, lane)
}
