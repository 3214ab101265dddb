package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// mixed opens a mixture of leaves of one variable, of which params are those of the units one after another.
func mixed(t *testing.T, leaf circuit.Leaf, params, weights []float64) *model {
	t.Helper()
	n := len(weights)
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: n, Leaf: leaf}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	co := compile.DefaultOptions()
	co.Soft = 4
	return buildCompiled(t, g, reference.Params{params, weights}, co, engine.Options{Rows: 256, Queries: true})
}

// within returns n rows of which a range is known.
func (m *model) within(low, high float64, n int) *dataset.Batch {
	return m.softBatch(slices.Repeat([][]float64{{missing}}, n), slices.Repeat([][]*dataset.Evidence{{{Low: low, High: high}}}, n))
}

// TestMomentsBeyondFloats wants moments that float64 does not hold to be infinite, not NaN.
func TestMomentsBeyondFloats(t *testing.T) {
	for _, sigma := range []float64{27, 40} {
		m := mixed(t, circuit.LogNormal{}, []float64{0, 1, 0, sigma}, []float64{0.5, 0.5})
		for _, b := range []*dataset.Batch{m.batch([][]float64{{missing}}), m.within(1, math.Inf(1), 1)} {
			out := make([]float64, 2)
			if err := m.eng.Moments(t.Context(), b, out); err != nil {
				t.Fatal(err)
			}
			if !(out[0] > 1e150) || !math.IsInf(out[1], 1) || math.IsInf(out[0], 1) != (sigma > 38) {
				t.Errorf("sigma %v, evidence %v: moments %v", sigma, b.HasSoft(), out)
			}
		}
	}
}

// TestSoftSampleEnds draws from ranges whose ends are far beyond all that a leaf has, as a schema's sentinels are, and wants the
// draws of a range without that end, and Kolmogorov and Smirnov's test to find them as probable as ranges are.
func TestSoftSampleEnds(t *testing.T) {
	inf, draws := math.Inf(1), 2000
	if testing.Short() {
		draws = 500
	}
	for _, tc := range []struct {
		leaf    circuit.Leaf
		params  []float64
		low     float64
		central float64 // a number with something on both sides
	}{
		{circuit.Gaussian{}, []float64{0, 1, 3, 0.1}, 0.5, 1},
		{circuit.Gaussian{}, []float64{-3e20, 1e19, 3e20, 1e18}, -1e20, 3e20},
		{circuit.LogNormal{}, []float64{0, 1, 4, 0.5}, 1e-3, 2},
		{circuit.LogNormal{}, []float64{0, 27, -5, 13}, 1, 2},
		{circuit.Poisson{}, []float64{2, 300}, 1, 3},
		{circuit.RealHistogram{Breaks: []float64{-2.5, -1, 0.25, 3}}, []float64{3, 0.5, 0.25, 0.25, 1, 0.5}, -2, 0.5},
		{circuit.RealHistogram{Breaks: []float64{-2, 0, 1, 7}, Floor: 1e-9}, []float64{3, 0.5, 0.25, 0.25, 1, 0.5}, -1, 2},
	} {
		m := mixed(t, tc.leaf, tc.params, []float64{0.25, 0.75})
		n := tc.leaf.NumParams()
		share := func(low, high float64) float64 {
			f := tc.leaf.(circuit.Ranged)
			return 0.25*math.Exp(f.LogRange(tc.params[:n], low, high)) + 0.75*math.Exp(f.LogRange(tc.params[n:], low, high))
		}
		sample := func(low, high float64) []float64 {
			t.Helper()
			b := m.within(low, high, draws)
			if err := m.eng.Sample(t.Context(), b, 5, 0); err != nil {
				t.Fatal(err)
			}
			out := make([]float64, draws)
			for r, row := range reference.Rows(b) {
				out[r] = row[0]
			}
			return out
		}
		for _, low := range []float64{tc.low, -inf} {
			open := sample(low, inf)
			for _, end := range []float64{inf, math.MaxFloat64, 1e300, 1e60, math.MaxFloat32} {
				from := max(low, -end)
				got := sample(from, end)
				if share(from, end) == share(low, inf) && !slices.Equal(got, open) {
					t.Errorf("%s %v, %v..%v: draws are not those without such ends", tc.leaf.Name(), tc.params, from, end)
				}
				slices.Sort(got)
				apart := 0.0
				for r, x := range got {
					if (r+1 == draws || got[r+1] > x) && x < math.MaxFloat32 { // larger numbers are drawn as the largest float32
						apart = max(apart, math.Abs(share(from, x)/share(from, end)-float64(r+1)/float64(draws)))
					}
				}
				if !(apart <= 1.95/math.Sqrt(float64(draws))) || !(got[0] < tc.central && tc.central < got[draws-1]) {
					t.Errorf("%s %v, %v..%v: draws from %v to %v are %v off", tc.leaf.Name(), tc.params, from, end, got[0], got[draws-1], apart)
				}
			}
		}
	}
}

