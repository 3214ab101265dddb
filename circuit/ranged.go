package circuit

import (
	"math"
	"sync"

	"github.com/pce-engine/pce/internal/elementary"
)

// Ranged is a leaf without a finite domain that knows the probability of a range of
// numbers. Its methods take any low and high, infinite ones included, with low ≤ high.
type Ranged interface {
	Leaf
	// LogRange is the natural log of the probability of the numbers from low to high, both
	// included.
	LogRange(p []float64, low, high float64) float64
	// RangeMoments are mean and variance of the numbers from low to high. They may be
	// asked for only where LogRange is above -Inf.
	RangeMoments(p []float64, low, high float64) (mean, variance float64)
}

var _ = []Ranged{Gaussian{}, LogNormal{}, Poisson{}, RealHistogram{}}

// normalRange is a range of a normal distribution's numbers, in standard deviations: its ends as distances from
// the mean, and its width, which the difference of the ends may have no digits of.
type normalRange struct{ a, b, width float64 }

func rangeOf(mean, deviation, low, high, width float64) normalRange {
	return normalRange{(low - mean) / deviation, (high - mean) / deviation, width / deviation}
}

// LogRange is that of the standard normal distribution between the ends' distances from the
// mean in standard deviations.
func (Gaussian) LogRange(p []float64, low, high float64) float64 {
	return rangeOf(p[0], p[1], low, high, high-low).log()
}

// RangeMoments integrates over the part of the range that has all but e^-40 of its density.
func (Gaussian) RangeMoments(p []float64, low, high float64) (mean, variance float64) {
	r := rangeOf(p[0], p[1], low, high, high-low)
	m, v := r.moments(func(t float64) float64 { return p[1] * t })
	return r.pick(low, p[0], high) + m, v
}

// LogRange is the range of the logarithm under the normal distribution: -Inf if it has no
// positive number.
func (LogNormal) LogRange(p []float64, low, high float64) float64 {
	if high <= 0 {
		return math.Inf(-1)
	}
	low, high, width := logEnds(low, high)
	return rangeOf(p[0], p[1], low, high, width).log()
}

// logEnds returns the logarithms of the ends of a range that has positive numbers, and their difference.
func logEnds(low, high float64) (logLow, logHigh, width float64) {
	low = max(low, 0)
	logLow, logHigh = math.Log(low), math.Log(high)
	if width = logHigh - logLow; width < 1 {
		width = math.Log1p((high - low) / low)
	}
	return logLow, logHigh, width
}

// RangeMoments are those of the number. A moment of order k weighs the density of the
// logarithm by e^(k·y), which makes it that of a normal distribution further up. Those that float64 does not hold are +Inf.
func (l LogNormal) RangeMoments(p []float64, low, high float64) (mean, variance float64) {
	logLow, logHigh, width := logEnds(low, high)
	s := p[1] * p[1]
	all := rangeOf(p[0], p[1], logLow, logHigh, width)
	if width < 1 { // the second moment less the square of the first would have no digits left
		at := all.pick(low, math.Exp(p[0]), high)
		m, v := all.moments(func(t float64) float64 { return at * math.Expm1(p[1]*t) })
		return at + m, v
	}
	moment := func(k float64) float64 {
		return elementary.Exp(k*p[0] + k*k*s/2 + rangeOf(p[0]+k*s, p[1], logLow, logHigh, width).log() - all.log())
	}
	mean, square := moment(1), moment(2)
	if math.IsInf(square, 1) { // beyond float64; the square of the mean, which is smaller, may be, too
		return mean, square
	}
	return mean, max(0, square-mean*mean)
}

// LogRange adds up the probabilities of the counts from the largest one on to both sides.
func (l Poisson) LogRange(p []float64, low, high float64) float64 {
	top, sum, _, _ := l.addRange(p, low, high)
	return top + math.Log(sum)
}

// RangeMoments are those of the counts from low to high, computed as distances from the
// likeliest of them, which keeps their digits when the range is far from 0.
func (l Poisson) RangeMoments(p []float64, low, high float64) (mean, variance float64) {
	_, sum, first, second := l.addRange(p, low, high)
	at := min(max(l.Mode(p), math.Ceil(low)), math.Floor(high))
	mean = first / sum
	return at + mean, max(0, second/sum-mean*mean)
}

// addRange returns the log of the largest probability of the counts from low to high and, in
// units of it, the sums of their probabilities and of these times the distance from the
// likeliest count and its square. Counts below 1e-20 of it are left out, and many counts are integrated over.
func (l Poisson) addRange(p []float64, low, high float64) (top, sum, first, second float64) {
	low, high = max(0, math.Ceil(low)), math.Floor(high)
	if low > high {
		return math.Inf(-1), 0, 0, 0
	}
	const least = 1e-20
	at := min(max(l.Mode(p), low), high)
	if min(high-low, poissonReach(p[0], at)) > manyCounts {
		return l.addMany(p, low, high, at)
	}
	sum = 1
	for k, w := at, 1.0; k < high; {
		k++
		if w *= p[0] / k; w < least {
			break
		}
		sum, first, second = sum+w, first+w*(k-at), second+w*(k-at)*(k-at)
	}
	for k, w := at, 1.0; k > low; {
		w *= k / p[0]
		if k--; w < least {
			break
		}
		sum, first, second = sum+w, first+w*(k-at), second+w*(k-at)*(k-at)
	}
	return l.LogProb(p, at), sum, first, second
}

