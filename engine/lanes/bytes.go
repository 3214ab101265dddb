package lanes

import "math"

// Bytes that are not codes.
const (
	Missing = math.MaxUint8     // a missing cell
	Outside = math.MaxUint8 - 1 // a number below 0 or from 254 on, and a code from 254 on
)

// block is how many cells the assembly takes at a time, wide with AVX-512, and results how many log-likelihoods.
const (
	block   = 32
	wide    = 64
	results = 16
)

// kernels are the loops over whole blocks; nil: those in Go.
type kernels struct {
	codes   func(dst *byte, values *float32, blocks int) (largest, fractions uint32)
	whole   func(values *float32, blocks int) (largest, fractions uint32)
	numbers func(dst *byte, values *float32, blocks int) (infinite uint32)
	narrow  func(dst *byte, codes *uint16, blocks int) (above uint32)
	widen   func(dst *float64, values *float32, blocks int)
	less    func(values *float64, least float64, blocks int) (less uint32)

	numbersWide func(dst *byte, values *float32, blocks int) (infinite uint32) // of wide blocks; nil without AVX-512
}

// Codes writes values as bytes and reports whether each is NaN or a whole number from 0 to n-1. n is at most 255. If one is not,
// the bytes do not matter.
func Codes(dst []byte, values []float32, n int) bool {
	return native.toCodes(dst[:len(values)], values, n)
}

func (k *kernels) toCodes(dst []byte, values []float32, n int) bool {
	if k.codes != nil && len(values) >= block {
		largest, fractions := k.codes(&dst[0], &values[0], len(values)/block)
		if last := len(values) - block; last%block > 0 { // some cells twice
			l, f := k.codes(&dst[last], &values[last], 1)
			largest, fractions = max(largest, l), fractions|f
		}
		return fractions == 0 && int64(largest) < int64(n)
	}
	for i, v := range values {
		switch code := int32(v); {
		case v != v:
			dst[i] = Missing
		case !(v >= 0 && v < float32(n)) || float32(code) != v:
			return false
		default:
			dst[i] = byte(code)
		}
	}
	return true
}

// Whole reports whether each value is NaN or a whole number from 0 to n-1. n is at most 2^24.
func Whole(values []float32, n int) bool { return native.areWhole(values, n) }

func (k *kernels) areWhole(values []float32, n int) bool {
	if k.whole != nil && len(values) >= block {
		largest, fractions := k.whole(&values[0], len(values)/block)
		if last := len(values) - block; last%block > 0 {
			l, f := k.whole(&values[last], 1)
			largest, fractions = max(largest, l), fractions|f
		}
		return fractions == 0 && int64(largest) < int64(n)
	}
	for _, v := range values {
		if v == v && (!(v >= 0 && v < float32(n)) || float32(int32(v)) != v) {
			return false
		}
	}
	return true
}

// Numbers writes the largest whole numbers that are not above values as bytes, Outside for those that a byte does not have, and
// reports whether all values are finite or NaN.
func Numbers(dst []byte, values []float32) bool { return native.toNumbers(dst[:len(values)], values) }

func (k *kernels) toNumbers(dst []byte, values []float32) bool {
	if k.numbersWide != nil && len(values) >= wide {
		infinite := k.numbersWide(&dst[0], &values[0], len(values)/wide)
		if last := len(values) - wide; last%wide > 0 {
			infinite |= k.numbersWide(&dst[last], &values[last], 1)
		}
		return infinite == 0
	}
	if k.numbers != nil && len(values) >= block {
		infinite := k.numbers(&dst[0], &values[0], len(values)/block)
		if last := len(values) - block; last%block > 0 {
			infinite |= k.numbers(&dst[last], &values[last], 1)
		}
		return infinite == 0
	}
	finite := true
	for i, v := range values {
		switch {
		case v != v:
			dst[i] = Missing
		case v >= 0 && v < Outside:
			dst[i] = byte(v)
		default:
			dst[i], finite = Outside, finite && v-v == 0
		}
	}
	return finite
}

// Narrow writes codes as bytes, Outside for those that a byte does not have, and returns a number that is above each code by
// at least 1 and above one of them by no more; 0 if all cells are missing.
func Narrow(dst []byte, codes []uint16) (above int) {
	return native.toNarrow(dst[:len(codes)], codes)
}

func (k *kernels) toNarrow(dst []byte, codes []uint16) (above int) {
	if k.narrow != nil && len(codes) >= block {
		top := k.narrow(&dst[0], &codes[0], len(codes)/block)
		if last := len(codes) - block; last%block > 0 {
			top = max(top, k.narrow(&dst[last], &codes[last], 1))
		}
		return int(top)
	}
	top := uint16(0)
	for i, c := range codes {
		if top, dst[i] = max(top, c+1), byte(min(c, Outside)); c == math.MaxUint16 {
			dst[i] = Missing
		}
	}
	return int(top)
}