// TestSoftSampleBins draws from such ranges of a column of bins, which is stored with a scale.
func TestSoftSampleBins(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 3}}}}
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Offset: 12, Scale: 4, Edges: []float64{10, 20, 24, 40}, Outside: 1e-9}}}
	co := compile.DefaultOptions()
	co.Soft = 4
	m := buildCompiled(t, g, reference.Params{{0.5, 0.25, 0.25}}, co, engine.Options{Rows: 256, Schema: schema})
	var want []float64
	for _, end := range []float64{math.Inf(1), 1e60, math.MaxFloat64} {
		const draws = 2000
		b := reference.SoftBatch(schema, slices.Repeat([][]float64{{missing}}, draws), slices.Repeat([][]*dataset.Evidence{{{Low: 15, High: end}}}, draws))
		if err := m.eng.Sample(t.Context(), b, 5, 0); err != nil {
			t.Fatal(err)
		}
		counts := make([]float64, 4)
		for _, x := range b.Columns[0].Values {
			x := 12 + 4*float64(x)
			for k, edge := range []float64{15, 20, 24, 40} {
				if x > edge {
					counts[k]++
				}
			}
		}
		if want == nil {
			want = counts
			for k, p := range []float64{1, 2. / 3, 1. / 3, 0} {
				if !(math.Abs(counts[k]-p*draws) <= 4*math.Sqrt(draws*p*(1-p))) {
					t.Errorf("draws beyond the edges: %v of %d", counts, draws)
				}
			}
		} else if !slices.Equal(counts, want) {
			t.Errorf("15..%v: draws beyond the edges: %v, without such an end %v", end, counts, want)
		}
	}
}

