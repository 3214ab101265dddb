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

// together is how many groups of rows have their bytes of a column in one register: those of a lane's rows, in 32 bits.
const together = 4

// ofTurn returns the bytes of a column of an input as low bytes, where a turn has several groups of rows. The bytes of all
// groups are in one register, those of a lane's rows in its 32 bits, so that arithmetic and lookups are done for all of them
// at once.
func (l *lowering) ofTurn(p simt.Param, ref, col int) (v reg, ok bool) {
	rows := len(l.turn) * l.lanes
	if !l.evex || l.gathers || p.Type != simt.U8 || rows == l.lanes || rows > together*l.lanes {
		return none, false
	}
	key := column{false, ref, col}
	if _, ok := l.whole[key]; !ok {
		switch {
		case p.Layout == simt.Columns || p.Width == 1:
			l.whole[key] = byteOf{l.ofColumns(p, ref, col, rows), 0}
		case p.Width >= 4 && rows == together*l.lanes && l.lanes == avx512.lanes:
			l.ofRows(p, ref, col)
		default:
			return none, false
		}
	}
	all := l.whole[key]
	return l.pickByte(all.from, (all.n+uint8(int(l.first)/l.lanes))&3), true
}

// ofColumns loads the bytes of a column of columns for all rows of a turn. It is lowered for the first group.
func (l *lowering) ofColumns(p simt.Param, ref, col, rows int) reg {
	places := make([]byte, l.bytes)
	for i := range places {
		places[i] = byte((i%together*l.lanes + i/together) % rows)
	}
	at, _ := l.pointTo(false, p, ref, col)
	if rows == together*l.lanes {
		return l.opAt(asm.PermuteB, l.short, 0, at, l.constant(places))
	}
	half := asm.Y
	if l.short == asm.Y {
		half = asm.X
	}
	return l.op(asm.PermuteB, l.short, l.constant(places), l.opAt(asm.Move, half, 0, at))
}

// ofRows loads four columns of bytes of rows for the four groups of a turn. The columns of group g are moved by g bytes
// within their 32 bits, so that a column is in another byte of each group, and bits are chosen among the groups.
func (l *lowering) ofRows(p simt.Param, ref, col int) {
	first, base := fourth(p, col)
	now := l.group
	var r []reg
	for g := range l.turn {
		l.group = l.turn[g]
		if p.Width <= 8 {
			r = append(r, l.picked(p, ref, first, g))
		} else if v := l.four(p, ref, first, base); g > 0 {
			r = append(r, l.opImm(asm.RotateD, l.full, uint8(8*g), v))
		} else {
			r = append(r, v)
		}
	}
	l.group = now
	merge := func(mask uint32, x, y reg) reg {
		return l.value(node{kind: merge, args: [3]reg{x, y, l.splat32(mask)}})
	}
	const even, low = 0x00FF00FF, 0x0000FFFF
	a, b, c, d := merge(even, r[0], r[1]), merge(even, r[2], r[3]), merge(even, r[3], r[0]), merge(even, r[1], r[2])
	for k, v := range []reg{merge(low, a, b), merge(low, c, d), merge(low, b, a), merge(low, d, c)} {
		if key := (column{false, ref, first + k}); l.whole[key].from == none {
			l.whole[key] = byteOf{v, uint8(k)}
		}
	}
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

// fitsByte reports whether a value is known to be one of a byte.
func (l *lowering) fitsByte(v simt.Value) bool {
	s, known := l.span(v)
	return known && s.within(0, 255)
}

// either returns the bits of two low bytes, which groups of rows share that lie in one register.
func (l *lowering) either(x, y reg) reg {
	p, ok := l.picks[x]
	q, both := l.picks[y]
	if !ok || !both {
		return l.op(asm.Or, l.short, x, y)
	}
	if p.n != q.n {
		q.from = l.opImm(asm.RotateD, l.short, 8*((p.n-q.n)&3), q.from)
	}
	return l.pickByte(l.op(asm.Or, l.short, p.from, q.from), p.n)
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
		s, known := l.span(in.Args[1])
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
		if c, ok := constant(); ok && l.fitsByte(in.Args[0]) && l.fitsByte(in.Args[1]) {
			l.low[in.Out] = l.onBytes(asm.MinUB, x, c)
		}
	case simt.Shl:
		by := uint8(in.Imm)
		if p, ok := l.picks[x]; ok && l.fitsByte(in.Out) {
			l.low[in.Out] = l.pickByte(l.opImm(asm.ShlD, l.short, by, p.from), p.n)
			return
		}
		l.low[in.Out] = l.opImm(asm.ShlD, l.short, by, x)
	case simt.Or:
		if y, ok := l.low[in.Args[1]]; ok {
			l.low[in.Out] = l.either(x, y)
		}
	}
}

// index returns what a table is looked up by: all of a value that may be outside of it, which is clamped, else its low
// bytes if there are any.
func (l *lowering) index(t *simt.Table, v simt.Value) reg {
	s, known := l.span(v)
	if low, ok := l.low[v]; ok && known && s.within(0, min(255, float64(len(t.Bits)-1))) {
		return low
	}
	return l.clamp(len(t.Bits)-1, v)
}
