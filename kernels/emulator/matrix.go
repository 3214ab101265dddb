package emulator

import (
	"encoding/binary"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx"
)

// ldmatrix decodes loads of 8×8 matrices of 16-bit elements.
func (d *decoder) ldmatrix() {
	d.op.kind = kindLoadMatrix
	n := 0
	for k, name := range []string{1: "x1", 2: "x2", 4: "x4"} {
		if name != "" && d.mod(name) {
			n = k
		}
	}
	if n == 0 || !d.mod("shared") || d.typ(-1) != ptx.B16 {
		return
	}
	d.op.vec = d.registers(0, n, ptx.R)
	d.address(1)
	d.op.step = loadMatrix
	if d.mod("trans") {
		d.op.step = loadMatrixTransposed
	}
}

// rows reads the rows of matrices, 16 bytes each; lane 8·i + j has the address of
// row j of matrix i.
func (w *warp) rows(o *op, m uint32, to *[32][16]byte) bool {
	if !w.whole(o, all, m) {
		return false
	}
	if _, ok := w.touchAll(o, 16, uint32(1<<(8*len(o.vec))-1), plainRead, &w.places); !ok {
		return false
	}
	for lane := range 8 * len(o.vec) {
		copy(to[lane][:], w.blk.shared[w.places[lane]:][:16])
	}
	return true
}

// loadMatrix gives lane i elements 2·(i%4) and the next of row i/4.
func loadMatrix(w *warp, o *op, m uint32) signal {
	var rows [32][16]byte
	if !w.rows(o, m, &rows) {
		return failed
	}
	for i, slot := range o.vec {
		d := &w.r[slot]
		for lane := range d {
			d[lane] = binary.LittleEndian.Uint32(rows[(8*i+lane>>2)&31][4*(lane&3):])
		}
	}
	return next
}

// loadMatrixTransposed gives lane i element i/4 of rows 2·(i%4) and the next.
func loadMatrixTransposed(w *warp, o *op, m uint32) signal {
	var rows [32][16]byte
	if !w.rows(o, m, &rows) {
		return failed
	}
	for i, slot := range o.vec {
		d := &w.r[slot]
		for lane := range d {
			row, column := 8*i+2*(lane&3), 2*(lane>>2)
			lo := binary.LittleEndian.Uint16(rows[row&31][column:])
			hi := binary.LittleEndian.Uint16(rows[(row+1)&31][column:])
			d[lane] = uint32(hi)<<16 | uint32(lo)
		}
	}
	return next
}

// mma decodes matrix products.
func (d *decoder) mma() {
	d.op.kind = kindMatrix
	types := d.in.Types
	if len(types) != 4 || types[0] != ptx.F32 || types[1] != types[2] || types[3] != ptx.F32 ||
		!d.mod("row") || !d.mod("col") {
		return
	}
	k := 16
	if d.mod("m16n8k8") {
		k = 8
	} else if !d.mod("m16n8k16") {
		return
	}
	multiply := d.options.MMA.Multiplier(d.k.set, k, types[1])
	if multiply == nil {
		return
	}
	na, nb := 4, 2
	if k == 8 && types[1] != ptx.TF32 {
		na, nb = 2, 1
	}
	d.op.vec = slices.Concat(d.registers(0, 4, ptx.R), d.registers(3, 4, ptx.R))
	d.op.vec2, d.op.vec3 = d.registers(1, na, ptx.R), d.registers(2, nb, ptx.R)
	if len(d.op.vec) != 8 || len(d.op.vec2) != na || len(d.op.vec3) != nb {
		return
	}
	d.op.off = uint64(16 * 8 * k)
	d.op.step = func(w *warp, o *op, m uint32) signal {
		if !w.whole(o, all, m) {
			return failed
		}
		p := &w.blk.product
		for i, slot := range o.vec[:4] {
			p.To[i], p.From[i] = &w.r[slot], &w.r[o.vec[4+i]]
		}
		for i, slot := range o.vec2 {
			p.Left[i&3] = &w.r[slot]
		}
		for i, slot := range o.vec3 {
			p.Right[i&1] = &w.r[slot]
		}
		multiply(p)
		return next
	}
}