// TestSoftBetweenFloats wants a value beside a range where no float32 is in it, and none where a leaf has no value there.
func TestSoftBetweenFloats(t *testing.T) {
	up := func(x float32) float64 { return float64(math.Nextafter32(x, math.MaxFloat32)) }
	for _, tc := range []struct {
		leaf      circuit.Leaf
		params    []float64
		low, high float64
		want      []float64 // the values that there may be, none if the row is impossible
	}{
		{circuit.Gaussian{}, []float64{0, 1, 1, 2}, 0.1, 0.1000000001, []float64{float64(float32(0.1)), up(0.1)}},
		{circuit.Gaussian{}, []float64{1.6e9, 86400, 1.6e9, 9e4}, 1600000010, 1600000050, []float64{1.6e9}},
		{circuit.Gaussian{}, []float64{1.6e9, 86400, 1.6e9, 9e4}, 1600000100, 1600000120, []float64{1600000128}},
		{circuit.Gaussian{}, []float64{0, 1e38, 0, 2e38}, 3.5e38, 1e39, []float64{math.MaxFloat32}},
		{circuit.Gaussian{}, []float64{0, 1e38, 0, 2e38}, -1e39, -3.5e38, []float64{-math.MaxFloat32}},
		{circuit.LogNormal{}, []float64{0, 1, 0, 2}, 0.1, 0.1000000001, []float64{float64(float32(0.1)), up(0.1)}},
		{circuit.LogNormal{}, []float64{-115, 1, -115, 2}, 1e-50, 1e-49, []float64{math.SmallestNonzeroFloat32}},
		{circuit.LogNormal{}, []float64{0, 1, 0, 2}, -3, 0, nil},
		{circuit.Poisson{}, []float64{3, 4}, 2.5, 2.75, nil},
		{circuit.Poisson{}, []float64{16777216, 16777217}, 16777217, 16777217, []float64{16777216, 16777218}},
		{circuit.RealHistogram{Breaks: []float64{-1.5, 0.5, 2}}, []float64{0.25, 0.5, 0.5, 0.25}, 0.1, 0.1000000001, []float64{float64(float32(0.1)), up(0.1)}},
		{circuit.RealHistogram{Breaks: []float64{-1.5, 0.5, 2}}, []float64{0.25, 0.5, 0.5, 0.25}, 3, 4, nil},
		// At the last break, which float32 rounds down.
		{circuit.RealHistogram{Breaks: []float64{0.1, 0.7, 1.3}}, []float64{0.3, 1, 1.36666667, 0.66666667}, 1.2999999, 9, []float64{float64(math.Nextafter32(1.3, 0))}},
		{circuit.RealHistogram{Breaks: []float64{1.6e9, 1600000300, 1600000600}, Floor: 1e-16}, []float64{0.001, 0.002, 0.0023, 0.0013}, 1600000599, 1600000600, []float64{1600000512}},
	} {
		m := mixed(t, tc.leaf, tc.params, []float64{0.25, 0.75})
		const n = 50
		drawn, best := m.within(tc.low, tc.high, n), m.within(tc.low, tc.high, n)
		ll, bound, given := make([]float64, n), make([]float64, n), make([]float64, n)
		for what, err := range map[string]error{
			"loglik": m.eng.LogLikelihood(t.Context(), drawn, given),
			"sample": m.eng.Sample(t.Context(), drawn, 3, 0),
			"mpe":    m.eng.MPE(t.Context(), best, engine.MPEOptions{Candidates: 2, Sweeps: 3}, ll, bound),
		} {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if possible := !math.IsInf(given[0], -1); possible != (tc.want != nil) {
			t.Errorf("%s %v, %v..%v has the log-likelihood %v", tc.leaf.Name(), tc.params, tc.low, tc.high, given[0])
		}
		for what, b := range map[string]*dataset.Batch{"sample": drawn, "mpe": best} {
			for r, row := range reference.Rows(b) {
				if x := row[0]; tc.want == nil && x == x || tc.want != nil && !slices.Contains(tc.want, x) {
					t.Fatalf("%s of %s %v in %v..%v: row %d has %v, want one of %v", what, tc.leaf.Name(), tc.params, tc.low, tc.high, r, x, tc.want)
				}
			}
		}
		for r := range ll {
			if tc.want == nil {
				if !math.IsInf(ll[r], -1) {
					t.Fatalf("mpe of %s in %v..%v: row %d is impossible and has the log-likelihood %v", tc.leaf.Name(), tc.low, tc.high, r, ll[r])
				}
				continue
			}
			l, err := m.ref.LogLikelihood([]float64{reference.Rows(best)[r][0]})
			if err != nil {
				t.Fatal(err)
			}
			if tol := 1e-5 * max(1, math.Abs(l)); !near(ll[r], l, tol) || !(bound[r] >= ll[r]-tol) {
				t.Fatalf("mpe of %s in %v..%v: row %d has the log-likelihood %v and the bound %v, want %v", tc.leaf.Name(), tc.low, tc.high, r, ll[r], bound[r], l)
			}
		}
	}
}

// TestSoftMPEBins wants the bin of the largest density under all units together, where max-product takes that of one unit, and
// of it a number in the range, of however small a part of the bin.
func TestSoftMPEBins(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 3, Leaf: circuit.Categorical{Categories: 3}}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Scale: 1, Edges: []float64{0, 1, 2, 3}, Outside: 1e-9}}}
	co := compile.DefaultOptions()
	co.Soft = 4
	m := buildCompiled(t, g, reference.Params{{0, 0, 1, 0, 1, 0, 0, 1, 0}, {0.4, 0.3, 0.3}}, co, engine.Options{Rows: 16, Queries: true, Schema: schema})
	for _, tc := range []struct{ low, high, want, density float64 }{
		{1.25, 2.75, 1.625, 0.6}, {1.875, 2.75, 1.9375, 0.6}, {0.25, 1e300, 1.5, 0.6}, {2.5, 3, 2.75, 0.4},
	} {
		b := reference.SoftBatch(schema, [][]float64{{missing}}, [][]*dataset.Evidence{{{Low: tc.low, High: tc.high}}})
		ll, bound := make([]float64, 1), make([]float64, 1)
		if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Sweeps: 3}, ll, bound); err != nil {
			t.Fatal(err)
		}
		if x := float64(b.Columns[0].Values[0]); x != tc.want || !near(ll[0], math.Log(tc.density), 1e-5) || !(bound[0] >= ll[0]-1e-6) {
			t.Errorf("%v..%v: %v with the log-likelihood %v and the bound %v, want %v with %v", tc.low, tc.high, x, ll[0], bound[0], tc.want, math.Log(tc.density))
		}
	}
}

