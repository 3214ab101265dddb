package micro

import "math"

// exp2Terms are the coefficients of the polynomial in f, from -1/2 to 1/2, that is 2^f to
// 1.9e-9 of it: the best of degree 6 by Remez' exchange.
var exp2Terms = [7]float64{
	1.0000000005541667, 0.6931472057372687, 0.24022646890633798, 0.05550328776963733,
	0.009618488957126034, 0.0013399931219659378, 0.00015345812002855985,
}

// The least exponents of values of Set.Quadratic: of those that are a float32 without an exponent
// of their own, of these where the others have one, since a number of 0.7 times 2^-126
// is none, and of the others.
const (
	leastBare  = -126
	leastPlain = -125
	leastOwn   = -1 << 28
)

func genericQuadratic(a *QuadraticArgs) {
	logs := row(a.Logs, 0, a.Width)
	plain, least := float64(leastBare), float64(leastBare)
	if a.Own != nil {
		plain, least = leastPlain, leastOwn
	}
	for r := range a.Rows {
		g, off := *at(a.G, r), *at(a.Off, r)
		top := math.Inf(-1)
		for j := range logs {
			t := at(a.Terms, j/TermUnits*TermUnits*NumTerms+j%TermUnits)
			d := g - *at(t, TermCentre*TermUnits)
			l := math.FMA(*at(t, TermSlope*TermUnits), g, *at(t, TermAdd*TermUnits))
			l = math.FMA(-*at(t, TermCurve*TermUnits), d*d, l)
			logs[j] = l
			if l > top {
				top = l
			}
		}
		e := math.Ceil(top + off)
		*at(a.Exp, r) = Exponent(e)
		unit := e - off
		if e <= Lost {
			unit = top // which is so far down that e may be off by more than 1
		}
		out := row(a.Out, r*a.OutRow, a.Width)
		for j, l := range logs {
			d := l - unit
			n := math.RoundToEven(d)
			f := d - n
			p := exp2Terms[6]
			for k := 5; k >= 0; k-- {
				p = math.FMA(p, f, exp2Terms[k])
			}
			own := 0.0
			switch {
			case n >= plain:
				p *= math.Float64frombits(uint64(1023+int(n)) << 52)
			case n >= least:
				own = n
			default:
				p = 0
			}
			out[j] = float32(p)
			if a.Own != nil {
				*at(a.Own, r*a.OutRow+j) = float32(own)
			}
		}
	}
}

func genericAddScaled(sum *float64, f *float32, fRow int, t *float64, rows, width int) {
	sums := row(sum, 0, width)
	for r := range rows {
		s := *at(t, r)
		for j, v := range row(f, r*fRow, width) {
			sums[j] += float64(float64(v) * s) // rounded twice, as the assembly does
		}
	}
}
