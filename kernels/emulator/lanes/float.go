package lanes

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// nan32 is what operations on f32 return for no number.
const nan32 = 0x7fffffff

// Canonical makes bits of f; no number has one form.
func Canonical(f float32) uint32 {
	if f != f {
		return nan32
	}
	return math.Float32bits(f)
}

func add32(d, a, b, _ *Narrow) {
	for i := range d {
		d[i] = Canonical(math.Float32frombits(a[i]) + math.Float32frombits(b[i]))
	}
}

func sub32(d, a, b, _ *Narrow) {
	for i := range d {
		d[i] = Canonical(math.Float32frombits(a[i]) - math.Float32frombits(b[i]))
	}
}

func mul32(d, a, b, _ *Narrow) {
	for i := range d {
		d[i] = Canonical(math.Float32frombits(a[i]) * math.Float32frombits(b[i]))
	}
}

func fma32(d, a, b, c *Narrow) {
	for i := range d {
		x, y, z := math.Float32frombits(a[i]), math.Float32frombits(b[i]), math.Float32frombits(c[i])
		s := float64(float64(x)*float64(y)) + float64(z)
		f := math.Float32bits(float32(s))
		// A sum that is a tie in float64 need not be one, so the slow way decides. Normal numbers show ties by these bits;
		// below, where a tie may be rounded to the least normal number, all sums count as such.
		if e := f >> 23 & 255; math.Float64bits(s)&0x1fffffff == 0x10000000 || e-2 > 252 {
			f = Canonical(fusedMultiplyAdd(x, y, z))
		}
		d[i] = f
	}
}

// fusedMultiplyAdd is x·y + z rounded once. The product is exact in 53 bits; their
// sum is rounded to odd, and then once to 24 bits or fewer.
func fusedMultiplyAdd(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	if s == 0 || s-s != 0 {
		return float32(s)
	}
	return float32(oddSum(p, float64(z), s))
}

// oddSum returns s, which is x + y rounded to nearest, rounded to odd instead: if
// the sum is not exact, the last bit is set. Rounded again to two bits fewer, or
// less, that is the sum rounded once.
func oddSum(x, y, s float64) float64 {
	t := s - x
	lost := (x - (s - t)) + (y - t)
	b := math.Float64bits(s)
	if lost == 0 || b&1 != 0 {
		return s
	}
	if (lost > 0) == (s > 0) {
		return math.Float64frombits(b + 1)
	}
	return math.Float64frombits(b - 1)
}

// min32 and max32 return the number where one is none, and order zeros by sign.
func min32(d, a, b, _ *Narrow) {
	for i := range d {
		x, y := math.Float32frombits(a[i]), math.Float32frombits(b[i])
		switch {
		case x < y || y != y:
			d[i] = Canonical(x)
		case y < x || x != x:
			d[i] = Canonical(y)
		default:
			d[i] = a[i] | b[i]
		}
	}
}

func max32(d, a, b, _ *Narrow) {
	for i := range d {
		x, y := math.Float32frombits(a[i]), math.Float32frombits(b[i])
		switch {
		case x > y || y != y:
			d[i] = Canonical(x)
		case y > x || x != x:
			d[i] = Canonical(y)
		default:
			d[i] = a[i] & b[i]
		}
	}
}

// float32s are the operations on f32 by name.
var float32s = map[string]Func32{
	"add": add32,
	"sub": sub32,
	"mul": mul32,
	"fma": fma32,
	"min": min32,
	"max": max32,
	"abs": each(func(a, _, _ uint32) uint32 { return a &^ (1 << 31) }),
	"neg": each(func(a, _, _ uint32) uint32 { return a ^ 1<<31 }),
	"div": each(func(a, b, _ uint32) uint32 {
		return Canonical(math.Float32frombits(a) / math.Float32frombits(b))
	}),
	"rcp": each(func(a, _, _ uint32) uint32 { return Canonical(1 / math.Float32frombits(a)) }),
	"sqrt": each(func(a, _, _ uint32) uint32 {
		return Canonical(float32(math.Sqrt(float64(math.Float32frombits(a)))))
	}),
}

// flush makes a subnormal a zero of its sign.
func flush(x uint32) uint32 {
	if x&0x7f800000 == 0 {
		return x & (1 << 31)
	}
	return x
}

// approximations are those of the special function unit, here rounded correctly
// from float64.
var approximations = map[string]func(x float64) float64{
	"rcp": func(x float64) float64 { return 1 / x },
	"ex2": math.Exp2,
	"lg2": math.Log2,
}

