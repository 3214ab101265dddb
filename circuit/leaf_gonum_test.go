package circuit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// peer is a distribution of gonum.org/v1/gonum/stat/distuv.
type peer interface{ LogProb(x float64) float64 }

// logistic is gonum's logistic distribution rounded to codes, whose ends take the tails.
type logistic struct {
	distuv.Logistic
	last float64
}

func (l logistic) LogProb(x float64) float64 {
	above, below := 1.0, 0.0
	if x < l.last {
		above = l.CDF(x + 0.5)
	}
	if x > 0 {
		below = l.CDF(x - 0.5)
	}
	return math.Log(above - below)
}

// spread is a categorical distribution over bins whose codes are alike.
type spread struct {
	distuv.Categorical
	leaf Histogram
}

func (s spread) LogProb(x float64) float64 {
	for i := range len(s.leaf.Edges) - 1 {
		if lo, hi := s.leaf.Edges[i], s.leaf.Edges[i+1]; x < float64(hi) {
			return s.Categorical.LogProb(float64(i)) - math.Log(float64(hi-lo))
		}
	}
	return math.Inf(-1)
}

// pieces is a categorical distribution over bins of numbers, each uniform, and a density
// outside of them. Its total is that of the leaf's densities, which need not be 1.
type pieces struct {
	distuv.Categorical
	leaf     RealHistogram
	total    float64
	outwards float64
}

func (d pieces) LogProb(x float64) float64 {
	lp := math.Log(d.outwards)
	for i := range d.leaf.NumParams() {
		u := distuv.Uniform{Min: d.leaf.Breaks[i], Max: d.leaf.Breaks[i+1]}
		if x >= u.Min && x < u.Max {
			lp = max(lp, d.Categorical.LogProb(float64(i))+u.LogProb(x)+math.Log(d.total))
		}
	}
	return lp
}

func (d pieces) Quantile(p float64) float64 {
	if d.leaf.Whole() {
		return math.Floor(d.quantile(p))
	}
	return d.quantile(p)
}

// quantile is that of numbers that need not be whole.
func (d pieces) quantile(p float64) float64 {
	last := d.leaf.NumParams() - 1
	for i := range last {
		share := d.Categorical.Prob(float64(i))
		if p < share {
			return distuv.Uniform{Min: d.leaf.Breaks[i], Max: d.leaf.Breaks[i+1]}.Quantile(p / share)
		}
		p -= share
	}
	share := d.Categorical.Prob(float64(last))
	return distuv.Uniform{Min: d.leaf.Breaks[last], Max: d.leaf.Breaks[last+1]}.Quantile(min(1, p/share))
}

// peerOf returns gonum's distribution of a leaf, nil if it has none.
func peerOf(l Leaf, p []float64) peer {
	switch l := l.(type) {
	case Bernoulli:
		return distuv.Bernoulli{P: p[1]}
	case Categorical:
		return distuv.NewCategorical(p, nil)
	case Binomial:
		return distuv.Binomial{N: float64(l.Trials), P: p[0]}
	case Poisson:
		return distuv.Poisson{Lambda: p[0]}
	case Gaussian:
		return distuv.Normal{Mu: p[0], Sigma: p[1]}
	case LogNormal:
		return distuv.LogNormal{Mu: p[0], Sigma: p[1]}
	case DiscretisedLogistic:
		return logistic{distuv.Logistic{Mu: p[0], S: p[1]}, float64(l.Domain - 1)}
	case Histogram:
		return spread{distuv.NewCategorical(p, nil), l}
	case RealHistogram:
		d := pieces{leaf: l, outwards: l.Floor}
		masses := make([]float64, len(p))
		for i := range p {
			masses[i] = p[i] * (l.Breaks[i+1] - l.Breaks[i])
			d.total += masses[i]
		}
		d.Categorical = distuv.NewCategorical(masses, nil)
		return d
	}
	return nil
}

// quantiles are those of a continuous leaf's peer at n even distances.
func quantiles(q interface{ Quantile(p float64) float64 }, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = q.Quantile((float64(i) + 0.5) / float64(n))
	}
	return xs
}

// TestLeafDensitiesOfGonum holds the densities of leaves to gonum's. An Indicator has no
// peer there.
func TestLeafDensitiesOfGonum(t *testing.T) {
	forFamilies(t, func(t *testing.T, l Leaf, p []float64, rng *rand.Rand) {
		d := peerOf(l, p)
		xs := domain(l)
		if d == nil {
			if _, ok := l.(Indicator); !ok {
				t.Fatal("no peer")
			}
			return
		}
		if q, ok := d.(interface{ Quantile(p float64) float64 }); ok && l.Codes() == 0 && l.Name() != (Poisson{}).Name() {
			xs = quantiles(q, 101)
		}
		for _, x := range xs {
			got, want := l.LogProb(p, x), d.LogProb(x)
			if _, difference := d.(logistic); difference && want < -18 { // of numbers that are equal to eight digits
				continue
			}
			if !near(got, want, 1e-7*max(1, math.Abs(want))) {
				t.Errorf("p = %v: log density %v at %v, gonum has %v", p, got, x, want)
			}
		}
	})
}

// TestLeafDrawsFitGonum draws from leaves and tests the fit to gonum's distributions: of
// codes by chi-square, of numbers by Kolmogorov and Smirnov. The levels are such that one
// of 10,000 right samples would fail; seeds are fixed.
func TestLeafDrawsFitGonum(t *testing.T) {
	const (
		n     = 4000
		level = 1e-4
	)
	forFamilies(t, func(t *testing.T, l Leaf, p []float64, rng *rand.Rand) {
		d := peerOf(l, p)
		if d == nil {
			return
		}
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = l.Sample(p, rng)
		}
		if l.Codes() == 0 && l.Name() != (Poisson{}).Name() {
			slices.Sort(xs)
			const m = 20000
			q := d.(interface{ Quantile(p float64) float64 })
			got := stat.KolmogorovSmirnov(xs, nil, quantiles(q, m), nil)
			if most := math.Sqrt(-math.Log(level/2)/2/n) + 1.0/m; !(got <= most) {
				t.Errorf("p = %v: the distribution of draws is %v from gonum's, want %v at most", p, got, most)
			}
			return
		}
		observed, expected := fitCells(xs, d, n)
		if len(expected) < 2 {
			return
		}
		got := stat.ChiSquare(observed, expected)
		if most := (distuv.ChiSquared{K: float64(len(expected) - 1)}).Quantile(1 - level); !(got <= most) {
			t.Errorf("p = %v: chi-square %v of %d cells, want %v at most", p, got, len(expected), most)
		}
	})
}

// fitCells counts draws in cells of neighbouring codes of which at least ten are expected.
func fitCells(xs []float64, d peer, n int) (observed, expected []float64) {
	count := map[float64]float64{}
	for _, x := range xs {
		count[x]++
	}
	var o, e, seen, mass float64
	for x := 0.0; x < 1000 && mass < 1-1e-12; x++ {
		share := math.Exp(d.LogProb(x))
		o, e = o+count[x], e+share*float64(n)
		seen, mass = seen+count[x], mass+share
		if e >= 10 {
			observed, expected = append(observed, o), append(expected, e)
			o, e = 0, 0
		}
	}
	if len(expected) > 0 { // what is left, and what was drawn where hardly anything is expected
		last := len(expected) - 1
		observed[last] += o + float64(n) - seen
		expected[last] += e
	}
	return observed, expected
}
