package x86

import (
	"math"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86/asm"
)

// typed is the instruction of an operation for f32, f64, i32 and i64.
var typed = map[simt.Op][4]*asm.Inst{
	simt.Add: {asm.AddPS, asm.AddPD, asm.AddD, asm.AddQ},
	simt.Sub: {asm.SubPS, asm.SubPD, asm.SubD, asm.SubQ},
	simt.Mul: {asm.MulPS, asm.MulPD, asm.MulD, nil},
	simt.Div: {asm.DivPS, asm.DivPD, nil, nil},
	simt.Min: {asm.MinPS, asm.MinPD, asm.MinD, nil},
	simt.Max: {asm.MaxPS, asm.MaxPD, asm.MaxD, nil},
}

// typed512 is those of i64 that only AVX-512 has.
var typed512 = map[simt.Op]*asm.Inst{simt.Mul: asm.MulQ, simt.Min: asm.MinQ, simt.Max: asm.MaxQ}

// logic lowers an operation on preds.
func (l *lowering) logic(op simt.Op, x, y reg) reg {
	w := l.short
	and, or, xor := asm.And, asm.Or, asm.Xor
	if l.masks != nil {
		w, and, or, xor = asm.Y, l.masks.And, l.masks.Or, l.masks.Xor
	}
	switch op {
	case simt.And:
		return l.op(and, w, x, y)
	case simt.Or:
		return l.op(or, w, x, y)
	case simt.Xor:
		return l.op(xor, w, x, y)
	case simt.Not:
		return l.op(xor, w, x, l.always())
	}
	panic(unknown(op, simt.Pred))
}

// without returns the pred of lanes where x holds and y does not.
func (l *lowering) without(x, y reg) reg {
	if l.masks != nil {
		return l.op(l.masks.AndNot, asm.Y, y, x)
	}
	return l.op(asm.AndNot, l.short, y, x)
}

// arithmetic lowers an operation whose operands and result have one type.
func (l *lowering) arithmetic(op simt.Op, t simt.Type, args [3]reg) reg {
	w := l.width(t)
	x, y := args[0], args[1]
	if t == simt.Pred {
		return l.logic(op, x, y)
	}
	if list, ok := typed[op]; ok && t <= simt.I64 && list[t] != nil {
		return l.op(list[t], w, x, y)
	}
	if in := typed512[op]; l.evex && in != nil {
		return l.op(in, w, x, y)
	}
	double := t == simt.F64
	switch op {
	case simt.FMA:
		in := asm.FMA213PS
		if double {
			in = asm.FMA213PD
		}
		return l.value(node{kind: fma, in: in, w: w, args: args})
	case simt.Neg:
		if double {
			return l.op(asm.Xor, w, x, l.splat64(1<<63))
		}
		return l.op(asm.Xor, w, x, l.splat32(1<<31))
	case simt.Abs:
		if double {
			return l.op(asm.And, w, x, l.splat64(1<<63-1))
		}
		return l.op(asm.And, w, x, l.splat32(1<<31-1))
	case simt.Floor:
		const down = 8 | 1
		if double {
			return l.opImm(asm.RoundPD, w, down, x)
		}
		return l.opImm(asm.RoundPS, w, down, x)
	case simt.And:
		return l.op(asm.And, w, x, y)
	case simt.Or:
		return l.op(asm.Or, w, x, y)
	case simt.Xor:
		return l.op(asm.Xor, w, x, y)
	case simt.Not:
		return l.op(asm.Xor, w, x, l.ones())
	case simt.Min:
		return l.op3(asm.BlendPD, w, y, x, l.op(asm.GreaterQ, w, y, x))
	case simt.Max:
		return l.op3(asm.BlendPD, w, y, x, l.op(asm.GreaterQ, w, x, y))
	case simt.Mul: // i64, by 32 bits: low·low + (low·high + high·low)·2^32
		cross := l.op(asm.AddQ, w, l.op(asm.MulWide, w, l.shift(simt.Shr, t, x, 32), y), l.op(asm.MulWide, w, x, l.shift(simt.Shr, t, y, 32)))
		return l.op(asm.AddQ, w, l.op(asm.MulWide, w, x, y), l.shift(simt.Shl, t, cross, 32))
	}
	panic(unknown(op, t))
}

func (l *lowering) op3(in *asm.Inst, w asm.Width, x, y, z reg) reg { return l.op(in, w, x, y, z) }

// shift lowers a shift by a constant distance.
func (l *lowering) shift(op simt.Op, t simt.Type, x reg, by uint8) reg {
	w := l.width(t)
	if !wide(t) {
		return l.opImm(map[simt.Op]*asm.Inst{simt.Shl: asm.ShlD, simt.Shr: asm.ShrD, simt.Sar: asm.SarD}[op], w, by, x)
	}
	switch op {
	case simt.Shl:
		return l.opImm(asm.ShlQ, w, by, x)
	case simt.Shr:
		return l.opImm(asm.ShrQ, w, by, x)
	}
	if l.evex {
		return l.opImm(asm.SarQ, w, by, x)
	}
	sign := l.op(asm.GreaterQ, w, l.zero(), x)
	return l.op(asm.Or, w, l.opImm(asm.ShrQ, w, by, x), l.opImm(asm.ShlQ, w, 64-by, sign))
}

