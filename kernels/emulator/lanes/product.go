package lanes

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// MMA says how matrix instructions add. The zero value adds exact products in
// float64 and rounds the sum once. Otherwise Group products of 16-bit operands (half
// as many of tf32) and the sum so far are cut to ExtraBits bits below the 24 of the
// largest, added and cut to 24 bits: {16, 2} is Hopper, {8, 1} is Ampere.
type MMA struct {
	Group     int
	ExtraBits int
}

// maxExtra is how many bits below the largest the assembly can cut to: sums of
// integers so large are exact in float64.
const maxExtra = 20

// Multiplier returns the matrix product of 16×k and k×8 elements of a type, or nil
// where the language has none. A set multiplies if it can.
func (m MMA) Multiplier(set *Set, k int, t ptx.Type) func(p *Product) {
	group := m.Group
	if t == ptx.TF32 {
		group = (group + 1) / 2
	}
	group = min(group, k)
	var gather func(p *Product)
	kind := 0 // of the assembly's operands
	switch {
	case t == ptx.TF32 && k == 8:
		gather, kind = (*Product).gatherTensors, 0
	case t == ptx.F16 && k == 16:
		gather, kind = func(p *Product) { p.gatherHalves(2) }, 1
	case t == ptx.F16 && k == 8:
		gather, kind = func(p *Product) { p.gatherHalves(1) }, 2
	case t == ptx.BF16 && k == 16:
		gather, kind = (*Product).gatherBrains, 3
	default:
		return nil
	}
	plain := func(p *Product) {
		gather(p)
		p.gatherSums()
		if group > 0 && p.finite(k) {
			p.addTruncated(k, group, m.ExtraBits)
		} else {
			p.addExactly(k) // infinities and NaN need no bits
		}
		p.scatterSums()
	}
	cuts := group > 0
	if set.multiply == nil || group < 0 || cuts && (group%4 != 0 || k%group != 0 || m.ExtraBits < 0 || m.ExtraBits > maxExtra) {
		return plain
	}
	return func(p *Product) {
		if !set.multiply(p, kind, group, m.ExtraBits) {
			plain(p)
		}
	}
}

// addExactly adds in float64, in the order of k.
func (p *Product) addExactly(k int) {
	for i := range p.c {
		row, c := &p.a[i], &p.c[i]
		s0, s1, s2, s3 := float64(c[0]), float64(c[1]), float64(c[2]), float64(c[3])
		s4, s5, s6, s7 := float64(c[4]), float64(c[5]), float64(c[6]), float64(c[7])
		for l, x := range row[:k&31] {
			y := &p.b[l&15]
			s0 += float64(x * y[0])
			s1 += float64(x * y[1])
			s2 += float64(x * y[2])
			s3 += float64(x * y[3])
			s4 += float64(x * y[4])
			s5 += float64(x * y[5])
			s6 += float64(x * y[6])
			s7 += float64(x * y[7])
		}
		*c = [8]float32{float32(s0), float32(s1), float32(s2), float32(s3), float32(s4), float32(s5), float32(s6), float32(s7)}
	}
}

// finite reports whether no operand is infinite or NaN.
func (p *Product) finite(k int) bool {
	var sum float64
	for i := range p.a {
		for _, x := range p.a[i][:k] {
			sum += x - x
		}
		for _, x := range p.c[i] {
			sum += float64(x - x)
		}
	}
	for i := range p.b[:k] {
		for _, x := range p.b[i] {
			sum += x - x
		}
	}
	return sum == 0
}

// noExponent is that of zero: below all others, and so are its sums.
const noExponent = -1 << 20

// exponentOf is the exponent of a number. An f16 below the normal range has its own
// here, not that of the least normal number.
func exponentOf(x float64) int32 {
	if x == 0 {
		return noExponent
	}
	return int32(math.Float64bits(x)>>52&0x7ff) - 1023
}

// addTruncated adds as tensor cores are modelled: c and a group of products are
// aligned to the largest exponent, a product's being the sum of its factors', and
// cut to 23 + extra bits behind the point; their sum is cut to f32.
func (p *Product) addTruncated(k, group, extra int) {
	var ea, eb [16][16]int32 // eb is [8][k]
	for i := range p.a {
		for l, x := range p.a[i][:k] {
			ea[i][l] = exponentOf(x)
		}
	}
	for l := range k {
		for j, y := range p.b[l] {
			eb[j][l] = exponentOf(y)
		}
	}
	for at := 0; at < k; at += group {
		end := min(at+group, k)
		for i := range p.c {
			for j := range p.c[i] {
				c := float64(p.c[i][j])
				if math.IsInf(c, 0) {
					continue // an earlier group was too large
				}
				top := exponentOf(c)
				if c != 0 {
					top = max(top, -126)
				}
				for l := at; l < end; l++ {
					top = max(top, ea[i][l&15]+eb[j][l&15])
				}
				if top < noExponent/2 {
					p.c[i][j] += 0 // all are zero
					continue
				}
				// unit and scale are powers of two, well inside float64.
				power := int(top) - 23 - extra
				unit := math.Float64frombits(uint64(1023+power) << 52)
				scale := math.Float64frombits(uint64(1023-power) << 52)
				sum := int64(c * scale)
				for l := at; l < end; l++ {
					sum += int64(p.a[i][l&15] * p.b[l&15][j] * scale)
				}
				p.c[i][j] = cut(float64(sum) * unit)
			}
		}
	}
}

// cut rounds towards zero to f32.
func cut(x float64) float32 {
	if y := math.Abs(x); y >= 0x1p-126 {
		return float32(math.Float64frombits(math.Float64bits(x) &^ (1<<29 - 1)))
	}
	return towardZero.single(x)
}
