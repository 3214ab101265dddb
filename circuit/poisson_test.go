package circuit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestPoissonOfLargeRates compares log masses with those at a whole rate, which are -log(2π·rate)/2 - 1/(12·rate) + 1/(360·rate³)
// by Stirling's series, and with products of the ratios of neighbours from there.
func TestPoissonOfLargeRates(t *testing.T) {
	for _, rate := range []float64{40, 1e3, 1e6, 1e10, 1e11, maxRate} {
		p, reach := []float64{rate}, math.Floor(min(rate/2, 1e6))
		top := -math.Log(2*math.Pi*rate)/2 - 1/(12*rate) + 1/(360*rate*rate*rate)
		below, above := top, top
		for k := range int(reach) {
			j := float64(k)
			below, above = below+math.Log1p(-j/rate), above-math.Log1p((j+1)/rate)
			if k%97 != 0 && j < reach-1 {
				continue
			}
			for x, want := range map[float64]float64{rate: top, rate - j - 1: below, rate + j + 1: above} {
				if got := (Poisson{}).LogProb(p, x); !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
					t.Fatalf("%v of rate %v has %v, want %v", x, rate, got, want)
				}
			}
		}
	}
	// Where the forms meet, both are exact.
	for _, x := range []float64{31, 32, 33, 170} {
		for _, rate := range []float64{1e-6, 1, 32, 50, 1e4} {
			f, _ := math.Lgamma(x + 1)
			want := x*math.Log(rate) - rate - f
			if got := (Poisson{}).LogProb([]float64{rate}, x); !(math.Abs(got-want) <= 1e-13*max(math.Abs(want), f+rate)) {
				t.Errorf("%v of rate %v has %v, want %v", x, rate, got, want)
			}
		}
	}
}

// TestDrawOfWideCounts draws counts whose deviation is up to a million, looking at few of them, as their distribution has it. By
// walking from the mode, each draw looked at as many as that.
func TestDrawOfWideCounts(t *testing.T) {
	const draws = 20000
	rng := rand.New(rand.NewPCG(11, 3))
	for _, rate := range []float64{2e7, 1e10, maxRate} {
		l, p, looks := Poisson{}, []float64{rate}, 0
		var mean, square, inner, tail float64
		for range draws {
			x := drawUnimodal(l.Mode(p), math.MaxFloat64, func(x float64) float64 {
				if looks++; looks > 10*draws {
					t.Fatalf("rate %v: %d counts looked at for less than %d draws", rate, looks, draws)
				}
				return l.LogProb(p, x)
			}, rng)
			if x != math.Trunc(x) {
				t.Fatalf("rate %v: drew %v", rate, x)
			}
			z := (x - rate) / math.Sqrt(rate)
			mean, square = mean+z/draws, square+z*z/draws
			if math.Abs(z) < 0.5 {
				inner += 1. / draws
			}
			if z > 2 {
				tail += 1. / draws
			}
		}
		for _, tc := range []struct {
			what             string
			got, want, sigma float64
		}{
			{"mean", mean, 0, 1},
			{"square", square, 1, math.Sqrt2},
			{"share within half a deviation", inner, 0.382925, 0.486},
			{"share beyond two", tail, 0.022750, 0.149},
		} {
			if !(math.Abs(tc.got-tc.want) <= 5*tc.sigma/math.Sqrt(draws)) {
				t.Errorf("rate %v: %s of distances in deviations %v, want %v", rate, tc.what, tc.got, tc.want)
			}
		}
	}
}

// TestDrawWide compares the shares of numbers that are drawn by rejection with their probabilities, where these are few, so that the
// bound of rejection is tight, and where the mode is at an end.
func TestDrawWide(t *testing.T) {
	const draws = 100000
	rng := rand.New(rand.NewPCG(5, 8))
	for _, tc := range []struct {
		leaf interface {
			Leaf
			Mode(p []float64) float64
		}
		p    float64
		last float64
	}{
		{Poisson{}, 0.01, math.MaxFloat64}, {Poisson{}, 0.9, math.MaxFloat64}, {Poisson{}, 7.5, math.MaxFloat64},
		{Binomial{Trials: 1}, 0.5, 1}, {Binomial{Trials: 5}, 0.999, 5}, {Binomial{Trials: 9}, 0.4, 9},
	} {
		p := []float64{tc.p}
		logProb := func(x float64) float64 { return tc.leaf.LogProb(p, x) }
		counts, mode := make([]float64, 60), tc.leaf.Mode(p)
		for range draws {
			counts[int(drawWide(mode, tc.last, logProb(mode), logProb, rng))]++
		}
		for x, n := range counts {
			if float64(x) > tc.last {
				continue
			}
			share := math.Exp(logProb(float64(x)))
			if want := draws * share; !(math.Abs(n-want) <= 5*math.Sqrt(want*(1-share))+1) {
				t.Errorf("%s %v: %v drew %v times of %d, want about %v", tc.leaf.Name(), tc.p, x, n, draws, want)
			}
		}
	}
}

