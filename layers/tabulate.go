package layers

import "math"

// Chain is a Family of one parameter whose codes follow each other by factors:
//
//	P(c+1) = P(c) · Factor(c) · odds
//
// with log P(0) and the odds as ChainStart gives them for a parameter.
type Chain interface {
	Family
	ChainStart(p float64) (log, odds float64)
	Factor(c int) float64
}

// leastTabulated is the exponent below which a probability of a table is 0, so that
// sums of exponents have room.
const leastTabulated = -1 << 28

// leastWhole is the exponent down to which every whole number is a float32.
const leastWhole = -1 << 24

// Tabulate writes the probabilities of the codes of the units lo to hi-1, given
// their parameters: params is [NumParams, width], table and exps are [Codes, width].
// With exps, a probability is the number in the table times 2^exponent, as SplitLog
// gives the two; without, the table has the probabilities.
func Tabulate(f Family, params []float32, width, lo, hi int, table, exps []float32) {
	if chain, ok := f.(Chain); ok && exps != nil {
		l := NewLinks(chain, params[lo:hi])
		l.Walk(table[lo:], exps[lo:], width)
		l.Finish(table[lo:], exps[lo:], width)
		return
	}
	p := make([]float64, f.NumParams())
	for u := lo; u < hi; u++ {
		for k := range p {
			p[k] = float64(params[k*width+u])
		}
		for c := range f.Codes() {
			at, log := c*width+u, f.LogProb(p, float64(c))
			if exps == nil {
				table[at] = float32(math.Exp(log))
				continue
			}
			m, e := SplitLog(log)
			table[at], exps[at] = float32(m), float32(e)
		}
	}
}

// SplitLog returns m and a whole e, which is a float32, such that m·2^e has the natural log
// given, or zeros where e would be below -2^28. m is in [1, 2] where e is at least -2^24.
func SplitLog(log float64) (m, e float64) {
	e = math.Floor(log / math.Ln2)
	if !(e >= leastTabulated) {
		return 0, 0
	}
	return fit32(min(max(math.Exp(log-e*math.Ln2), 1), 2), e)
}

// fit32 returns m·2^e with an e that is a float32. Below -2^24 only some whole numbers are one:
// what rounding takes from e goes to m, which then may lie some powers of two off 1 to 2. Of two
// such numbers, the one with the larger e is still not the smaller one.
func fit32(m, e float64) (float64, float64) {
	if e >= leastWhole {
		return m, e
	}
	near := float64(float32(e))
	return math.Ldexp(m, int(e-near)), near
}

// Links are what a chain is tabulated from, for units side by side: of each the
// probability M·2^E of code 0 and the odds, and of the codes but the last the factors.
type Links struct {
	M, E, Odds []float64
	Factors    []float64
	certain    []int // units of the last code alone, to which no factor leads
	far        []far
}

// far is a unit whose code 0 is less probable than tables hold, as with many trials that nearly always succeed: Walk has
// zeros for it, since nothing leads from 0 to what is above 2^-2^28.
type far struct {
	unit       int
	m, e, odds float64
}

// NewLinks returns those of a chain, given the parameters of the units.
func NewLinks(f Chain, params []float32) *Links {
	n := len(params)
	l := &Links{M: make([]float64, n), E: make([]float64, n), Odds: make([]float64, n), Factors: make([]float64, f.Codes()-1)}
	for c := range l.Factors {
		l.Factors[c] = f.Factor(c)
	}
	for u, p := range params {
		log, odds := f.ChainStart(float64(p))
		if math.IsInf(odds, 1) {
			l.certain = append(l.certain, u)
			continue
		}
		l.M[u], l.E[u] = SplitLog(log)
		l.Odds[u] = odds
		if e := math.Floor(log / math.Ln2); e < leastTabulated && !math.IsInf(log, -1) {
			l.far = append(l.far, far{u, math.Exp(log - e*math.Ln2), e, odds})
		}
	}
	return l
}

// Walk writes the rows of a table and its exponents, width floats apart, code by code,
// since that is how tables lie in memory. M and E end at the last code.
func (l *Links) Walk(table, exps []float32, width int) {
	n := len(l.M)
	for c := 0; ; c++ {
		row, exp := table[c*width:][:n], exps[c*width:][:n]
		for u, m := range l.M {
			m, e := fit32(m, l.E[u])
			row[u], exp[u] = float32(m), float32(e)
		}
		if c == len(l.Factors) {
			return
		}
		for u, m := range l.M {
			bits := math.Float64bits(m * l.Factors[c] * l.Odds[u])
			if bits == 0 {
				l.M[u], l.E[u] = 0, 0
				continue
			}
			l.E[u] += float64(int64(bits>>52) - 1023)
			l.M[u] = math.Float64frombits(bits&(1<<52-1) | 1023<<52)
		}
	}
}

// Finish writes what Walk, or what does the same, does not come to.
func (l *Links) Finish(table, exps []float32, width int) {
	for _, u := range l.certain {
		table[len(l.Factors)*width+u] = 1
	}
	for u := range l.M { // probabilities fall to the last code
		for at := len(l.Factors)*width + u; at >= 0 && exps[at] < leastTabulated; at -= width {
			table[at], exps[at] = 0, 0
		}
	}
	for _, f := range l.far {
		for c := 0; ; c++ {
			if f.e >= leastTabulated {
				m, e := fit32(f.m, f.e)
				table[c*width+f.unit], exps[c*width+f.unit] = float32(m), float32(e)
			}
			if c == len(l.Factors) {
				break
			}
			m, e := math.Frexp(f.m * l.Factors[c] * f.odds)
			f.m, f.e = 2*m, f.e+float64(e-1)
		}
	}
}
