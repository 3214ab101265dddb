package polyhedron

import (
	"math/big"
	"slices"
	"strings"
)

// Polynomial is a polynomial with rational coefficients in numbered variables. The
// zero value is 0.
type Polynomial struct {
	terms map[string]*big.Rat // exponents, a byte per variable without trailing zeros, to coefficient
}

// constantPolynomial returns the polynomial c.
func constantPolynomial(c int64) Polynomial {
	p := Polynomial{}
	p.add("", big.NewRat(c, 1))
	return p
}

// rowPolynomial returns the polynomial of an affine row.
func rowPolynomial(r Row) Polynomial {
	p := Polynomial{}
	for v, c := range r[:len(r)-1] {
		if c != 0 {
			p.add(strings.Repeat("\x00", v)+"\x01", big.NewRat(c, 1))
		}
	}
	p.add("", big.NewRat(r[len(r)-1], 1))
	return p
}

// add adds c times a monomial.
func (p *Polynomial) add(monomial string, c *big.Rat) {
	if p.terms == nil {
		p.terms = map[string]*big.Rat{}
	}
	if old, ok := p.terms[monomial]; ok {
		c = new(big.Rat).Add(old, c)
	}
	if c.Sign() == 0 {
		delete(p.terms, monomial)
		return
	}
	p.terms[monomial] = c
}

// plus returns p + c*q.
func (p Polynomial) plus(q Polynomial, c *big.Rat) Polynomial {
	sum := Polynomial{}
	for m, x := range p.terms {
		sum.add(m, x)
	}
	for m, x := range q.terms {
		sum.add(m, new(big.Rat).Mul(x, c))
	}
	return sum
}

// times returns p*q.
func (p Polynomial) times(q Polynomial) Polynomial {
	product := Polynomial{}
	for m, x := range p.terms {
		for n, y := range q.terms {
			product.add(multiply(m, n), new(big.Rat).Mul(x, y))
		}
	}
	return product
}

// multiply adds the exponents of two monomials.
func multiply(m, n string) string {
	if len(m) < len(n) {
		m, n = n, m
	}
	b := []byte(m)
	for k := range n {
		b[k] += n[k]
	}
	return string(b)
}

// byPower returns the coefficients of p as a polynomial in variable v: p is the sum
// of byPower[k] * v^k.
func (p Polynomial) byPower(v int) []Polynomial {
	var out []Polynomial
	for m, x := range p.terms {
		k := 0
		if v < len(m) {
			k = int(m[v])
			b := []byte(m)
			b[v] = 0
			m = strings.TrimRight(string(b), "\x00")
		}
		for len(out) <= k {
			out = append(out, Polynomial{})
		}
		out[k].add(m, x)
	}
	return out
}

// substitute returns p with q in place of variable v.
func (p Polynomial) substitute(v int, q Polynomial) Polynomial {
	sum, power := Polynomial{}, constantPolynomial(1)
	for _, c := range p.byPower(v) {
		sum = sum.plus(c.times(power), big.NewRat(1, 1))
		power = power.times(q)
	}
	return sum
}

// sumOver returns the sum of p over variable v from low to high, which holds for
// high >= low-1.
func (p Polynomial) sumOver(v int, low, high Polynomial) Polynomial {
	minusOne := constantPolynomial(-1)
	before := low.plus(minusOne, big.NewRat(1, 1))
	sum := Polynomial{}
	for k, c := range p.byPower(v) {
		f := faulhaber(k, v)
		part := f.substitute(v, high).plus(f.substitute(v, before), big.NewRat(-1, 1))
		sum = sum.plus(c.times(part), big.NewRat(1, 1))
	}
	return sum
}

// faulhaber returns the polynomial in variable v that is the sum of x^k for x from 0
// to v, with 0^0 = 1.
func faulhaber(k, v int) Polynomial {
	// (v+1)^(k+1) is the sum over j <= k of binomial(k+1, j) times the sum of x^j.
	x := Polynomial{}
	x.add(strings.Repeat("\x00", v)+"\x01", big.NewRat(1, 1))
	next := x.plus(constantPolynomial(1), big.NewRat(1, 1))
	sums := make([]Polynomial, k+1)
	power := constantPolynomial(1)
	for n := 0; n <= k; n++ {
		power = power.times(next)
		s := power
		binomial := big.NewInt(0)
		for j := range n {
			s = s.plus(sums[j], new(big.Rat).SetInt(binomial.Neg(binomial.Binomial(int64(n+1), int64(j)))))
		}
		sums[n] = s.times(Polynomial{map[string]*big.Rat{"": big.NewRat(1, int64(n+1))}})
	}
	return sums[k]
}

// Eval returns the value of p at x, exactly.
func (p Polynomial) Eval(x []int64) *big.Rat {
	sum := new(big.Rat)
	for m, c := range p.terms {
		t := new(big.Rat).Set(c)
		for v := range m {
			power := new(big.Int).Exp(big.NewInt(x[v]), big.NewInt(int64(m[v])), nil)
			t.Mul(t, new(big.Rat).SetInt(power))
		}
		sum.Add(sum, t)
	}
	return sum
}

// Monomial has the exponent of each variable.
type Monomial []int

// Leading returns the monomials of p that divide no other one of p.
func (p Polynomial) Leading(vars int) []Monomial {
	var list []Monomial
	for m := range p.terms {
		e := make(Monomial, vars)
		for v := range m {
			e[v] = int(m[v])
		}
		list = append(list, e)
	}
	return Maximal(list)
}

// Maximal returns the monomials that divide no other one of the list, each once, in
// descending order.
func Maximal(list []Monomial) []Monomial {
	var out []Monomial
	for i, m := range list {
		kept := true
		for j, n := range list {
			if i != j && divides(m, n) && (!slices.Equal(m, n) || j < i) {
				kept = false
				break
			}
		}
		if kept {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(m, n Monomial) int { return slices.Compare(n, m) })
	return out
}

func divides(m, n Monomial) bool {
	for v := range m {
		if m[v] > n[v] {
			return false
		}
	}
	return true
}