// The predicates of comparisons of floats.
const (
	equal       = 0
	less        = 1
	lessOrEqual = 2
	unequal     = 4
	ordered     = 7
)

// holds returns the pred of lanes where a predicate of comparisons holds of two floats.
func (l *lowering) holds(how uint8, t simt.Type, x, y reg) reg {
	w := l.width(t)
	switch {
	case l.masks != nil:
		return l.opImm(byBits(t, asm.MaskPS, asm.MaskPD), w, how, x, y)
	case wide(t):
		return l.narrow(l.opImm(asm.ComparePD, w, how, x, y))
	}
	return l.opImm(asm.ComparePS, w, how, x, y)
}

// compare lowers a comparison to a pred.
func (l *lowering) compare(op simt.Op, t simt.Type, x, y reg) reg {
	how := map[simt.Op]uint8{simt.Eq: equal, simt.Ne: unequal, simt.Lt: less, simt.Le: lessOrEqual}[op]
	w := l.width(t)
	switch {
	case t.Float():
		return l.holds(how, t, x, y)
	case l.masks != nil: // integers have the same predicates
		return l.opImm(byBits(t, asm.MaskD, asm.MaskQ), w, how, x, y)
	}
	eq, gt := asm.EqualD, asm.GreaterD
	if wide(t) {
		eq, gt = asm.EqualQ, asm.GreaterQ
	}
	var v reg
	switch op {
	case simt.Eq, simt.Ne:
		v = l.op(eq, w, x, y)
	case simt.Lt:
		v = l.op(gt, w, y, x)
	default:
		v = l.op(gt, w, x, y)
	}
	if op == simt.Ne || op == simt.Le {
		v = l.op(asm.Xor, w, v, l.ones())
	}
	if wide(t) {
		v = l.narrow(v)
	}
	return v
}

// narrow returns the low 32 bits of lanes of 64.
func (l *lowering) narrow(v reg) reg {
	if l.evex {
		return l.op(asm.NarrowQ, l.full, v)
	}
	return l.opImm(asm.Shuffle, asm.X, 0x88, v, l.opImm(asm.Upper, asm.Y, 1, v))
}

// widen returns lanes of 32 bits with their sign in 64.
func (l *lowering) widen(v reg) reg { return l.op(asm.DToQ, l.full, v) }

// choose lowers a Select.
func (l *lowering) choose(t simt.Type, condition, yes, no reg) reg {
	switch {
	case l.masks != nil && t == simt.Pred:
		return l.logic(simt.Xor, no, l.logic(simt.And, condition, l.logic(simt.Xor, no, yes)))
	case l.masks == nil && wide(t):
		condition = l.widen(condition)
	}
	return l.op3(byBits(t, asm.BlendPS, asm.BlendPD), l.width(t), no, yes, condition)
}

// convert lowers a Convert of a value.
func (l *lowering) convert(from, to simt.Type, v simt.Value) reg {
	x := l.val[v]
	switch {
	case from.Float() && to.Float():
		if to == simt.F64 {
			return l.op(asm.PSToPD, l.full, x)
		}
		return l.op(asm.PDToPS, l.full, x)
	case from.Float():
		return l.truncate(from, to, v)
	case from == simt.I64:
		switch to {
		case simt.F64:
			return l.doubles(x)
		case simt.F32:
			if l.evex {
				return l.op(asm.QToPS, l.full, x)
			}
			return l.op(asm.PDToPS, asm.Y, l.doubles(l.sticky(x)))
		}
		return l.clip(to, l.narrow(x))
	}
	switch to {
	case simt.F32:
		return l.op(asm.DToPS, l.short, x)
	case simt.F64:
		return l.op(asm.DToPD, l.full, x)
	case simt.I64:
		return l.widen(x)
	}
	if from == simt.U8 || from == simt.U16 && to == simt.I32 {
		return x
	}
	return l.clip(to, x)
}

// clip keeps the bits of a type in lanes of 32 bits.
func (l *lowering) clip(t simt.Type, x reg) reg {
	switch t {
	case simt.U8:
		return l.op(asm.And, l.short, x, l.splat32(0xFF))
	case simt.U16:
		return l.op(asm.And, l.short, x, l.splat32(0xFFFF))
	}
	return x
}

