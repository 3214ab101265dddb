package micro

import (
	"math"
	"unsafe"
)

// plainFactors is the largest number of factors that are multiplied without
// an exponent for each element.
const plainFactors = 3

// isWide reports whether elements are multiplied with an exponent for each.
func (a *ProductArgs) isWide() bool { return a.Wide || len(a.Factors) > plainFactors }

// row returns the n elements of row r of the factor, and their exponents or nil.
func (f *Factor) row(r, n int) (xs, exps []float32) {
	switch {
	case f.Codes != nil:
		r = int(*at(f.Codes, r))
	case f.WideCodes != nil:
		r = int(*at(f.WideCodes, r))
	}
	if f.Exps != nil {
		exps = row(f.Exps, r*f.Row, n)
	}
	return row(f.Base, r*f.Row, n), exps
}

func genericProduct(a *ProductArgs) {
	if a.Width == 0 {
		return
	}
	var exps []int32
	if a.isWide() {
		exps = unsafe.Slice((*int32)(unsafe.Pointer(a.Scratch)), a.Width)
	}
	for r := range a.Rows {
		out := row(a.Out, r*a.OutRow, a.Width)
		shift := at(a.Shift, r)
		if exps == nil {
			plainProduct(out, shift, a, r)
		} else {
			wideProduct(out, exps, shift, a, r)
		}
	}
}

// plainProduct computes row r by plain multiplication.
func plainProduct(out []float32, shift *int32, a *ProductArgs, r int) {
	if len(a.Factors) == 0 {
		for j := range out {
			out[j] = 1
		}
	}
	for i := range a.Factors {
		x, _ := a.Factors[i].row(r, len(out))
		if i == 0 {
			copy(out, x)
			continue
		}
		for j, v := range x {
			out[j] *= v
		}
	}
	if a.Fit {
		var most float32
		for _, v := range out {
			most = max(most, v)
		}
		*shift = fit(most)
	}
	scaleRow(out, *shift)
}

// fit returns the shift that brings the row maximum to [1, 2).
func fit(most float32) int32 {
	e := int32(math.Float32bits(most)>>23) - 127
	if e == -127 {
		return ZeroRow
	}
	return e
}

// scaleRow does x[j] *= 2^-shift; shifts above 127 write zeros.
func scaleRow(x []float32, shift int32) {
	if shift == ZeroRow || shift > 127 {
		clear(x)
		return
	}
	s := float32(math.Ldexp(1, -int(max(shift, -127))))
	for j := range x {
		x[j] *= s
	}
}

// lostExponent is the exponent of a zero: so low that adding the exponents of
// any number of other factors leaves it below all others.
const lostExponent = -1 << 30

// wideProduct computes row r with an exponent for each element: mantissas stay
// in [1, 2), exponents add up in exps.
func wideProduct(out []float32, exps []int32, shift *int32, a *ProductArgs, r int) {
	for j := range out {
		out[j], exps[j] = 1, 0
	}
	for i := range a.Factors {
		xs, own := a.Factors[i].row(r, len(out))
		for j, v := range xs {
			if v == 0 {
				exps[j] = lostExponent
			}
			if exps[j] == lostExponent {
				continue
			}
			m, e := split(v)
			if own != nil {
				e += int32(own[j])
			}
			m, up := split(out[j] * m)
			out[j], exps[j] = m, max(exps[j]+e+up, lostExponent+1)
		}
	}
	if a.Fit {
		*shift = ZeroRow
		for _, e := range exps {
			if e != lostExponent {
				*shift = max(*shift, e)
			}
		}
	}
	for j, m := range out {
		d := int(exps[j]) - int(*shift)
		if exps[j] == lostExponent || *shift == ZeroRow || d < -126 {
			out[j] = 0
			continue
		}
		out[j] = m * float32(math.Ldexp(1, min(d, 128)))
	}
}

// split returns m in [1, 2) and e with v = m·2^e, v being positive.
func split(v float32) (m float32, e int32) {
	bits := math.Float32bits(v)
	if bits>>23 == 0 {
		bits = math.Float32bits(v * 0x1p24)
		e = -24
	}
	return math.Float32frombits(bits&0x7fffff | 127<<23), e + int32(bits>>23) - 127
}
