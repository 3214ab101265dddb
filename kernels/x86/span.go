package x86

import (
	"math"
	"math/bits"

	"github.com/pce-engine/pce/kernels/simt"
)

// span bounds a number, integer or float, which is NaN at most where nan is set. Numbers without a span may
// be anything.
type span struct {
	lo, hi float64
	nan    bool
}

func (s span) within(lo, hi float64) bool { return s.lo >= lo && s.hi <= hi }

// anything is the span of a float of which nothing is known.
var anything = span{math.Inf(-1), math.Inf(1), true}

// span returns the span of a value, and whether it has one.
func (l *lowering) span(v simt.Value) (span, bool) {
	return l.spans[v], l.bounded[v]
}

// floats returns the span of a value, which is a float.
func (l *lowering) floats(v simt.Value) span {
	if s, ok := l.span(v); ok {
		return s
	}
	return anything
}

// bound notes the span of an instruction's result, where it is of use: of indices that need no clamp, and
// of floats that need no saturation when they become integers.
func (l *lowering) bound(in *simt.Instr, t simt.Type) {
	var s span
	a, b := in.Args[0], in.Args[1]
	switch {
	case in.Op == simt.Const && t == simt.F32:
		x := float64(math.Float32frombits(uint32(in.Imm)))
		s = span{x, x, x != x}
	case in.Op == simt.Const && t == simt.F64:
		x := math.Float64frombits(in.Imm)
		s = span{x, x, x != x}
	case in.Op == simt.Const && t == simt.I32:
		x := float64(int32(in.Imm))
		s = span{x, x, false}
	case in.Op == simt.Min && t.Float(): // the second operand where either is NaN
		x, y := l.floats(a), l.floats(b)
		s = span{min(x.lo, y.lo), min(x.hi, y.hi), y.nan}
		if x.nan {
			s.hi = y.hi
		}
	case in.Op == simt.Max && t.Float():
		x, y := l.floats(a), l.floats(b)
		s = span{max(x.lo, y.lo), max(x.hi, y.hi), y.nan}
		if x.nan {
			s.lo = y.lo
		}
	case in.Op == simt.Floor:
		x := l.floats(a)
		s = span{math.Floor(x.lo), math.Floor(x.hi), x.nan}
	case in.Op == simt.Add && t.Float(): // and a unit for the rounding
		x, y := l.floats(a), l.floats(b)
		s = span{x.lo + y.lo - 1, x.hi + y.hi + 1, true}
		if !(math.Abs(s.lo) < 1<<20 && math.Abs(s.hi) < 1<<20) {
			return
		}
		s.nan = x.nan || y.nan
	case (in.Op == simt.Add || in.Op == simt.Sub) && t == simt.I32:
		x, ok := l.span(a)
		y, both := l.span(b)
		if !ok || !both {
			return
		}
		if s = (span{x.lo + y.lo, x.hi + y.hi, false}); in.Op == simt.Sub {
			s = span{x.lo - y.hi, x.hi - y.lo, false}
		}
		if !s.within(math.MinInt32, math.MaxInt32) { // it may wrap
			return
		}
	case in.Op == simt.And && t == simt.I32: // where one operand is not negative, at most that
		s = span{0, math.Inf(1), false}
		for _, v := range in.Args[:2] {
			if x, ok := l.span(v); ok && x.lo >= 0 {
				s.hi = min(s.hi, x.hi)
			}
		}
		if math.IsInf(s.hi, 1) {
			return
		}
	case (in.Op == simt.Min || in.Op == simt.Max) && t == simt.I32:
		x, ok := l.span(a)
		y, both := l.span(b)
		if !ok || !both {
			return
		}
		if s = (span{min(x.lo, y.lo), min(x.hi, y.hi), false}); in.Op == simt.Max {
			s = span{max(x.lo, y.lo), max(x.hi, y.hi), false}
		}
	case in.Op == simt.Or && t == simt.I32: // below the power of 2 that both are below
		x, ok := l.span(a)
		y, both := l.span(b)
		if !ok || !both || x.lo < 0 || y.lo < 0 {
			return
		}
		s = span{max(x.lo, y.lo), float64(uint64(1)<<bits.Len64(uint64(max(x.hi, y.hi))) - 1), false}
	case in.Op == simt.Shl && t == simt.I32:
		x, ok := l.span(a)
		if s = (span{math.Ldexp(x.lo, int(in.Imm)), math.Ldexp(x.hi, int(in.Imm)), false}); !ok || x.lo < 0 || s.hi > math.MaxInt32 {
			return
		}
	case in.Op == simt.Convert && t == simt.I32:
		x, ok := l.span(a)
		switch from := l.m.Types[a]; {
		case from == simt.U8 || from == simt.U16:
			s = span{0, float64(uint64(1)<<from.Bits() - 1), false}
		case from.Float() && ok && x.within(math.MinInt32, math.MaxInt32-1<<7):
			s = span{math.Trunc(x.lo), math.Trunc(x.hi), false}
			if x.nan {
				s = span{min(s.lo, 0), max(s.hi, 0), false}
			}
		default:
			return
		}
	case in.Op == simt.Select && t == simt.I32:
		x, ok := l.span(b)
		y, both := l.span(in.Args[2])
		if !ok || !both {
			return
		}
		s = span{min(x.lo, y.lo), max(x.hi, y.hi), false}
	case in.Op == simt.Gather && t == simt.I32:
		s = l.elements(in.Ref)
	default:
		return
	}
	l.spans[in.Out], l.bounded[in.Out] = s, true
}

// elements returns the span of a table of i32.
func (l *lowering) elements(ref int) span {
	s, ok := l.contents[ref]
	if ok {
		return s
	}
	s = span{math.Inf(1), math.Inf(-1), false}
	for _, bits := range l.m.Tables[ref].Bits {
		x := float64(int32(bits))
		s.lo, s.hi = min(s.lo, x), max(s.hi, x)
	}
	l.contents[ref] = s
	return s
}