// Approximation returns an operation of the special function unit by its name, or
// nil. With a seed, results are off by as much as NVIDIA allows, by a rule that
// depends on the operand alone: 2 units in the last place, 1 of rcp, and 2^-22 of lg2
// between one half and 2, where that is more.
func Approximation(name string, ftz bool, seed uint64) func(a uint32) uint32 {
	f := approximations[name]
	if f == nil {
		return nil
	}
	return func(a uint32) uint32 {
		if ftz {
			a = flush(a)
		}
		y := Canonical(float32(f(float64(math.Float32frombits(a)))))
		if e := y >> 23 & 255; seed != 0 && e > 0 && e < 254 {
			h := (uint64(a) + seed) * 0x9e3779b97f4a7c15 >> 33
			switch {
			case name == "lg2" && e < 127:
				y = math.Float32bits(math.Float32frombits(y) + float32(h%3)*0x1p-22 - 0x1p-22)
			case name == "rcp":
				y += uint32(h%3) - 1
			default:
				y += uint32(h%5) - 2
			}
		}
		if ftz {
			y = flush(y)
		}
		return y
	}
}

// float64s are the operations on f64 by name.
var float64s = map[string]Func64{
	"add": func(d, a, b, _ *Wide) { add(as[float64](d), as[float64](a), as[float64](b)) },
	"sub": func(d, a, b, _ *Wide) { sub(as[float64](d), as[float64](a), as[float64](b)) },
	"mul": func(d, a, b, _ *Wide) { mul(as[float64](d), as[float64](a), as[float64](b)) },
	"fma": each64(func(a, b, c uint64) uint64 {
		return math.Float64bits(math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c)))
	}),
	"min": each64(func(a, b, _ uint64) uint64 {
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		switch {
		case x != x:
			return b
		case y != y:
			return a
		}
		return math.Float64bits(math.Min(x, y))
	}),
	"max": each64(func(a, b, _ uint64) uint64 {
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		switch {
		case x != x:
			return b
		case y != y:
			return a
		}
		return math.Float64bits(math.Max(x, y))
	}),
	"abs": each64(func(a, _, _ uint64) uint64 { return a &^ (1 << 63) }),
	"neg": each64(func(a, _, _ uint64) uint64 { return a ^ 1<<63 }),
	"div": each64(func(a, b, _ uint64) uint64 {
		return math.Float64bits(math.Float64frombits(a) / math.Float64frombits(b))
	}),
	"rcp":  each64(func(a, _, _ uint64) uint64 { return math.Float64bits(1 / math.Float64frombits(a)) }),
	"sqrt": each64(func(a, _, _ uint64) uint64 { return math.Float64bits(math.Sqrt(math.Float64frombits(a))) }),
}

// pairs makes a function of all lanes from one of a half of f16x2.
func pairs(f func(x, y, z float64) uint16) Func32 {
	return each(func(a, b, c uint32) uint32 {
		lo := f(Half(uint16(a)), Half(uint16(b)), Half(uint16(c)))
		hi := f(Half(uint16(a>>16)), Half(uint16(b>>16)), Half(uint16(c>>16)))
		return uint32(hi)<<16 | uint32(lo)
	})
}

// halves are the operations on f16x2 by name. Sums and products of two halves are
// exact in float64.
var halves = map[string]Func32{
	"add": pairs(func(x, y, _ float64) uint16 { return toHalf(x+y, nearest) }),
	"sub": pairs(func(x, y, _ float64) uint16 { return toHalf(x-y, nearest) }),
	"mul": pairs(func(x, y, _ float64) uint16 { return toHalf(x*y, nearest) }),
	"fma": pairs(func(x, y, z float64) uint16 {
		p := x * y
		s := p + z
		if s-s == 0 {
			s = oddSum(p, z, s)
		}
		return toHalf(s, nearest)
	}),
	"min": pairs(func(x, y, _ float64) uint16 {
		switch {
		case x != x:
			return toHalf(y, nearest)
		case y != y:
			return toHalf(x, nearest)
		}
		return toHalf(math.Min(x, y), nearest)
	}),
	"max": pairs(func(x, y, _ float64) uint16 {
		switch {
		case x != x:
			return toHalf(y, nearest)
		case y != y:
			return toHalf(x, nearest)
		}
		return toHalf(math.Max(x, y), nearest)
	}),
}

// Float returns an operation on f32 or f16x2 by its name, or nil.
func Float(name string, t ptx.Type) Func32 {
	switch t {
	case ptx.F32:
		return float32s[name]
	case ptx.F16x2:
		return halves[name]
	}
	return nil
}

// Float64 returns an operation on f64 by its name, or nil.
func Float64(name string) Func64 { return float64s[name] }

// FloatSum returns the sum that an atomic addition to global memory makes of the bits of two f32, which are 0 with their
// signs where they are subnormal, as the sum is, or of two f64.
func FloatSum(t ptx.Type) func(x, y uint64) uint64 {
	if t == ptx.F64 {
		return func(x, y uint64) uint64 {
			return math.Float64bits(math.Float64frombits(x) + math.Float64frombits(y))
		}
	}
	flush := func(x uint32) uint32 {
		if x>>23&255 == 0 {
			return x & (1 << 31)
		}
		return x
	}
	return func(x, y uint64) uint64 {
		sum := math.Float32frombits(flush(uint32(x))) + math.Float32frombits(flush(uint32(y)))
		return uint64(flush(Canonical(sum)))
	}
}