// truncate lowers a conversion of floats to integers, which saturates.
func (l *lowering) truncate(from, to simt.Type, value simt.Value) reg {
	x, w := l.val[value], l.width(from)
	minimum, maximum, toD := asm.MinPS, asm.MaxPS, asm.PSToD
	if from == simt.F64 {
		minimum, maximum, toD = asm.MinPD, asm.MaxPD, asm.PDToD
	}
	number := func(f float64) reg { return l.splat(from, simt.FloatBits(from, f)) }
	switch to {
	case simt.U8, simt.U16:
		x = l.op(maximum, w, x, number(0)) // 0 of a NaN
		return l.op(toD, w, l.op(minimum, w, x, number(float64(uint64(1)<<to.Bits()-1))))
	case simt.I32:
		// What does not fit is -2^31: right below, replaced above and for NaN.
		v := l.op(toD, w, x)
		known, ok := l.span(value)
		if fits := ok && known.within(math.MinInt32, math.MaxInt32-1<<7); fits && !known.nan {
			return v
		}
		v = l.choose(simt.I32, l.holds(lessOrEqual, from, number(1<<31), x), l.splat32(math.MaxInt32), v)
		return l.choose(simt.I32, l.holds(ordered, from, x, x), v, l.zero())
	}
	known, ok := l.span(value)
	if from == simt.F32 {
		x = l.op(asm.PSToPD, l.full, x)
	}
	if ok && known.within(math.MinInt32, math.MaxInt32) { // i32 is wide enough
		v := l.widen(l.op(asm.PDToD, l.full, x))
		if known.nan {
			v = l.choose(simt.I64, l.holds(ordered, simt.F64, x, x), v, l.zero())
		}
		return v
	}
	if !l.evex {
		return l.truncate64(x)
	}
	v := l.choose(simt.I64, l.holds(lessOrEqual, simt.F64, l.splat64(math.Float64bits(1<<63)), x), l.splat64(math.MaxInt64), l.op(asm.PDToQ, l.full, x))
	return l.choose(simt.I64, l.holds(ordered, simt.F64, x, x), v, l.zero())
}

// truncate64 lowers a conversion of f64 to i64. The mantissa is shifted by the exponent, one way or the
// other: a distance that is negative, thus large, shifts everything out.
func (l *lowering) truncate64(x reg) reg {
	const w = asm.Y
	number := func(f float64) reg { return l.splat64(math.Float64bits(f)) }
	exponent := l.op(asm.And, w, l.opImm(asm.ShrQ, w, 52, x), l.splat64(0x7FF))
	mantissa := l.op(asm.Or, w, l.op(asm.And, w, x, l.splat64(1<<52-1)), l.splat64(1<<52))
	up := l.op(asm.ShlVQ, w, mantissa, l.op(asm.SubQ, w, exponent, l.splat64(1075)))
	down := l.op(asm.ShrVQ, w, mantissa, l.op(asm.SubQ, w, l.splat64(1075), exponent))
	sign := l.op(asm.GreaterQ, w, l.zero(), x)
	v := l.op(asm.SubQ, w, l.op(asm.Xor, w, l.op(asm.Or, w, up, down), sign), sign)
	v = l.op3(asm.BlendPD, w, v, l.splat64(math.MaxInt64), l.opImm(asm.ComparePD, w, lessOrEqual, number(1<<63), x))
	v = l.op3(asm.BlendPD, w, v, l.splat64(1<<63), l.opImm(asm.ComparePD, w, less, x, number(-1<<63)))
	return l.op(asm.And, w, v, l.opImm(asm.ComparePD, w, ordered, x, x))
}

// doubles lowers a conversion of i64 to f64: both halves are put into mantissas of fixed exponents, and
// the sum of the two numbers rounds once.
func (l *lowering) doubles(x reg) reg {
	if l.evex {
		return l.op(asm.QToPD, l.full, x)
	}
	const w = asm.Y
	number := func(f float64) reg { return l.splat64(math.Float64bits(f)) }
	low := l.op(asm.Or, w, l.op(asm.And, w, x, l.splat64(1<<32-1)), number(1<<52))
	high := l.op(asm.Xor, w, l.opImm(asm.ShrQ, w, 32, x), l.splat64(math.Float64bits(1<<84)|1<<31))
	return l.op(asm.AddPD, w, l.op(asm.SubPD, w, high, number(1<<84+1<<63+1<<52)), low)
}

// sticky rounds integers of more than 52 bits to odd multiples of 2^11, so that they are exact as f64
// and round to f32 as they would at once.
func (l *lowering) sticky(x reg) reg {
	const w, low = asm.Y, 1<<11 - 1
	lost := l.op(asm.AddQ, w, l.op(asm.And, w, x, l.splat64(low)), l.splat64(low))
	lost = l.op(asm.And, w, lost, l.splat64(1<<11))
	odd := l.op(asm.Or, w, l.op(asm.And, w, x, l.splat64(math.MaxUint64-low)), lost)
	large := l.op(asm.Or, w, l.op(asm.GreaterQ, w, x, l.splat64(1<<52)), l.op(asm.GreaterQ, w, l.splat64(math.MaxUint64-1<<52+1), x))
	return l.op3(asm.BlendPD, w, x, odd, large)
}