// TestInitOfLargeCounts wants starts that are as far apart as the counts of a column: a Poisson or binomial distribution of large
// counts is narrow, and of units that start far from all of them one would get all rows. Small counts have starts as far apart as ever.
func TestInitOfLargeCounts(t *testing.T) {
	for _, tc := range []struct {
		leaf  Leaf
		col   ColumnStats
		count float64    // of a parameter of 1
		low   [2]float64 // between which the lowest start is, as a count
		high  [2]float64 // likewise the highest
	}{
		{Poisson{}, ColumnStats{Mean: 102000, Variance: 1663 * 1663, Min: 99000, Max: 106000}, 1, [2]float64{98000, 100000}, [2]float64{104000, 106000}},
		{Poisson{}, ColumnStats{Mean: 1e6, Variance: 1, Min: 1e6 - 2, Max: 1e6 + 2}, 1, [2]float64{1e6 - 2100, 1e6 - 1000}, [2]float64{1e6 + 1000, 1e6 + 2100}},
		{Poisson{}, ColumnStats{Mean: 1700, Variance: 2333 * 2333, Max: 5200}, 1, [2]float64{0.5, 1}, [2]float64{4000, 5200}},
		{Poisson{}, ColumnStats{Mean: 3e13, Variance: 1e27, Min: 1e13, Max: 6e13}, 1, [2]float64{1e11, maxRate}, [2]float64{1e11, maxRate}}, // beyond all rates
		{Poisson{}, ColumnStats{Mean: 3, Variance: 9, Max: 12}, 1, [2]float64{1.8, 2}, [2]float64{4, 5}},
		{Poisson{}, ColumnStats{Mean: 0.25, Variance: 0.25, Max: 3}, 1, [2]float64{0.15, 0.17}, [2]float64{0.35, 0.42}},
		{Binomial{Trials: 4000}, ColumnStats{Mean: 1120, Variance: 102 * 102, Min: 900, Max: 1350}, 4000, [2]float64{700, 950}, [2]float64{1300, 1600}},
		{Binomial{Trials: 4000}, ColumnStats{Mean: 10, Variance: 10, Min: 1, Max: 22}, 4000, [2]float64{2, 6}, [2]float64{16, 40}},
		{Binomial{Trials: 4000}, ColumnStats{Mean: 1000, Variance: 1400 * 1400, Max: 3100}, 4000, [2]float64{0.4, 1}, [2]float64{2700, 3100}},
		{Binomial{Trials: 12}, ColumnStats{Mean: 6, Variance: 9, Max: 12}, 12, [2]float64{0.2, 1.5}, [2]float64{10.5, 11.8}},
	} {
		rng := rand.New(rand.NewPCG(5, 5))
		p, low, high := make([]float64, 1), math.Inf(1), math.Inf(-1)
		for range 500 {
			tc.leaf.Init(p, tc.col, rng)
			low, high = min(low, tc.count*p[0]), max(high, tc.count*p[0])
		}
		if !(low >= tc.low[0] && low <= tc.low[1] && high >= tc.high[0] && high <= tc.high[1]) {
			t.Errorf("%s, %+v: starts from %v to %v; want %v and %v", tc.leaf.Name(), tc.col, low, high, tc.low, tc.high)
		}
	}
}

// TestPoissonOfManyCounts compares ranges of so many counts that they are integrated over with sums of the counts: probabilities, moments
// and the distribution function, in the middle and in both tails.
func TestPoissonOfManyCounts(t *testing.T) {
	const rate = 1e8 // with a deviation of 10^4
	l, p := Poisson{}, []float64{rate}
	sum := func(low, high float64) (log, mean, variance float64) {
		at := min(max(rate, low), high)
		top := l.LogProb(p, at)
		var s, first, second float64
		for k := max(low, at-100_000); k <= min(high, at+100_000); k++ {
			w := math.Exp(l.LogProb(p, k) - top)
			s, first, second = s+w, first+w*(k-at), second+w*(k-at)*(k-at)
		}
		mean = first / s
		return top + math.Log(s), at + mean, second/s - mean*mean
	}
	for _, r := range [][2]float64{
		{0, math.Inf(1)}, {rate - 4e4, rate + 5e4}, {rate - 7e4, rate - 1e3}, {rate + 1e4, rate + 9e4}, {0, rate}, {rate + 12345, math.Inf(1)}, {0, rate - 25000},
	} {
		if at := min(max(rate, r[0]), r[1]); !(min(r[1]-r[0], poissonReach(rate, at)) > manyCounts) {
			t.Fatalf("%v: the counts are few, and added up", r)
		}
		log, mean, variance := sum(r[0], r[1])
		gotMean, gotVariance := l.RangeMoments(p, r[0], r[1])
		if got := l.LogRange(p, r[0], r[1]); !(math.Abs(got-log) <= 1e-7) || !(math.Abs(gotMean-mean) <= 1e-3) || !(math.Abs(gotVariance/variance-1) <= 1e-6) {
			t.Errorf("%v: log %v, mean %v, variance %v; want %v, %v, %v", r, got, gotMean, gotVariance, log, mean, variance)
		}
		if math.IsInf(r[1], 1) {
			continue
		}
		if want, _, _ := sum(0, r[1]); !(math.Abs(l.Below(p, r[1])-math.Exp(want)) <= 1e-8) {
			t.Errorf("below %v: %v, want %v", r[1], l.Below(p, r[1]), math.Exp(want))
		}
	}
	for _, rate := range []float64{1e10, 1e12} { // half of which is below the rate, but for a third of a count
		if got := l.Below([]float64{rate}, rate); !(math.Abs(got-0.5-2/(3*math.Sqrt(2*math.Pi*rate))) <= 1e-9) {
			t.Errorf("below %v: %v", rate, got)
		}
	}
}
