package circuit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// simpson integrates f from a to b with n steps, which is even.
func simpson(a, b float64, n int, f func(x float64) float64) float64 {
	h, sum := (b-a)/float64(n), f(a)+f(b)
	for i := 1; i < n; i++ {
		w := 2.0
		if i%2 == 1 {
			w = 4
		}
		sum += w * f(a+h*float64(i))
	}
	return sum * h / 3
}

// TestRangesOfDensities compares probabilities and moments of ranges with integrals of the
// density, scaled by the largest one so that far tails keep their digits.
func TestRangesOfDensities(t *testing.T) {
	for _, tc := range []struct {
		leaf      Ranged
		p         []float64
		low, high float64
	}{
		{Gaussian{}, []float64{0, 1}, -1, 1},
		{Gaussian{}, []float64{3, 0.5}, 2.9, 2.9000001},
		{Gaussian{}, []float64{3, 0.5}, 3.5, 9},
		{Gaussian{}, []float64{-2, 2}, -30, -12},
		{Gaussian{}, []float64{0, 1}, 29.9, 31},
		{Gaussian{}, []float64{0, 1}, 30.1, 31},
		{Gaussian{}, []float64{0, 1}, 100, 100.3},
		{Gaussian{}, []float64{0, 1}, -1000.01, -1000},
		{Gaussian{}, []float64{0, 1}, -9, 0},
		{Gaussian{}, []float64{-1, 1}, 0, 1e-20}, // both ends are one standard deviation away
		{Gaussian{}, []float64{1, 1}, -1e-30, 2e-30},
		{Gaussian{}, []float64{-50, 0.5}, 7, 7 + 1e-14},
		{LogNormal{}, []float64{2, 0.3}, 7, 7 + 1e-14},
		{LogNormal{}, []float64{-60, 1}, 1e-25, 1.0000000000001e-25},
		{LogNormal{}, []float64{0, 1}, 0.5, 2},
		{LogNormal{}, []float64{2, 0.3}, 7, 7.001},
		{LogNormal{}, []float64{-1, 0.7}, 3, 40},
		{LogNormal{}, []float64{1, 0.25}, 0.2, 0.4},
	} {
		t.Run(fmt.Sprintf("%s %v %v..%v", tc.leaf.Name(), tc.p, tc.low, tc.high), func(t *testing.T) {
			const steps = 1 << 16
			low, high := tc.low, tc.high
			top := math.Inf(-1)
			for i := range 1001 {
				top = max(top, tc.leaf.LogProb(tc.p, low+(high-low)*float64(i)/1000))
			}
			density := func(x float64) float64 { return math.Exp(tc.leaf.LogProb(tc.p, x) - top) }
			area := simpson(low, high, steps, density)
			wantMean := simpson(low, high, steps, func(x float64) float64 { return x * density(x) }) / area
			wantVar := simpson(low, high, steps, func(x float64) float64 { return (x - wantMean) * (x - wantMean) * density(x) }) / area
			if got, want := tc.leaf.LogRange(tc.p, low, high), top+math.Log(area); !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want)*1e-3)) {
				t.Errorf("log probability %v, want %v", got, want)
			}
			mean, variance := tc.leaf.RangeMoments(tc.p, low, high)
			if !(math.Abs(mean-wantMean) <= 1e-9*max(1, math.Abs(wantMean))) || !(math.Abs(variance-wantVar) <= 1e-8*max(wantVar, 1e-8*wantMean*wantMean)) {
				t.Errorf("moments %v, %v, want %v, %v", mean, variance, wantMean, wantVar)
			}
			if !(mean >= low && mean <= high) {
				t.Errorf("mean %v is outside %v..%v", mean, low, high)
			}
		})
	}
}