// TestSoftCompletionOfHistograms completes ranges of histograms: those of whole numbers with whole ones, and those of others without the
// density of the bin behind the range, which begins at its end. So no completion is above the bound.
func TestSoftCompletionOfHistograms(t *testing.T) {
	whole, real := circuit.RealHistogram{Breaks: []float64{0, 1, 2}}, circuit.RealHistogram{Breaks: []float64{0, 0.5, 1}}
	for _, tc := range []struct {
		leaf      circuit.RealHistogram
		params    []float64
		low, high float64
		best      float64 // log-likelihood
	}{
		{whole, []float64{0.75, 0.25, 0.875, 0.125}, 0.5, 1, math.Log(0.25*0.25 + 0.75*0.125)},
		{whole, []float64{0.75, 0.25, 0.125, 0.875}, 0, 1.5, math.Log(0.25*0.25 + 0.75*0.875)},
		{real, []float64{0.25, 1.75, 0.5, 1.5}, 0, 0.5, math.Log(0.25*0.25 + 0.75*0.5)},
		{real, []float64{0.25, 1.75, 0.5, 1.5}, 0.125, 0.625, math.Log(0.25*1.75 + 0.75*1.5)},
	} {
		m := mixed(t, tc.leaf, tc.params, []float64{0.25, 0.75})
		b, ll, bound := m.within(tc.low, tc.high, 1), make([]float64, 1), make([]float64, 1)
		if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Candidates: 4, Beam: 2, Sweeps: 10}, ll, bound); err != nil {
			t.Fatal(err)
		}
		x := float64(b.Columns[0].Values[0])
		if !near(ll[0], tc.best, 1e-6) || !(bound[0] >= ll[0]-1e-6) || !(x >= tc.low && x <= tc.high) || tc.leaf.Whole() && x != math.Trunc(x) {
			t.Errorf("breaks %v, %v..%v: completed with %v of %v with the bound %v; the best is %v", tc.leaf.Breaks, tc.low, tc.high, x, ll[0], bound[0], tc.best)
		}
	}
}

// TestCompletionOfWholeNumbers climbs from a mode of one unit to where both have much, past whole numbers alone.
func TestCompletionOfWholeNumbers(t *testing.T) {
	leaf := circuit.RealHistogram{Breaks: []float64{0, 1, 2, 3, 4, 5}}
	m := mixed(t, leaf, []float64{0, 0.09, 0.3, 0.3, 0.31, 0.31, 0.3, 0.3, 0.09, 0}, []float64{0.5, 0.5})
	b, ll, bound := m.batch([][]float64{{missing}}), make([]float64, 1), make([]float64, 1)
	if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Sweeps: 3}, ll, bound); err != nil {
		t.Fatal(err)
	}
	if x := b.Columns[0].Values[0]; x != 2 || !near(ll[0], math.Log(0.3), 1e-6) {
		t.Errorf("completed with %v of %v, want 2 of %v", x, ll[0], math.Log(0.3))
	}
}
