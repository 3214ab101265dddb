package lanes

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/pce-engine/pce/kernels/ptx"
)

// Narrow and Wide hold a register of each lane of a warp.
type (
	Narrow = [32]uint32
	Wide   = [32]uint64
)

// Func32 computes a register of 32 bits from up to three, for all lanes; Func64 one
// of 64 bits from such, Widen one of 64 bits from two of 32 and one of 64.
type (
	Func32 = func(d, a, b, c *Narrow)
	Func64 = func(d, a, b, c *Wide)
	Widen  = func(d *Wide, a, b *Narrow, c *Wide)
)

// number is a type whose operators Go has.
type number interface {
	~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// as reads a register's lanes as another type of the same size.
func as[T number, F Narrow | Wide](x *F) *[32]T { return (*[32]T)(unsafe.Pointer(x)) }

// each makes a function of all lanes from one of a lane.
func each(f func(a, b, c uint32) uint32) Func32 {
	return func(d, a, b, c *Narrow) {
		for i := range d {
			d[i] = f(a[i], b[i], c[i])
		}
	}
}

func each64(f func(a, b, c uint64) uint64) Func64 {
	return func(d, a, b, c *Wide) {
		for i := range d {
			d[i] = f(a[i], b[i], c[i])
		}
	}
}

func add[T number](d, a, b *[32]T) {
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub[T number](d, a, b *[32]T) {
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul[T number](d, a, b *[32]T) {
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func mulAdd[T uint32 | uint64](d, a, b, c *[32]T) {
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func smaller[T int32 | uint32 | int64 | uint64](d, a, b *[32]T) {
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func larger[T int32 | uint32 | int64 | uint64](d, a, b *[32]T) {
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func and[T uint32 | uint64](d, a, b *[32]T) {
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or[T uint32 | uint64](d, a, b *[32]T) {
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor[T uint32 | uint64](d, a, b *[32]T) {
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func not[T uint32 | uint64](d, a *[32]T) {
	for i := range d {
		d[i] = ^a[i]
	}
}

// shiftLeft and shiftRight shift by a number of 32 bits; all bits may go. T says
// whether the sign comes in.
func shiftLeft[T uint32 | uint64](d, a *[32]T, b *Narrow) {
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shiftRight[T int32 | uint32 | int64 | uint64](d, a *[32]T, b *Narrow) {
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

// divide and remainder give all ones and the dividend for a divisor of 0.
func divide[T int32 | uint32 | int64 | uint64](d, a, b *[32]T) {
	for i := range d {
		if b[i] == 0 {
			d[i] = ^T(0)
			continue
		}
		d[i] = a[i] / b[i]
	}
}

func remainder[T int32 | uint32 | int64 | uint64](d, a, b *[32]T) {
	for i := range d {
		if b[i] == 0 {
			d[i] = a[i]
			continue
		}
		d[i] = a[i] % b[i]
	}
}

// whole32 are the integer operations on 32 bits by name; signed ones stand with
// "s32" where the sign counts.
var whole32 = map[string]Func32{
	"add":         func(d, a, b, _ *Narrow) { add(d, a, b) },
	"sub":         func(d, a, b, _ *Narrow) { sub(d, a, b) },
	"add.sat.s32": each(func(a, b, _ uint32) uint32 { return saturated(int64(int32(a)) + int64(int32(b))) }),
	"sub.sat.s32": each(func(a, b, _ uint32) uint32 { return saturated(int64(int32(a)) - int64(int32(b))) }),
	"mul.lo":      func(d, a, b, _ *Narrow) { mul(d, a, b) },
	"mad.lo":      mulAdd[uint32],
	"and":         func(d, a, b, _ *Narrow) { and(d, a, b) },
	"or":          func(d, a, b, _ *Narrow) { or(d, a, b) },
	"xor":         func(d, a, b, _ *Narrow) { xor(d, a, b) },
	"not":         func(d, a, _, _ *Narrow) { not(d, a) },
	"shl":         func(d, a, b, _ *Narrow) { shiftLeft(d, a, b) },
	"shr":         func(d, a, b, _ *Narrow) { shiftRight(d, a, b) },
	"shr.s32":     func(d, a, b, _ *Narrow) { shiftRight(as[int32](d), as[int32](a), b) },
	"min":         func(d, a, b, _ *Narrow) { smaller(d, a, b) },
	"min.s32":     func(d, a, b, _ *Narrow) { smaller(as[int32](d), as[int32](a), as[int32](b)) },
	"max":         func(d, a, b, _ *Narrow) { larger(d, a, b) },
	"max.s32":     func(d, a, b, _ *Narrow) { larger(as[int32](d), as[int32](a), as[int32](b)) },
	"div":         func(d, a, b, _ *Narrow) { divide(d, a, b) },
	"div.s32":     func(d, a, b, _ *Narrow) { divide(as[int32](d), as[int32](a), as[int32](b)) },
	"rem":         func(d, a, b, _ *Narrow) { remainder(d, a, b) },
	"rem.s32":     func(d, a, b, _ *Narrow) { remainder(as[int32](d), as[int32](a), as[int32](b)) },
	"mul.hi": each(func(a, b, _ uint32) uint32 {
		return uint32(uint64(a) * uint64(b) >> 32)
	}),
	"mul.hi.s32": each(func(a, b, _ uint32) uint32 {
		return uint32(uint64(int64(int32(a))*int64(int32(b))) >> 32)
	}),
	"neg":  each(func(a, _, _ uint32) uint32 { return -a }),
	"abs":  each(func(a, _, _ uint32) uint32 { return uint32(max(int32(a), -int32(a))) }),
	"popc": each(func(a, _, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) }),
	"clz":  each(func(a, _, _ uint32) uint32 { return uint32(bits.LeadingZeros32(a)) }),
	"prmt": each(permute),
	"bfe": each(func(a, at, n uint32) uint32 {
		return a >> (at & 255) & (1<<(n&255) - 1)
	}),
	"bfe.s32": each(extractSigned),
}

// whole64 are those on 64 bits; shifts, whose numbers have 32, are in shifts64.
var whole64 = map[string]Func64{
	"add":     func(d, a, b, _ *Wide) { add(d, a, b) },
	"sub":     func(d, a, b, _ *Wide) { sub(d, a, b) },
	"mul.lo":  func(d, a, b, _ *Wide) { mul(d, a, b) },
	"mad.lo":  mulAdd[uint64],
	"and":     func(d, a, b, _ *Wide) { and(d, a, b) },
	"or":      func(d, a, b, _ *Wide) { or(d, a, b) },
	"xor":     func(d, a, b, _ *Wide) { xor(d, a, b) },
	"not":     func(d, a, _, _ *Wide) { not(d, a) },
	"min":     func(d, a, b, _ *Wide) { smaller(d, a, b) },
	"min.s64": func(d, a, b, _ *Wide) { smaller(as[int64](d), as[int64](a), as[int64](b)) },
	"max":     func(d, a, b, _ *Wide) { larger(d, a, b) },
	"max.s64": func(d, a, b, _ *Wide) { larger(as[int64](d), as[int64](a), as[int64](b)) },
	"div":     func(d, a, b, _ *Wide) { divide(d, a, b) },
	"div.s64": func(d, a, b, _ *Wide) { divide(as[int64](d), as[int64](a), as[int64](b)) },
	"rem":     func(d, a, b, _ *Wide) { remainder(d, a, b) },
	"rem.s64": func(d, a, b, _ *Wide) { remainder(as[int64](d), as[int64](a), as[int64](b)) },
	"mul.hi": each64(func(a, b, _ uint64) uint64 {
		hi, _ := bits.Mul64(a, b)
		return hi
	}),
	"mul.hi.s64": each64(func(a, b, _ uint64) uint64 {
		hi, _ := bits.Mul64(a, b)
		return hi - b&-(a>>63) - a&-(b>>63)
	}),
	"neg": each64(func(a, _, _ uint64) uint64 { return -a }),
	"abs": each64(func(a, _, _ uint64) uint64 { return uint64(max(int64(a), -int64(a))) }),
}

var shifts64 = map[string]func(d, a *Wide, b *Narrow){
	"shl":     shiftLeft[uint64],
	"shr":     shiftRight[uint64],
	"shr.s64": func(d, a *Wide, b *Narrow) { shiftRight(as[int64](d), as[int64](a), b) },
}

// Whole32 returns an integer operation on 32 bits by its name, "mul.hi", or nil.
func Whole32(name string, t ptx.Type) Func32 { return named(whole32, name, t) }

// Whole64 returns an integer operation on 64 bits by its name, or nil.
func Whole64(name string, t ptx.Type) Func64 { return named(whole64, name, t) }

// Shift64 returns a shift of 64 bits by its name, or nil.
func Shift64(name string, t ptx.Type) func(d, a *Wide, b *Narrow) { return named(shifts64, name, t) }

// named finds an operation by its name and type, or by its name.
func named[F any](table map[string]F, name string, t ptx.Type) F {
	if f, ok := table[name+"."+t.String()]; ok {
		return f
	}
	return table[name]
}

// MultiplyAddWide returns mad.wide for a type of 32 bits, or nil.
func MultiplyAddWide(t ptx.Type) Widen {
	switch t {
	case ptx.U32:
		return func(d *Wide, a, b *Narrow, c *Wide) {
			for i := range d {
				d[i] = uint64(a[i])*uint64(b[i]) + c[i]
			}
		}
	case ptx.S32:
		return func(d *Wide, a, b *Narrow, c *Wide) {
			for i := range d {
				d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
			}
		}
	}
	return nil
}

// saturated returns the nearest number of 32 bits with a sign.
func saturated(x int64) uint32 { return uint32(int32(min(max(x, math.MinInt32), math.MaxInt32))) }

// permute is prmt: each nibble of c picks one of the eight bytes of b and a, or its
// sign.
func permute(a, b, c uint32) uint32 {
	from := uint64(b)<<32 | uint64(a)
	var d uint32
	for i := range 4 {
		pick := c >> (4 * i) & 15
		v := uint32(from>>(8*(pick&7))) & 255
		if pick&8 != 0 {
			v = uint32(int32(int8(v))>>7) & 255
		}
		d |= v << (8 * i)
	}
	return d
}

// extractSigned is bfe.s32.
func extractSigned(a, at, n uint32) uint32 {
	at, n = at&255, n&255
	if n == 0 {
		return 0
	}
	last := min(at+n-1, 31)
	if at > last {
		return uint32(int32(a) >> 31)
	}
	return uint32(int32(a<<(31-last)) >> (31 - last + at))
}

// InsertBits is bfi: n bits of a replace those of b from at on.
func InsertBits(a, b, at, n uint32) uint32 {
	at, n = at&255, n&255
	mask := uint32(1<<n-1) << at
	return b&^mask | a<<at&mask
}

// Signed reports whether a type has a sign.
func Signed(t ptx.Type) bool {
	switch t {
	case ptx.S8, ptx.S16, ptx.S32, ptx.S64:
		return true
	}
	return false
}

// Reduction returns what joins two values of 32 or 64 bits, or nil.
func Reduction(mods []string, t ptx.Type) func(x, y uint64) uint64 {
	for _, m := range mods {
		switch m {
		case "add":
			return func(x, y uint64) uint64 { return x + y }
		case "and":
			return func(x, y uint64) uint64 { return x & y }
		case "or":
			return func(x, y uint64) uint64 { return x | y }
		case "xor":
			return func(x, y uint64) uint64 { return x ^ y }
		case "exch":
			return func(_, y uint64) uint64 { return y }
		case "min", "max":
			greater := m == "max"
			return func(x, y uint64) uint64 {
				below := Extend(x, t) < Extend(y, t)
				if Signed(t) {
					below = int64(Extend(x, t)) < int64(Extend(y, t))
				}
				if below == greater {
					return y
				}
				return x
			}
		}
	}
	return nil
}
