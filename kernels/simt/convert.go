package simt

import "math"

func (f *frame) convert(s *step) {
	n := f.n
	switch s.of {
	case F32:
		convertFloats(f, s, f.f32[s.a][:n])
	case F64:
		convertFloats(f, s, f.f64[s.a][:n])
	case I32:
		convertIntegers(f, s, f.i32[s.a][:n])
	case I64:
		convertIntegers(f, s, f.i64[s.a][:n])
	case U8:
		convertIntegers(f, s, f.u8[s.a][:n])
	case U16:
		convertIntegers(f, s, f.u16[s.a][:n])
	}
}

// convertFloats converts the lanes of a, floats, to the type of the step's result. Integers are
// truncated towards zero and saturate at the ends of their range; NaN becomes 0.
func convertFloats[T float32 | float64](f *frame, s *step, a []T) {
	switch s.to {
	case F32:
		convertLanes(f.f32[s.dst], a)
	case F64:
		convertLanes(f.f64[s.dst], a)
	case I32:
		d := f.i32[s.dst]
		for i, x := range a {
			d[i] = int32(truncate(float64(x), math.MinInt32, math.MaxInt32))
		}
	case I64:
		d := f.i64[s.dst]
		for i, x := range a {
			d[i] = truncate64(float64(x))
		}
	case U8:
		d := f.u8[s.dst]
		for i, x := range a {
			d[i] = uint8(truncate(float64(x), 0, math.MaxUint8))
		}
	case U16:
		d := f.u16[s.dst]
		for i, x := range a {
			d[i] = uint16(truncate(float64(x), 0, math.MaxUint16))
		}
	}
}

// truncate cuts x to an integer between lo and hi, both exact as float64; NaN is 0.
func truncate(x, lo, hi float64) int64 {
	switch {
	case x <= lo:
		return int64(lo)
	case x >= hi:
		return int64(hi)
	case x != x:
		return 0
	}
	return int64(x)
}

func truncate64(x float64) int64 {
	switch {
	case x < -(1 << 63):
		return math.MinInt64
	case x >= 1<<63:
		return math.MaxInt64
	case x != x:
		return 0
	}
	return int64(x)
}

func convertIntegers[T int32 | int64 | uint8 | uint16](f *frame, s *step, a []T) {
	switch s.to {
	case F32:
		convertLanes(f.f32[s.dst], a)
	case F64:
		convertLanes(f.f64[s.dst], a)
	case I32:
		convertLanes(f.i32[s.dst], a)
	case I64:
		convertLanes(f.i64[s.dst], a)
	case U8:
		convertLanes(f.u8[s.dst], a)
	case U16:
		convertLanes(f.u16[s.dst], a)
	}
}

func convertLanes[T, U Element](d []U, a []T) {
	for i, x := range a {
		d[i] = U(x)
	}
}

// bitcast moves bits between floats and integers of the same width; the verifier has refused
// all other pairs.
func (f *frame) bitcast(s *step) {
	switch s.of {
	case F32:
		d := f.i32[s.dst]
		for i, x := range f.f32[s.a][:f.n] {
			d[i] = int32(math.Float32bits(x))
		}
	case F64:
		d := f.i64[s.dst]
		for i, x := range f.f64[s.a][:f.n] {
			d[i] = int64(math.Float64bits(x))
		}
	case I32:
		d := f.f32[s.dst]
		for i, x := range f.i32[s.a][:f.n] {
			d[i] = math.Float32frombits(uint32(x))
		}
	case I64:
		d := f.f64[s.dst]
		for i, x := range f.i64[s.a][:f.n] {
			d[i] = math.Float64frombits(uint64(x))
		}
	}
}
