package codec

import (
	"github.com/pce-engine/pce/circuit"
)

// table holds the cumulative probabilities of an input: below[x-1][unit] is the unit's
// probability of the codes below x, for x of 1..codes-1. Those below 0 are 0, and those
// below codes are 1.
type table struct {
	below []float64
	units int
	codes int
}

func newTable(l circuit.Leaf, units int, params []float32) (table, error) {
	t := table{units: units, codes: l.Codes()}
	t.below = make([]float64, (t.codes-1)*units)
	p := make([]float64, l.NumParams())
	mass := make([]float64, t.codes)
	for u := range units {
		for i := range p {
			p[i] = float64(params[u*len(p)+i])
		}
		if err := masses(mass, l, p); err != nil {
			return t, err
		}
		all := 0.0
		for _, x := range mass {
			all += x
		}
		if !(all > 0) {
			return t, badModel("%s leaf with parameters %v gives no code a probability", l.Name(), p[:min(len(p), 8)])
		}
		sum := 0.0
		for x, q := range mass[:t.codes-1] {
			sum += q
			t.below[x*units+u] = min(sum/all, 1)
		}
	}
	return t, nil
}

// row returns the probabilities of the codes below x, 0 < x < codes.
func (t *table) row(x int) []float64 { return t.below[(x-1)*t.units:][:t.units] }

// dot adds the products of two vectors in eight sums, x[8i+k]·y[8i+k] in sum k, so that
// additions do not wait for each other.
//
// With no product negative, each rounded sum grows with every y, so the probability
// below a code is never above that below the next.
func dot(x, y []float64) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	for len(x) >= 8 {
		a, b := (*[8]float64)(x), (*[8]float64)(y)
		s0 += float64(a[0] * b[0])
		s1 += float64(a[1] * b[1])
		s2 += float64(a[2] * b[2])
		s3 += float64(a[3] * b[3])
		s4 += float64(a[4] * b[4])
		s5 += float64(a[5] * b[5])
		s6 += float64(a[6] * b[6])
		s7 += float64(a[7] * b[7])
		x, y = x[8:], y[8:]
	}
	rest := [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
	for i := range x {
		rest[i] += float64(x[i] * y[i])
	}
	return join(&rest)
}

// total is dot of x and ones.
func total(x []float64) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	for ; len(x) >= 8; x = x[8:] {
		a := (*[8]float64)(x)
		s0, s1, s2, s3 = s0+a[0], s1+a[1], s2+a[2], s3+a[3]
		s4, s5, s6, s7 = s4+a[4], s5+a[5], s6+a[6], s7+a[7]
	}
	rest := [8]float64{s0, s1, s2, s3, s4, s5, s6, s7}
	for i := range x {
		rest[i] += x[i]
	}
	return join(&rest)
}

func join(s *[8]float64) float64 {
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}
