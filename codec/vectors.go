package codec

import (
	"math"

	"github.com/pce-engine/pce/codec/lanes"
)

// groupRows is how many rows are coded side by side, so that a weight is read once for
// all of them. It is part of the format: rows of a group take turns at each variable.
const groupRows = lanes.Rows

// lane holds a number of each row of a group.
type lane = lanes.Lane

// vector holds the numbers of a node's units. Those of row r are m[unit][r]·2^exp[r].
type vector struct {
	m   []lane
	exp [groupRows]int64
}

// zeroExp is the exponent of a row of zeros: so low that it never counts.
const zeroExp = math.MinInt64 / 4

func newVector(units int) vector { return vector{m: make([]lane, units)} }

// fill sets all numbers to 1.
func (v *vector) fill() {
	one := lane{}
	for r := range one {
		one[r] = 1
	}
	for u := range v.m {
		v.m[u] = one
	}
	v.exp = [groupRows]int64{}
}

// fillRow sets the numbers of a row to 1.
func (v *vector) fillRow(r int) {
	for u := range v.m {
		v.m[u][r] = 1
	}
	v.exp[r] = 0
}

func (v *vector) set(from *vector) {
	copy(v.m, from.m)
	v.exp = from.exp
}

// product sets v to the products of x and y, either of which may be v itself.
func (v *vector) product(x, y *vector) {
	top := lanes.Times(v.m, x.m, y.m)
	for r := range v.exp {
		v.exp[r] = max(x.exp[r]+y.exp[r], zeroExp)
	}
	v.rescale(&top)
}

// normalise moves a row's powers of 2 into its exponent where its largest number is
// far from 1.
func (v *vector) normalise() {
	top := lanes.Tops(v.m)
	v.rescale(&top)
}

// rescale is normalise where the largest number of each row is known.
func (v *vector) rescale(top *lane) {
	for r, x := range top {
		switch {
		case x == 0:
			v.exp[r] = zeroExp
		case x < 0x1p-64 || x > 0x1p64:
			_, k := math.Frexp(x)
			v.scaleRow(r, -int64(k))
			v.exp[r] += int64(k)
		}
	}
}

// scaleRow multiplies a row by 2^k.
func (v *vector) scaleRow(r int, k int64) {
	for ; k > 1000; k -= 1000 { // of a row whose largest number is subnormal
		v.scaleRow(r, 1000)
	}
	f := power2(k)
	for u := range v.m {
		v.m[u][r] *= f
	}
}

// highest raises the exponents top to those of v where these are higher.
func (v *vector) highest(top *[groupRows]int64) {
	for r := range top {
		top[r] = max(top[r], v.exp[r])
	}
}

// factors returns what the numbers of v are multiplied by when the exponents become
// top, which are not lower.
func (v *vector) factors(top *[groupRows]int64) (f lane) {
	for r := range f {
		f[r] = power2(v.exp[r] - top[r])
	}
	return f
}

// multiply multiplies vectors by a factor for each row.
func multiply(x []lane, f lane) {
	for u := range x {
		a := &x[u]
		for r := range a {
			a[r] *= f[r]
		}
	}
}

// add adds y to x.
func add(x, y []lane) {
	y = y[:len(x)]
	for u := range x {
		a, b := &x[u], &y[u]
		for r := range a {
			a[r] += b[r]
		}
	}
}