// manyCounts is how many counts are added up one by one at most; those of a rate of 10^12 that matter are 10^7.
const manyCounts = 1 << 16

// poissonReach is how far from a count, on the side away from the rate, the probabilities are below 1e-20 of its own.
func poissonReach(rate, at float64) float64 {
	const far = 46 // natural logs
	deviation := math.Sqrt(rate)
	z := math.Abs(at-rate) / deviation
	return deviation * 2 * far / (z + math.Sqrt(z*z+2*far))
}

// addMany is addRange of many counts, from one of which to the next the probability changes by less than a thousandth. By the rule of the
// midpoint their sum is the integral from half a count below the first to half a count above the last, to 1e-7 of it.
func (l Poisson) addMany(p []float64, low, high, at float64) (top, sum, first, second float64) {
	const parts = 16
	top = l.LogProb(p, at)
	reach := poissonReach(p[0], at)
	lo, hi := max(low-0.5-at, -reach), min(high+0.5-at, reach)
	share := func(d float64) float64 { return math.Exp(l.LogProb(p, at+d) - top) }
	sum, first = integrate(lo, hi, parts, func(d float64) (float64, float64) { w := share(d); return w, w * d })
	second, _ = integrate(lo, hi, parts, func(d float64) (float64, float64) { return share(d) * d * d, 0 })
	return top, sum, first, second
}

// log is the natural log of the probability that a number lies in the range.
func (r normalRange) log() float64 {
	a, b := r.a, r.b
	if !(r.width > 0) {
		return math.Inf(-1)
	}
	if a+b < 0 { // the tails are alike
		a, b = -b, -a
	}
	mid := (a + b) / 2
	switch {
	case r.width*max(1, mid) < 0.5: // a difference of distribution functions would have no digits left
		area, _ := integrate(-r.width/2, r.width/2, 1, func(t float64) (float64, float64) { return math.Exp(-t * (t/2 + mid)), 0 })
		return -mid*mid/2 - logRoot2Pi + math.Log(area)
	case a > 0:
		left := logNormalTail(a)
		return left + math.Log1p(-math.Exp(logNormalTail(b)-left))
	}
	return math.Log1p(-(math.Erfc(-a/math.Sqrt2) + math.Erfc(b/math.Sqrt2)) / 2)
}

const logRoot2Pi = 0.91893853320467274178

// logNormalTail is the natural log of the probability that a standard normal number is above
// z, which is not negative.
func logNormalTail(z float64) float64 {
	if z < 30 {
		return math.Log(math.Erfc(z/math.Sqrt2) / 2)
	}
	x := 1 / (z * z) // the asymptotic series, which is off by less than 1e-11 here
	return -z*z/2 - math.Log(z) - logRoot2Pi + math.Log1p(-x*(1-x*(3-x*(15-x*105))))
}

// pick returns the argument that belongs to the number of largest density: to one of the ends, or to the mean between
// them.
func (r normalRange) pick(low, mean, high float64) float64 {
	switch {
	case r.a > 0:
		return low
	case r.b < 0:
		return high
	}
	return mean
}

// moments returns mean and variance of a function of a number's distance from that of largest density, both in
// standard deviations. Distances keep the digits that numbers far from 0 do not have.
func (r normalRange) moments(of func(t float64) float64) (mean, variance float64) {
	const far = 40 // natural logs below the largest density
	at, lo, hi := r.pick(r.a, 0, r.b), r.pick(0, r.a, -r.width), r.pick(r.width, r.b, 0)
	reach := 2 * far / (math.Abs(at) + math.Sqrt(at*at+2*far))
	lo, hi = max(lo, -reach), min(hi, reach)
	density := func(t float64) float64 { return math.Exp(-t * (t/2 + at)) }
	const parts = 16
	area, sum := integrate(lo, hi, parts, func(t float64) (float64, float64) { d := density(t); return d, d * of(t) })
	mean = sum / area
	_, sum = integrate(lo, hi, parts, func(t float64) (float64, float64) {
		x := of(t) - mean
		return 0, density(t) * x * x
	})
	return mean, sum / area
}

// integrate integrates two functions from a to b by Gauss and Legendre's rule of 16 points on
// each of some parts.
func integrate(a, b float64, parts int, of func(x float64) (float64, float64)) (first, second float64) {
	rule := legendre()
	half := (b - a) / float64(2*parts)
	for k := range parts {
		mid := a + half*float64(2*k+1)
		for i, x := range rule.at {
			f, g := of(mid + half*x)
			first, second = first+rule.weight[i]*f, second+rule.weight[i]*g
		}
	}
	return first * half, second * half
}

// legendreRule is a rule of integration over -1 to 1.
type legendreRule struct{ at, weight [16]float64 }

// legendre finds the roots of the Legendre polynomial by Newton's method.
var legendre = sync.OnceValue(func() *legendreRule {
	r := new(legendreRule)
	n := len(r.at)
	for i := range n {
		x := math.Cos(math.Pi * (float64(i) + 0.75) / (float64(n) + 0.5))
		slope := 0.0
		for range 10 {
			p, before := 1.0, 0.0
			for k := range n {
				p, before = (float64(2*k+1)*x*p-float64(k)*before)/float64(k+1), p
			}
			slope = float64(n) * (x*p - before) / (x*x - 1)
			x -= p / slope
		}
		r.at[i], r.weight[i] = x, 2/((1-x*x)*slope*slope)
	}
	return r
})
