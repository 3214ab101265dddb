package lanes

import (
	"math"
	"slices"

	"github.com/pce-engine/pce/kernels/ptx"
)

// rounding says how to round to fewer bits, or to an integer.
type rounding uint8

const (
	nearest rounding = iota // ties to even
	towardZero
	down
	up
	nearestAway // ties away from zero
)

// roundings by the names of modifiers.
var roundings = map[string]rounding{
	"rn": nearest, "rz": towardZero, "rm": down, "rp": up,
	"rni": nearest, "rzi": towardZero, "rmi": down, "rpi": up,
	"rna": nearestAway,
}

// integer rounds to an integer.
func (r rounding) integer(x float64) float64 {
	switch r {
	case towardZero:
		return math.Trunc(x)
	case down:
		return math.Floor(x)
	case up:
		return math.Ceil(x)
	case nearestAway:
		return math.Round(x)
	}
	return math.RoundToEven(x)
}

// single rounds to f32.
func (r rounding) single(x float64) float32 {
	y := float32(x)
	if r == nearest || float64(y) == x || x != x {
		return y
	}
	// y is a neighbour of x, or beyond the largest number.
	high := float64(y) > x
	lower := r == down || r == towardZero && x > 0
	switch {
	case high && lower:
		return math.Nextafter32(y, float32(math.Inf(-1)))
	case !high && !lower:
		return math.Nextafter32(y, float32(math.Inf(1)))
	}
	return y
}

// toHalf rounds to f16.
func toHalf(x float64, r rounding) uint16 {
	if x != x {
		return 0x7fff
	}
	b := math.Float64bits(x)
	sign := uint16(b >> 48 & 0x8000)
	e := int(b>>52&0x7ff) - 1023
	if e > 15 && math.IsInf(x, 0) {
		return sign | 0x7c00
	}
	if e < -14 {
		e = -14
	}
	// Units of the last place: at most 2^11 of them, or overflow.
	var n float64
	if e > 16 {
		n = 1 << 12
	} else {
		n = math.Abs(r.integer(x * math.Float64frombits(uint64(1023+10-e)<<52)))
	}
	// 2048 units are the next power of two; counting units carries into the exponent.
	h := uint32(n)
	if e > -14 || n >= 1024 {
		h = uint32(e+14)<<10 + uint32(n)
	}
	if h >= 0x7c00 || e > 15 {
		if r == towardZero || r == down && sign == 0 || r == up && sign != 0 {
			return sign | 0x7bff
		}
		return sign | 0x7c00
	}
	return sign | uint16(h)
}

// toBrain rounds to bf16, to nearest.
func toBrain(x uint32) uint16 {
	if x&0x7fffffff > 0x7f800000 {
		return 0x7fff
	}
	return uint16((x + 0x7fff + x>>16&1) >> 16)
}

// toTensor rounds f32 to tf32, ties away from zero.
func toTensor(x uint32) uint32 {
	if x&0x7fffffff > 0x7f800000 {
		return nan32
	}
	return (x + 0x1000) &^ 0x1fff
}

// PackHalves rounds a and b to the high and the low half of f16x2.
func PackHalves(d, a, b, _ *Narrow) {
	for i := range d {
		d[i] = singleToHalf(a[i])<<16 | singleToHalf(b[i])
	}
}

// singleToHalf rounds f32 to f16, to nearest.
func singleToHalf(x uint32) uint32 {
	// Numbers from 2^-14 to below 65520 are normal after rounding, too.
	if y := x & 0x7fffffff; y-0x38800000 < 0x477ff000-0x38800000 {
		return x>>16&0x8000 | (y-0x38000000+0xfff+y>>13&1)>>13
	}
	return singleToHalfEdge(x)
}

// singleToHalfEdge does so for numbers that are not normal in f16.
func singleToHalfEdge(x uint32) uint32 {
	sign, x := x>>16&0x8000, x&0x7fffffff
	switch {
	case x > 0x7f800000:
		return 0x7fff
	case x >= 0x477ff000:
		return sign | 0x7c00
	}
	return sign | uint32(math.RoundToEven(float64(math.Float32frombits(x))*0x1p24))
}

// PackBrains rounds a and b to the high and the low half of bf16x2.
func PackBrains(d, a, b, _ *Narrow) {
	for i := range d {
		d[i] = uint32(toBrain(a[i]))<<16 | uint32(toBrain(b[i]))
	}
}

// RoundTensors rounds f32 to tf32.
func RoundTensors(d, a, _, _ *Narrow) {
	for i := range d {
		d[i] = toTensor(a[i])
	}
}

// Conversion returns a function of the bits of one type to those of another, or nil
// where the language has none. The modifiers name the rounding, and saturation.
func Conversion(to, from ptx.Type, mods []string) func(uint64) uint64 {
	mode, rounds, sat := nearest, false, slices.Contains(mods, "sat")
	for _, m := range mods {
		if r, ok := roundings[m]; ok {
			mode, rounds = r, true
		}
	}
	read := reader(from)
	switch {
	case read == nil && !IsInteger(from):
		return nil
	case IsInteger(from) && IsInteger(to):
		return resize(to, from, sat)
	case IsInteger(from):
		write := writer(to, mode, sat)
		if write == nil || to == ptx.BF16 {
			return nil
		}
		return fromInteger(to, from, mode, write)
	case IsInteger(to):
		return toInteger(to, from, mode, read)
	}
	write := writer(to, mode, sat)
	if write == nil {
		return nil
	}
	return func(x uint64) uint64 {
		y := read(x)
		if to == from && rounds {
			y = mode.integer(y)
		}
		return write(y)
	}
}

