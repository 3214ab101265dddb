package x86

import (
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// Rows of bytes are loaded four columns at a time, each row's in 32 bits, or sixteen, of as many rows as a register has.

// column returns the bytes of a column of an input's rows as low bytes, if it is one.
func (l *lowering) column(p simt.Param, ref, col int) (v reg, ok bool) {
	if p.Layout != simt.Rows || p.Type != simt.U8 || p.Width < 4 || l.gathers && !l.evex {
		return none, false
	}
	first, base := fourth(p, col)
	return l.pickByte(l.four(p, ref, first, base), uint8(col-first)), true
}

// fourth returns the first of four columns of bytes that are loaded together, of which col is one, and the first of those that
// may be. Rows of sixteen and more are loaded by sixteen columns, of which the last ones end with the row.
func fourth(p simt.Param, col int) (first, base int) {
	base = min(col&^15, max(0, p.Width-16))
	return min(base+(col-base)&^3, p.Width-4), base
}

// four returns four columns of bytes of an input's rows, each row's in 32 bits. Other blocks could not use those that
// are loaded within a block, which are not kept. base is the first of the columns that may be loaded at once.
func (l *lowering) four(p simt.Param, ref, first, base int) reg {
	key := column{false, ref, first}
	v, ok := l.fours[key]
	switch outermost := len(l.open) == 1; {
	case ok:
		return v
	case !l.evex && outermost && p.Width >= 16:
		l.sixteen(p, ref, base)
		return l.fours[key]
	case !l.evex:
		at, step := l.pointTo(false, p, ref, first)
		v = l.each32(func() asm.Mem { m := at; at.Disp += step; return m })
	case l.gathers || l.lanes != avx512.lanes:
		v = l.gatherRows(p, false, ref, first)
	case outermost && p.Width >= l.lanes:
		l.sixteen(p, ref, base)
		return l.fours[key]
	case p.Width <= 8:
		v = l.picked(p, ref, first, 0)
	default:
		v = l.gatherRows(p, false, ref, first)
	}
	if len(l.open) == 1 {
		l.fours[key] = v
	}
	return v
}

// sixteen loads sixteen columns of bytes: a register has every fourth row, and two rounds interleave four registers, so that rows are
// in order.
func (l *lowering) sixteen(p simt.Param, ref, first int) {
	at, step := l.pointTo(false, p, ref, first)
	var rows [4]reg
	for i := range rows {
		row := func(k int) asm.Mem { m := at; m.Disp += int32(4*k+i) * step; return m }
		v := l.opAt(asm.Move, asm.X, 0, row(0))
		for k := 1; k < l.lanes/4; k++ {
			if l.evex {
				v = l.opAt(asm.Insert128, l.short, uint8(k), row(k), v)
			} else {
				v = l.opAt(asm.Join, l.short, uint8(k), row(k), v)
			}
		}
		rows[i] = v
	}
	for i, in := range [2]*asm.Inst{asm.UnpackLowD, asm.UnpackHighD} {
		x, y := l.op(in, l.short, rows[0], rows[1]), l.op(in, l.short, rows[2], rows[3])
		l.fours[column{false, ref, first + 8*i}] = l.op(asm.UnpackLowQ, l.short, x, y)
		l.fours[column{false, ref, first + 8*i + 4}] = l.op(asm.UnpackHighQ, l.short, x, y)
	}
}

// lowByte returns low bytes with zeros above them.
func (l *lowering) lowByte(low reg) reg {
	p, ok := l.picks[low]
	switch {
	case l.evex || !ok || p.n == 0:
		return l.clip(simt.U8, low)
	case p.n == 3: // shifted from there
		return low
	}
	places := make([]byte, l.bytes) // one instruction, for a shift and zeros
	for i := range places {
		if places[i] = 0x80; i%4 == 0 {
			places[i] = byte(i%16) + p.n
		}
	}
	return l.op(asm.ShuffB, l.short, p.from, l.constant(places))
}
