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

// times multiplies v by w.
func (v *vector) times(w *vector) {
	x, y := v.m, w.m[:len(v.m)]
	for u := range x {
		a, b := &x[u], &y[u]
		for r := range a {
			a[r] *= b[r]
		}
	}
	for r := range v.exp {
		v.exp[r] = max(v.exp[r]+w.exp[r], zeroExp)
	}
	v.normalise()
}

// normalise moves a row's powers of 2 into its exponent where its largest number is
// far from 1.
func (v *vector) normalise() {
	for r, x := range tops(v.m) {
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

// tops returns the largest number of each row. Numbers that are not negative compare as
// their bits do, which takes no branch.
func tops(x []lane) lane {
	var t0, t1, t2, t3, t4, t5, t6, t7 uint64
	for u := range x {
		a := &x[u]
		t0 = max(t0, math.Float64bits(a[0]))
		t1 = max(t1, math.Float64bits(a[1]))
		t2 = max(t2, math.Float64bits(a[2]))
		t3 = max(t3, math.Float64bits(a[3]))
		t4 = max(t4, math.Float64bits(a[4]))
		t5 = max(t5, math.Float64bits(a[5]))
		t6 = max(t6, math.Float64bits(a[6]))
		t7 = max(t7, math.Float64bits(a[7]))
	}
	out := lane{}
	for r, bits := range [groupRows]uint64{t0, t1, t2, t3, t4, t5, t6, t7} {
		out[r] = math.Float64frombits(bits)
	}
	return out
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
