package x86

import (
	"bytes"
	"math"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// Permutations read the low bits of an index, so that an index that is known to be within its table may
// have anything above its low byte. low maps values to registers whose lanes have the values' low bytes there,
// and anything above: their columns of bytes are not cleared, and arithmetic on them is on bytes.

// byteOf says that a register's low bytes are those number n of the lanes of from.
type byteOf struct {
	from reg
	n    uint8
}

// pickByte returns the bytes number n of lanes.
func (l *lowering) pickByte(from reg, n uint8) reg {
	if n == 0 {
		l.picks[from] = byteOf{from, 0}
		return from
	}
	v := l.opImm(asm.ShrD, l.short, 8*n, from)
	l.picks[v] = byteOf{from, n}
	return v
}

// onBytes applies an instruction on bytes to low bytes and a constant. It comes before the shift to a column, so that
// the other columns of the register share it.
func (l *lowering) onBytes(in *asm.Inst, v reg, c byte) reg {
	all := l.constant(bytes.Repeat([]byte{c}, int(l.bytes)))
	if p, ok := l.picks[v]; ok {
		return l.pickByte(l.op(in, l.short, p.from, all), p.n)
	}
	return l.op(in, l.short, v, all)
}

// lowBytes notes the low bytes of an instruction's result where they are to be had for less than all of it.
func (l *lowering) lowBytes(in *simt.Instr) {
	if !l.evex || in.Out == simt.None || in.Op.Args() == 0 {
		return
	}
	x, ok := l.low[in.Args[0]]
	if !ok {
		return
	}
	constant := func() (byte, bool) {
		s, known := l.spans[in.Args[1]]
		return byte(int64(s.lo)), known && s.lo == s.hi && s.within(math.MinInt32, math.MaxInt32)
	}
	switch in.Op {
	case simt.Convert:
		if l.m.Types[in.Out] == simt.I32 {
			l.low[in.Out] = x
		}
	case simt.Add:
		if c, ok := constant(); ok {
			l.low[in.Out] = l.onBytes(asm.AddB, x, c)
		}
	case simt.And:
		if c, ok := constant(); ok && c == 255 {
			l.low[in.Out] = x
		}
	case simt.Min:
		s, known := l.spans[in.Args[0]]
		if c, ok := constant(); ok && known && s.within(0, 255) && l.spans[in.Args[1]].within(0, 255) {
			l.low[in.Out] = l.onBytes(asm.MinUB, x, c)
		}
	case simt.Shl:
		l.low[in.Out] = l.opImm(asm.ShlD, l.short, uint8(in.Imm), x)
	case simt.Or:
		if y, ok := l.low[in.Args[1]]; ok {
			l.low[in.Out] = l.op(asm.Or, l.short, x, y)
		}
	}
}

// index returns what a table is looked up by: all of a value that may be outside of it, which is clamped, else its low
// bytes if there are any.
func (l *lowering) index(t *simt.Table, v simt.Value) reg {
	s, known := l.spans[v]
	if low, ok := l.low[v]; ok && known && s.within(0, min(255, float64(len(t.Bits)-1))) {
		return low
	}
	return l.clamp(len(t.Bits)-1, v)
}
