package polyhedron

import (
	"cmp"
	"math/big"
	"math/bits"
)

// Row holds the coefficients of a constraint and, last, its constant. All are above
// -2^63.
type Row []int64

// add returns x+y and whether it fits.
func add(x, y int64) (int64, bool) {
	s := x + y
	return s, (s > x) == (y > 0)
}

// mul returns x*y and whether it fits.
func mul(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && (x < 0) == (y < 0) {
		return 0, false
	}
	if (x < 0) != (y < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}

// magnitude is |x|, also of the least int64.
func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func gcd(x, y uint64) uint64 {
	for y != 0 {
		x, y = y, x%y
	}
	return x
}

// floorDiv rounds x/y down; y > 0.
func floorDiv(x, y int64) int64 {
	q := x / y
	if x%y < 0 {
		q--
	}
	return q
}

// Eval returns the value of r at x, which has a number for each variable, and
// whether it fits into 64 bits.
func (r Row) Eval(x []int64) (int64, bool) { return partial(r, x, len(r)-1) }

// sign is the sign of the value of r at x, also where the value does not fit into 64 bits.
func (r Row) sign(x []int64) int {
	if v, ok := r.Eval(x); ok {
		return cmp.Compare(v, 0)
	}
	sum := big.NewInt(r[len(r)-1])
	for i, c := range r[:len(r)-1] {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(c), big.NewInt(x[i])))
	}
	return sum.Sign()
}

// partial is the value of r at the first n variables, the others being 0, and
// whether it and its negative fit into 64 bits.
func partial(r Row, x []int64, n int) (int64, bool) {
	s := r[len(r)-1]
	for i, c := range r[:n] {
		if c == 0 {
			continue
		}
		p, ok := mul(c, x[i])
		if !ok {
			return 0, false
		}
		if s, ok = add(s, p); !ok {
			return 0, false
		}
	}
	return s, s != -1<<63
}

// combine returns a*p + b*q. It computes with 64 bits and, where these overflow,
// with big integers; the result may still fit after division by the greatest
// common divisor of its coefficients.
func combine(a int64, p Row, b int64, q Row, equality bool) (Row, error) {
	r := make(Row, len(p))
	for i := range p {
		x, ok := mul(a, p[i])
		y, ok2 := mul(b, q[i])
		s, ok3 := add(x, y)
		if !ok || !ok2 || !ok3 || s == -1<<63 {
			return combineBig(a, p, b, q, equality)
		}
		r[i] = s
	}
	return r, nil
}

func combineBig(a int64, p Row, b int64, q Row, equality bool) (Row, error) {
	n := len(p) - 1
	big1 := make([]*big.Int, n+1)
	var g, t big.Int
	for i := range p {
		big1[i] = new(big.Int).Mul(big.NewInt(a), big.NewInt(p[i]))
		big1[i].Add(big1[i], t.Mul(big.NewInt(b), big.NewInt(q[i])))
		if i < n {
			g.GCD(nil, nil, &g, new(big.Int).Abs(big1[i]))
		}
	}
	r := make(Row, n+1)
	for i, x := range big1 {
		switch {
		case g.Sign() == 0:
		case i < n:
			x.Quo(x, &g)
		case equality && t.Mod(x, &g).Sign() != 0:
			return falseRow(n), nil
		default: // integers: the constant is rounded down
			x.Div(x, &g)
		}
		if !x.IsInt64() || x.Int64() == -1<<63 {
			return nil, ErrOverflow
		}
		r[i] = x.Int64()
	}
	return r, nil
}

// falseRow holds nowhere, as an inequality and as an equality.
func falseRow(n int) Row {
	r := make(Row, n+1)
	r[n] = -1
	return r
}

// state is what normalise finds out about a row.
type state int

const (
	open  state = iota // depends on the point
	true1              // holds everywhere
	never              // holds nowhere
)

// normalise divides r by the greatest common divisor of its coefficients, in
// place, and rounds the constant of an inequality down, which loses no integer
// point.
func normalise(r Row, equality bool) state {
	n := len(r) - 1
	var g uint64
	for _, c := range r[:n] {
		g = gcd(g, magnitude(c))
	}
	switch {
	case g == 0 && (r[n] == 0 || r[n] > 0 && !equality):
		return true1
	case g == 0:
		return never
	case g == 1 || g > 1<<62:
		return open
	}
	d := int64(g)
	if equality && r[n]%d != 0 {
		return never
	}
	for i := range r[:n] {
		r[i] /= d
	}
	r[n] = floorDiv(r[n], d)
	return open
}