// IsInteger reports whether a type counts.
func IsInteger(t ptx.Type) bool { return t >= ptx.U8 && t <= ptx.S64 }

// reader returns the values of a type of floats.
func reader(t ptx.Type) func(uint64) float64 {
	switch t {
	case ptx.F16:
		return func(x uint64) float64 { return Half(uint16(x)) }
	case ptx.BF16:
		return func(x uint64) float64 { return float64(math.Float32frombits(uint32(x) << 16)) }
	case ptx.F32:
		return func(x uint64) float64 { return float64(math.Float32frombits(uint32(x))) }
	case ptx.F64:
		return math.Float64frombits
	}
	return nil
}

// writer returns the bits of a type of floats.
func writer(t ptx.Type, mode rounding, sat bool) func(float64) uint64 {
	clamp := func(x float64) float64 {
		switch {
		case !sat:
			return x
		case !(x > 0):
			return 0
		}
		return min(x, 1)
	}
	switch t {
	case ptx.F16:
		return func(x float64) uint64 { return uint64(toHalf(clamp(x), mode)) }
	case ptx.BF16:
		if mode != nearest {
			return nil
		}
		return func(x float64) uint64 { return uint64(toBrain(math.Float32bits(float32(clamp(x))))) }
	case ptx.F32:
		return func(x float64) uint64 { return uint64(Canonical(mode.single(clamp(x)))) }
	case ptx.F64:
		return func(x float64) uint64 { return math.Float64bits(clamp(x)) }
	}
	return nil
}

// Extend makes 64 bits of an integer of a type.
func Extend(x uint64, t ptx.Type) uint64 {
	s := 64 - 8*t.Bytes()
	if Signed(t) {
		return uint64(int64(x<<s) >> s)
	}
	return x << s >> s
}

// bounds are the least and the greatest number of a type.
func bounds(t ptx.Type) (int64, uint64) {
	n := 8 * t.Bytes()
	if Signed(t) {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, math.MaxUint64 >> (64 - n)
}

// resize converts between integers; in a register that is wider than the type, the
// rest has the sign or is 0.
func resize(to, from ptx.Type, sat bool) func(uint64) uint64 {
	least, most := bounds(to)
	return func(x uint64) uint64 {
		x = Extend(x, from)
		if sat {
			negative := Signed(from) && int64(x) < 0
			switch {
			case negative && int64(x) < least:
				x = uint64(least)
			case !negative && x > most:
				x = most
			}
		}
		return Extend(x, to)
	}
}

// fromInteger converts an integer to a float.
func fromInteger(to, from ptx.Type, mode rounding, write func(float64) uint64) func(uint64) uint64 {
	return func(x uint64) uint64 {
		x = Extend(x, from)
		negative := Signed(from) && int64(x) < 0
		size := x
		if negative {
			size = -x
		}
		// Drop bits that float64 cannot hold, but remember that there were some: the
		// last bit kept is set, which rounds to fewer bits as the number would.
		y := float64(size)
		if size >= 1<<53 && to != ptx.F64 {
			y = float64(size>>11|min(size&(1<<11-1), 1)) * (1 << 11)
		} else if size >= 1<<53 {
			y = roundSize(size, mode, negative)
		}
		if negative {
			y = -y
		}
		return write(y)
	}
}

// roundSize rounds a number of more than 53 bits to float64.
func roundSize(size uint64, mode rounding, negative bool) float64 {
	y := float64(size) // to nearest
	exact := y < 0x1p64 && uint64(y) == size
	high := y >= 0x1p64 || uint64(y) > size
	away := mode == up && !negative || mode == down && negative
	switch {
	case mode == nearest || exact || high == away:
		return y
	case away:
		return math.Nextafter(y, math.Inf(1))
	}
	return math.Nextafter(y, 0)
}

// toInteger converts a float to an integer; numbers that do not fit become the
// nearest that does, no number 0, or the top bit alone where 64 bits play a part.
func toInteger(to, from ptx.Type, mode rounding, read func(uint64) float64) func(uint64) uint64 {
	least, most := bounds(to)
	none := uint64(0)
	if from == ptx.F64 || to.Bytes() == 8 {
		none = 1 << (8*to.Bytes() - 1)
	}
	return func(x uint64) uint64 {
		y := read(x)
		if y != y {
			return none
		}
		y = mode.integer(y)
		switch {
		case y <= float64(least):
			return Extend(uint64(least), to)
		case y >= float64(most):
			return Extend(most, to)
		case y < 0:
			return Extend(uint64(int64(y)), to)
		}
		return Extend(uint64(y), to)
	}
}

// Half is the value of an f16.
func Half(h uint16) float64 {
	sign := uint64(h>>15) << 63
	e, frac := uint64(h>>10&31), uint64(h&0x3ff)
	switch e {
	case 0:
		return math.Float64frombits(math.Float64bits(float64(frac)*0x1p-24) | sign)
	case 31:
		return math.Float64frombits(sign | 0x7ff<<52 | frac<<42)
	}
	return math.Float64frombits(sign | (e+1008)<<52 | frac<<42)
}
