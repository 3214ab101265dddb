package simplex

import (
	"math/big"
	"math/bits"
)

// arithmetic computes with the integers of a dictionary.
type arithmetic[T any] interface {
	// cross returns (a*p - b*c)/d, which is an integer, and whether it fits.
	cross(a, p, b, c, d T) (T, bool)
	neg(T) T
	sign(T) int
	// compareProducts returns the sign of a*b - c*d.
	compareProducts(a, b, c, d T) int
	of(int64) T
	big(T) *big.Int
}

// machine computes with 64 bits.
type machine struct{}

// half bounds numbers whose products, and the differences of these, fit into 64
// bits.
const half = 1 << 31

func (machine) cross(a, p, b, c, d int64) (int64, bool) {
	if small(a) && small(p) && small(b) && small(c) {
		return (a*p - b*c) / d, true
	}
	x, ok := mul(a, p)
	y, ok2 := mul(b, c)
	z := x - y
	if !ok || !ok2 || (z < x) != (y > 0) || z == -1<<63 {
		return 0, false
	}
	return z / d, true
}

func small(x int64) bool { return -half < x && x < half }

// mul returns x*y and whether it is between -2^63 and 2^63, both left out.
func mul(x, y int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	if hi != 0 || lo > 1<<63-1 {
		return 0, false
	}
	if (x < 0) != (y < 0) {
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func (machine) neg(x int64) int64 { return -x }

func (machine) sign(x int64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

// compareProducts is called with b and d positive or zero, and a and c of any sign.
func (m machine) compareProducts(a, b, c, d int64) int {
	if s, t := m.sign(a)*m.sign(b), m.sign(c)*m.sign(d); s != t || s == 0 {
		return m.sign(int64(s - t))
	}
	h1, l1 := bits.Mul64(magnitude(a), magnitude(b))
	h2, l2 := bits.Mul64(magnitude(c), magnitude(d))
	order := 0
	switch {
	case h1 != h2:
		order = 1 - 2*less(h1, h2)
	case l1 != l2:
		order = 1 - 2*less(l1, l2)
	}
	return order * m.sign(a) * m.sign(b)
}

func less(x, y uint64) int {
	if x < y {
		return 1
	}
	return 0
}

func (machine) of(x int64) int64     { return x }
func (machine) big(x int64) *big.Int { return big.NewInt(x) }

// unlimited computes with integers of any size.
type unlimited struct{}

func (unlimited) cross(a, p, b, c, d *big.Int) (*big.Int, bool) {
	x := new(big.Int).Mul(a, p)
	x.Sub(x, new(big.Int).Mul(b, c))
	return x.Quo(x, d), true
}

func (unlimited) neg(x *big.Int) *big.Int { return new(big.Int).Neg(x) }
func (unlimited) sign(x *big.Int) int     { return x.Sign() }

func (unlimited) compareProducts(a, b, c, d *big.Int) int {
	return new(big.Int).Mul(a, b).Cmp(new(big.Int).Mul(c, d))
}

func (unlimited) of(x int64) *big.Int     { return big.NewInt(x) }
func (unlimited) big(x *big.Int) *big.Int { return x }