// TestRangesWithoutEnds compares ranges without one end or both with what is known of them.
func TestRangesWithoutEnds(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct {
		leaf      Ranged
		p         []float64
		low, high float64
		want      float64 // probability
	}{
		{Gaussian{}, []float64{5, 2}, -inf, inf, 1},
		{Gaussian{}, []float64{5, 2}, -inf, 5, 0.5},
		{Gaussian{}, []float64{5, 2}, 5, inf, 0.5},
		{Gaussian{}, []float64{0, 1}, 2, inf, 0.022750131948179207},
		{Gaussian{}, []float64{0, 1}, 4, 4, 0},
		{LogNormal{}, []float64{0, 1}, -inf, inf, 1},
		{LogNormal{}, []float64{0, 1}, -5, 1, 0.5},
		{LogNormal{}, []float64{0, 1}, -5, 0, 0},
		{Poisson{}, []float64{3}, -inf, inf, 1},
		{Poisson{}, []float64{3}, -4, -0.5, 0},
		{Poisson{}, []float64{3}, 0.5, 0.7, 0},
		{Poisson{}, []float64{3}, -1, 0.5, math.Exp(-3)},
	} {
		if got := math.Exp(tc.leaf.LogRange(tc.p, tc.low, tc.high)); !(math.Abs(got-tc.want) <= 1e-14) {
			t.Errorf("%s %v: %v..%v has probability %v, want %v", tc.leaf.Name(), tc.p, tc.low, tc.high, got, tc.want)
		}
	}
	for _, tc := range []struct {
		leaf Ranged
		p    []float64
	}{{Gaussian{}, []float64{5, 2}}, {LogNormal{}, []float64{0.3, 0.8}}, {Poisson{}, []float64{7.5}}} {
		wantMean, wantVar := tc.leaf.Moments(tc.p)
		if mean, variance := tc.leaf.RangeMoments(tc.p, -inf, inf); !(math.Abs(mean-wantMean) <= 1e-12*wantMean) || !(math.Abs(variance-wantVar) <= 1e-11*wantVar) {
			t.Errorf("%s: all numbers have moments %v, %v, want %v, %v", tc.leaf.Name(), mean, variance, wantMean, wantVar)
		}
	}
	// From 100 standard deviations on, the next number is Exp(100) away, nearly.
	if mean, variance := (Gaussian{}).RangeMoments([]float64{0, 1}, 100, inf); !(math.Abs(mean-100.009998) <= 1e-6) || !(math.Abs(variance-1e-4) <= 1e-7) {
		t.Errorf("beyond 100: mean %v, variance %v", mean, variance)
	}
}

// TestRangesOfLargeMoments wants moments that float64 does not hold to be infinite, and those that it holds to be what they are.
func TestRangesOfLargeMoments(t *testing.T) {
	inf := math.Inf(1)
	for _, sigma := range []float64{18, 18.827, 20, 27, 38, 1e6} {
		p := []float64{0, sigma}
		wantMean := math.Exp(sigma*sigma/2) * 2 // nearly all of it lies above 1, which has half of the probability
		mean, variance := LogNormal{}.RangeMoments(p, 1, inf)
		if !(mean == wantMean || math.Abs(mean-wantMean) <= 1e-9*wantMean) {
			t.Errorf("sigma %v: mean %v, want %v", sigma, mean, wantMean)
		}
		want := math.Exp(sigma*sigma*2) * 2
		if !(variance == want || math.Abs(variance-want) <= 1e-9*want) {
			t.Errorf("sigma %v: variance %v, want %v", sigma, variance, want)
		}
	}
}

// TestRangesOfCounts adds up the probabilities of counts one by one.
func TestRangesOfCounts(t *testing.T) {
	l := Poisson{}
	for _, rate := range []float64{1e-6, 0.7, 3, 40, 1000} {
		p := []float64{rate}
		for _, r := range [][2]float64{{0, 0}, {0, 2}, {1.5, 7.9}, {30, 60}, {900, 905}, {950, 1100}, {2000, 2100}} {
			sum, first, second := 0.0, 0.0, 0.0
			top := l.LogProb(p, min(max(math.Floor(rate), math.Ceil(r[0])), math.Floor(r[1])))
			for k := math.Ceil(r[0]); k <= r[1]; k++ {
				w := math.Exp(l.LogProb(p, k) - top)
				sum, first, second = sum+w, first+w*k, second+w*k*k
			}
			if got, want := l.LogRange(p, r[0], r[1]), top+math.Log(sum); !(math.Abs(got-want) <= 1e-10*max(1, math.Abs(want))) {
				t.Errorf("rate %v, %v: log probability %v, want %v", rate, r, got, want)
			}
			mean, variance := l.RangeMoments(p, r[0], r[1])
			if !(math.Abs(mean-first/sum) <= 1e-9*max(1, mean)) || !(math.Abs(variance-(second/sum-first/sum*first/sum)) <= 1e-7*max(1, mean)) {
				t.Errorf("rate %v, %v: moments %v, %v, want %v, %v", rate, r, mean, variance, first/sum, second/sum-first/sum*first/sum)
			}
		}
	}
}

// TestRangesOfBins compares probabilities and moments of ranges, and what lies below their ends, with sums over thin
// slices of the bins, or over whole numbers where all breaks are whole.
func TestRangesOfBins(t *testing.T) {
	for _, l := range []RealHistogram{
		{Breaks: []float64{-2.5, -1, 0.25, 3}, Floor: 0.125}, {Breaks: []float64{0.5, 1}}, {Breaks: []float64{-3, -1, 0, 5}, Floor: 0.125}, {Breaks: []float64{0, 1}},
		{Breaks: []float64{-2.5, -1, 0.25, 2.5, 3}, Floor: 0.125}, {Breaks: []float64{-3, -1, 0, 2, 5}, Floor: 0.125},
	} {
		p := []float64{3, 0.5, 0.25, 0}[:l.NumParams()] // which do not integrate to 1
		whole := l.Whole()
		const slices = 1 << 10 // of a unit; bins end at ends of some
		var at, mass []float64
		total := 0.0
		for k := l.Breaks[0] * slices; k < l.Breaks[len(p)]*slices; k++ {
			x := (k + 0.5) / slices
			if whole {
				if math.Mod(k, slices) != 0 {
					continue
				}
				x = k / slices
			}
			at, mass = append(at, x), append(mass, p[l.Bin(x)])
			total += p[l.Bin(x)]
		}
		ends := []float64{math.Inf(-1), -4, -3, -2.5, -2, -1, -0.5, 0, 0.25, 0.75, 1, 2.5, 3, 4, 5, 6, math.Inf(1)}
		for i, low := range ends {
			for _, high := range ends[i:] {
				sum, mean, square, below, top := 0.0, 0.0, 0.0, 0.0, 0.0
				for k, x := range at {
					if x <= high {
						below += mass[k] / total
					}
					if x >= low && x <= high {
						sum += mass[k] / total
						top = max(top, mass[k])
						mean += mass[k] / total * x
						square += mass[k] / total * x * x
					}
				}
				if got := math.Exp(l.LogRange(p, low, high)); !(math.Abs(got-sum) <= 1e-12) {
					t.Errorf("%v: %v..%v has probability %v, want %v", l.Breaks, low, high, got, sum)
				}
				if got := l.Below(p, high); !(math.Abs(got-below) <= 1e-12) {
					t.Errorf("%v: %v below %v, want %v", l.Breaks, got, high, below)
				}
				x, ok := l.RangeMode(p, low, high)
				if ok != (sum > 0) || ok && !(x >= low && x <= high && max(p[l.Bin(x)], l.Floor) == max(top, l.Floor) && p[l.Bin(x)] > 0 && (!whole || x == math.Trunc(x))) {
					t.Errorf("%v: %v..%v has the mode %v, %v, want one of density %v", l.Breaks, low, high, x, ok, top)
				}
				if sum == 0 {
					continue
				}
				mean, square = mean/sum, square/sum
				if m, v := l.RangeMoments(p, low, high); !(math.Abs(m-mean) <= 1e-9) || !(math.Abs(v-square+mean*mean) <= 1e-6) {
					t.Errorf("%v: %v..%v has moments %v, %v, want %v, %v", l.Breaks, low, high, m, v, mean, square-mean*mean)
				}
			}
		}
	}
}

// TestRangeModeOfBins wants the middle of the densest part of a bin, whatever the floor.
func TestRangeModeOfBins(t *testing.T) {
	l, p := RealHistogram{Breaks: []float64{0, 0.5, 2.5, 4}, Floor: 1e-9}, []float64{0.25, 0.375, 0.0625}
	for _, tc := range []struct{ low, high, want float64 }{{-9, 9, 1.5}, {1, 2, 1.5}, {2, 9, 2.25}, {-9, 0.25, 0.125}, {3, 9, 3.5}} {
		if x, ok := l.RangeMode(p, tc.low, tc.high); !ok || x != tc.want {
			t.Errorf("from %v to %v: %v, %t; want %v", tc.low, tc.high, x, ok, tc.want)
		}
	}
}

// TestWholeBreaks: a histogram whose breaks are whole has whole draws and modes, and takes numbers between them too.
func TestWholeBreaks(t *testing.T) {
	l, p := RealHistogram{Breaks: []float64{0, 1, 3, 4}}, []float64{0.25, 0.375, 0}
	rng := rand.New(rand.NewPCG(1, 2))
	var count [4]int
	const n = 30000
	for range n {
		x := l.Sample(p, rng)
		if x != math.Trunc(x) || x < 0 || x > 2 {
			t.Fatalf("drew %v", x)
		}
		count[int(x)]++
	}
	for x, want := range []float64{0.25, 0.375, 0.375} {
		if got := float64(count[x]) / n; !(math.Abs(got-want) <= 0.02) {
			t.Errorf("%v of the draws are %d, want %v", got, x, want)
		}
	}
	if mode := l.Mode(p); mode != 1 {
		t.Errorf("mode %v, want 1", mode)
	}
	if got := l.LogProb(p, 1.5); got != math.Log(0.375) {
		t.Errorf("log density %v at 1.5, want %v", got, math.Log(0.375))
	}
}
