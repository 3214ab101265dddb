package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// integral is what a sum over the completions of a row says of its numbers.
type integral struct {
	mass   float64
	mean   []float64
	second [][]float64
	points [][]float64 // of each variable: values, whose probabilities are
	weight []float64
}

// integrate adds up the completions of a row; false if there are too many.
func (m *model) integrate(t *testing.T, row []float64) (*integral, bool) {
	t.Helper()
	points, err := m.ref.Points(row)
	if errors.Is(err, reference.ErrDomain) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for range points {
		if count++; count > 20000 {
			return nil, false
		}
	}
	n := len(row)
	x := &integral{mean: make([]float64, n), second: make([][]float64, n)}
	for v := range n {
		x.second[v] = make([]float64, n)
	}
	for at, weight := range points {
		p := weight * math.Exp(m.wantLL(t, at))
		x.mass += p
		for v := range n {
			x.mean[v] += p * at[v]
			for w := range n {
				x.second[v][w] += p * at[v] * at[w]
			}
		}
		x.points, x.weight = append(x.points, append([]float64{}, at...)), append(x.weight, p)
	}
	for v := range n {
		x.mean[v] /= x.mass
		for w := range n {
			x.second[v][w] /= x.mass
		}
	}
	return x, true
}

// TestCovarianceQueries compares covariances, expectations of polynomials and quantiles with
// sums and integrals over completions, in circuits of all leaves.
func TestCovarianceQueries(t *testing.T) {
	compared, impossible, continuous := 0, 0, 0
	seeds := uint64(40)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 71))
		g := reference.Random(rng, reference.RandomOptions{Vars: 2 + rng.IntN(3), MaxUnits: 5, MaxCodes: 4, MaxNodes: 24, Discrete: seed%4 == 0, Breaks: seed%4 == 1 || seed%4 == 2})
		m := build(t, g, engine.Options{Rows: 1 + rng.IntN(64), Queries: true})
		rows := append(reference.RandomRows(g, rng, 3, 0.6), reference.MissingRow(g.NumVars))
		n := g.NumVars
		var variables []int
		for _, v := range rng.Perm(n) {
			if circuit.Domains(g)[v] >= 0 {
				variables = append(variables, v)
			}
		}
		k := len(variables)
		got := make([]float64, len(rows)*k*k)
		if err := m.eng.Covariance(t.Context(), m.batch(rows), variables, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		turned := slices.Clone(variables)
		slices.Reverse(turned)
		other := make([]float64, len(got))
		if err := m.eng.Covariance(t.Context(), m.batch(rows), turned, other); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := engine.Polynomial{Constant: rng.NormFloat64()}
		for range 4 {
			a, b := variables[rng.IntN(k)], variables[rng.IntN(k)]
			p.Terms = append(p.Terms, engine.Term{Factor: rng.NormFloat64(), Variables: []int{a}}, engine.Term{Factor: rng.NormFloat64(), Variables: []int{a, b}})
		}
		of := []engine.Polynomial{{Constant: 3}, p}
		expected := make([]float64, len(rows)*len(of))
		if err := m.eng.Expect(t.Context(), m.batch(rows), of, expected); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		levels := []float64{0.02, 0.5, 0.97}
		quantiles := make([]float64, len(rows)*k*len(levels))
		if err := m.eng.Quantiles(t.Context(), m.batch(rows), variables, levels, quantiles); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for r, row := range rows {
			if math.IsInf(m.wantLL(t, row), -1) {
				impossible++
				for _, x := range append(append(append([]float64{}, got[r*k*k:(r+1)*k*k]...), expected[2*r:2*r+2]...), quantiles[r*k*3:(r+1)*k*3]...) {
					if x == x {
						t.Errorf("seed %d: row %v is impossible, and has %v", seed, row, x)
					}
				}
				continue
			}
			want, ok := m.integrate(t, row)
			if !ok {
				continue
			}
			for i, v := range variables {
				for j, w := range variables {
					compared++
					if circuit.Domains(g)[v] == 0 && math.IsNaN(row[v]) && v != w && math.IsNaN(row[w]) {
						continuous++
					}
					cov := want.second[v][w] - want.mean[v]*want.mean[w]
					for _, x := range []float64{got[(r*k+i)*k+j], other[(r*k+k-1-i)*k+k-1-j]} {
						if !near(x, cov, 2e-5*max(1, math.Sqrt(want.second[v][v]*want.second[w][w]))) {
							t.Errorf("seed %d, row %v: covariance of %d and %d is %v, want %v", seed, row, v, w, x, cov)
						}
					}
				}
				m.checkQuantiles(t, want, row, v, levels, quantiles[(r*k+i)*len(levels):])
			}
			sum, scale := p.Constant, 1.0
			for _, term := range p.Terms {
				x := want.mean[term.Variables[0]]
				if len(term.Variables) == 2 {
					x = want.second[term.Variables[0]][term.Variables[1]]
				}
				sum += term.Factor * x
				scale += math.Abs(term.Factor * x)
			}
			if !near(expected[2*r+1], sum, 4e-5*scale) || expected[2*r] != 3 {
				t.Errorf("seed %d, row %v: expectations %v, want 3 and %v", seed, row, expected[2*r:2*r+2], sum)
			}
		}
	}
	if compared < 12*int(seeds) || impossible == 0 || continuous < int(seeds)/2 {
		t.Errorf("%d covariances were compared, %d of continuous columns, %d impossible rows", compared, continuous, impossible)
	}
}

// checkQuantiles wants the share of the completions up to a quantile to reach its level, and not
// to without the point before it, as far as the points of an integral can tell.
func (m *model) checkQuantiles(t *testing.T, of *integral, row []float64, v int, levels, got []float64) {
	t.Helper()
	for i, level := range levels {
		q := got[i]
		if !math.IsNaN(row[v]) {
			if q != row[v] {
				t.Errorf("row %v: the quantile of what variable %d has is %v", row, v, q)
			}
			continue
		}
		below, up, largest := 0.0, 0.0, 0.0
		masses := map[float64]float64{}
		for k, at := range of.points {
			masses[at[v]] += of.weight[k] / of.mass
		}
		for x, mass := range masses {
			if x < q {
				below += mass
			}
			if x <= q {
				up += mass
			}
			largest = max(largest, mass)
		}
		slack := 1e-5
		if circuit.Domains(m.graph)[v] == 0 && !m.counts(v) {
			slack += largest // what lies between two points of the grid
		}
		if !(up >= level-slack) || !(below <= level+slack) {
			t.Errorf("row %v: quantile %v of variable %d is %v, up to which lies a share of %v, and %v below", row, level, v, q, up, below)
		}
	}
}

// counts reports whether a variable has Poisson leaves.
func (m *model) counts(v int) bool {
	for _, n := range m.graph.Nodes {
		if n.Kind == circuit.Input && n.Var == v && n.Leaf.Name() == "poisson" {
			return true
		}
	}
	return false
}

// TestCovarianceQueriesRefuse wants errors for what cannot be asked.
func TestCovarianceQueriesRefuse(t *testing.T) {
	ctx := context.Background()
	g := reference.Random(rand.New(rand.NewPCG(4, 72)), reference.RandomOptions{Vars: 3, MaxUnits: 4, Discrete: true})
	m := build(t, g, engine.Options{Rows: 4, Queries: true})
	b := m.batch(reference.RandomRows(g, rand.New(rand.NewPCG(1, 1)), 2, 0.5))
	out := make([]float64, 100)
	for what, call := range map[string]func() error{
		"a variable outside":    func() error { return m.eng.Covariance(ctx, b, []int{0, 3}, out) },
		"little room":           func() error { return m.eng.Covariance(ctx, b, []int{0, 1}, out[:7]) },
		"little room to expect": func() error { return m.eng.Expect(ctx, b, make([]engine.Polynomial, 2), out[:3]) },
		"a cubic term": func() error {
			return m.eng.Expect(ctx, b, []engine.Polynomial{{Terms: []engine.Term{{Factor: 1, Variables: []int{0, 0, 0}}}}}, out)
		},
		"a term of nothing": func() error {
			return m.eng.Expect(ctx, b, []engine.Polynomial{{Terms: []engine.Term{{Factor: 1, Variables: nil}}}}, out)
		},
		"an unknown variable": func() error {
			return m.eng.Expect(ctx, b, []engine.Polynomial{{Terms: []engine.Term{{Factor: 1, Variables: []int{3}}}}}, out)
		},
		"a level of 0":           func() error { return m.eng.Quantiles(ctx, b, []int{0}, []float64{0}, out) },
		"a level of 1":           func() error { return m.eng.Quantiles(ctx, b, []int{0}, []float64{0.5, 1}, out) },
		"a level of NaN":         func() error { return m.eng.Quantiles(ctx, b, []int{0}, []float64{math.NaN()}, out) },
		"little room for levels": func() error { return m.eng.Quantiles(ctx, b, []int{0, 1}, []float64{0.1, 0.2}, out[:7]) },
	} {
		if err := call(); !errors.Is(err, dataset.ErrSetting) && !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
	}
	empty := m.batch(nil)
	if err := errors.Join(m.eng.Covariance(ctx, empty, []int{0, 1}, nil), m.eng.Quantiles(ctx, empty, []int{0}, []float64{0.5}, nil),
		m.eng.Expect(ctx, empty, make([]engine.Polynomial, 1), nil)); err != nil {
		t.Errorf("no rows: %v", err)
	}
	// Normals so far apart in width that a grid of both has too many points.
	widths := []float64{0, 1e-5, 0, 1}
	m = wideBeside(t, circuit.Gaussian{MinSigma: 1e-6}, widths)
	b = m.batch([][]float64{{missing, missing}})
	if err := m.eng.Covariance(ctx, b, []int{0, 1}, out); !errors.Is(err, dataset.ErrSetting) || !strings.Contains(err.Error(), " column 1 ") {
		t.Errorf("two grids of two million points: %v", err)
	}
}

// wideBeside returns two columns, of which the first has normal leaves so far apart in width that no grid fits both of them,
// and the second leaves of two units with the parameters given.
func wideBeside(t *testing.T, leaf circuit.Leaf, params []float64) *model {
	t.Helper()
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Gaussian{MinSigma: 1e-6}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: leaf},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	return buildWith(t, g, reference.Params{{0, 1e-5, 8, 1}, params, nil, {0.5, 0.5}}, engine.Options{Rows: 4, Queries: true})
}

// TestCovariancesInAnyOrder names a column whose values cannot be summed over before one whose values can.
func TestCovariancesInAnyOrder(t *testing.T) {
	wide := wideBeside(t, circuit.Categorical{Categories: 2}, []float64{0.5, 0.5, 0.25, 0.75})
	g, params := mixture([]float64{0.5, 0.5}, [][]part{
		{{circuit.Gaussian{}, []float64{0, 1}}, {circuit.Bernoulli{}, []float64{0.5, 0.5}}},
		{{circuit.RealHistogram{Breaks: []float64{5.5, 10.5}}, []float64{0.2}}, {circuit.Bernoulli{}, []float64{0.25, 0.75}}},
	})
	families := buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
	bins := circuit.RealHistogram{Breaks: []float64{-0.5, 0.5, 7.5, 8.5}}
	low, high := part{bins, []float64{2, 0, 0}}, part{bins, []float64{0, 0, 1}} // which integrate to 2 and to 1, and are those of a third column, too
	g, params = mixture([]float64{0.5, 0.5}, [][]part{
		{low, {circuit.Bernoulli{}, []float64{0.5, 0.5}}, low}, {high, {circuit.Bernoulli{}, []float64{0.25, 0.75}}, high},
	})
	g.Nodes[2].Tie, params[2] = circuit.TieTo(0), nil
	shared := buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
	for name, m := range map[string]*model{"wide and narrow": wide, "two families": families, "shared histograms": shared} {
		b := m.batch([][]float64{[]float64{missing, missing, missing}[:m.graph.NumVars]})
		want, product := 0.5*0.125*8, 0.5*0.75*8 // Σ (mean of a unit - 4) · (its probability of 1 - 0.625), halved; and of the product
		for _, variables := range [][]int{{0, 1}, {1, 0}} {
			out, mean := make([]float64, 4), make([]float64, 1)
			if err := m.eng.Covariance(t.Context(), b, variables, out); err != nil || !near(out[1], want, 1e-6) || out[1] != out[2] {
				t.Errorf("%s: covariances %v of columns %v, want %v: %v", name, out, variables, want, err)
			}
			of := []engine.Polynomial{{Terms: []engine.Term{{Factor: 1, Variables: variables}}}}
			if err := m.eng.Expect(t.Context(), b, of, mean); err != nil || !near(mean[0], product, 1e-5) {
				t.Errorf("%s: the mean of the product of columns %v is %v, want %v: %v", name, variables, mean, product, err)
			}
		}
	}
	// Units of which a grid of logarithms has the widest one as well, but no grid of their numbers.
	logNormal := func(mean, sd float64) part { return part{circuit.LogNormal{}, []float64{mean, sd}} }
	bit := func(p float64) part { return part{circuit.Bernoulli{}, []float64{1 - p, p}} }
	g, params = mixture([]float64{0.25, 0.25, 0.5}, [][]part{
		{logNormal(0, 0.005), bit(0.25), bit(1)}, {logNormal(5, 0.005), bit(0.75), bit(1)}, {logNormal(2, 1), bit(0.75), bit(0)},
	})
	m := buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
	want := (math.Exp(5) - 1) * math.Exp(0.005*0.005/2) / 8
	for _, variables := range [][]int{{0, 1}, {1, 0}} {
		out := make([]float64, 4)
		if err := m.eng.Covariance(t.Context(), m.batch([][]float64{{missing, missing, 1}}), variables, out); err != nil || !near(out[1], want, 1e-5) {
			t.Errorf("two narrow units of three: covariances %v of columns %v, want %v: %v", out, variables, want, err)
		}
	}
}

// TestQuantilesOfLeaves compares quantiles of all sizes with what inverts the distribution function by hand.
func TestQuantilesOfLeaves(t *testing.T) {
	levels := []float64{1e-9, 0.05, 0.5, 0.95, 1 - 1e-9}
	normal := []float64{-5.9978070150076865, -1.6448536269514722, 0, 1.6448536269514722, 5.9978070150076865}
	for _, sigma := range []float64{1e-6, 0.7, 13, 30, 1e20} {
		for _, mean := range []float64{0, -3, 40} {
			got, logs := make([]float64, len(levels)), make([]float64, len(levels))
			for _, q := range []struct {
				leaf circuit.Leaf
				out  []float64
			}{{circuit.Gaussian{}, got}, {circuit.LogNormal{}, logs}} {
				m := mixed(t, q.leaf, []float64{mean, float64(float32(sigma))}, []float64{1})
				if err := m.eng.Quantiles(t.Context(), m.batch([][]float64{{missing}}), []int{0}, levels, q.out); err != nil {
					t.Fatal(err)
				}
			}
			for i, z := range normal {
				want, tol := mean+float64(float32(sigma))*z, 2e-7*sigma // 1 - 1e-9 has few digits
				if !near(got[i], want, tol+1e-15) {
					t.Errorf("normal %v %v: quantile %v at %v, want %v", mean, sigma, got[i], levels[i], want)
				}
				// Beyond float64 the number is infinite, and below it the smallest one.
				if l := math.Log(logs[i]); !near(l, want, tol+1e-14*math.Abs(want)) && !(want > 709.78 && math.IsInf(l, 1)) && !(want < -744.4 && logs[i] == math.SmallestNonzeroFloat64) {
					t.Errorf("log-normal %v %v: quantile %v at %v, want the exponential of %v", mean, sigma, logs[i], levels[i], want)
				}
			}
		}
	}
	for _, rate := range []float64{1e-6, 0.5, 40, 1e9} {
		m := mixed(t, circuit.Poisson{}, []float64{float64(float32(rate))}, []float64{1})
		got := make([]float64, len(levels))
		if err := m.eng.Quantiles(t.Context(), m.batch([][]float64{{missing}}), []int{0}, levels, got); err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			p := []float64{float64(float32(rate))}
			if x != math.Trunc(x) || !(circuit.Poisson{}.Below(p, x) >= levels[i]) || !(circuit.Poisson{}.Below(p, x-1) < levels[i]) {
				t.Errorf("poisson %v: quantile %v at %v", rate, x, levels[i])
			}
		}
	}
	m := mixed(t, circuit.RealHistogram{Breaks: []float64{-2.5, -1, 1e-3, 3e30}}, []float64{0.2, 0.3, 2e-31}, []float64{1})
	got, p := make([]float64, len(levels)), []float64{0.3, 0.3 * 1.001, 0.6}
	if err := m.eng.Quantiles(t.Context(), m.batch([][]float64{{missing}}), []int{0}, levels, got); err != nil {
		t.Fatal(err)
	}
	total := p[0] + p[1] + p[2]
	for i, level := range levels {
		want := 0.0
		switch at := level * total; {
		case at <= p[0]:
			want = -2.5 + at/0.2
		case at <= p[0]+p[1]:
			want = -1 + (at-p[0])/0.3
		default:
			want = (at - p[0] - p[1]) / 2e-31
		}
		if !near(got[i], want, 1e-6*max(1, math.Abs(want))) {
			t.Errorf("histogram: quantile %v at %v, want %v", got[i], level, want)
		}
	}
}

// TestQuantileNearOne wants the quantile of a level just below 1 to be where a mixture of many units ends, although
// their weights, which are rounded, may add up to less.
func TestQuantileNearOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 9))
	for range 60 {
		n := 50 + rng.IntN(350)
		weights, total := make([]float64, n), 0.0
		for i := range weights {
			weights[i] = float64(float32(rng.Float64()))
			total += weights[i]
		}
		bars := make([]float64, 2*n)
		means := make([]float64, 2*n)
		rates := make([]float64, n)
		for i := range weights {
			weights[i] = float64(float32(weights[i] / total))
			bars[2*i], bars[2*i+1] = float64(float32(rng.Float64())), float64(float32(rng.Float64()))
			means[2*i], means[2*i+1] = float64(float32(rng.Float64())), 1
			rates[i] = float64(float32(3 * rng.Float64()))
		}
		for _, q := range []struct {
			leaf   circuit.Leaf
			params []float64
			most   float64
		}{{circuit.Gaussian{}, means, 10}, {circuit.Poisson{}, rates, 40}, {circuit.RealHistogram{Breaks: []float64{0, 0.3, 1}}, bars, 1}} {
			m := mixed(t, q.leaf, q.params, weights)
			out := make([]float64, 1)
			if err := m.eng.Quantiles(t.Context(), m.batch([][]float64{{missing}}), []int{0}, []float64{math.Nextafter(1, 0)}, out); err != nil {
				t.Fatal(err)
			}
			if !(out[0] > q.most/3 && out[0] <= q.most) {
				t.Errorf("%s of %d units: %v at the largest level, want at most %v", q.leaf.Name(), n, out[0], q.most)
			}
		}
	}
}

// TestNarrowCovariances has leaves whose standard deviations are near the distance of float32 numbers at their means.
func TestNarrowCovariances(t *testing.T) {
	single := func(x float64) float64 { return float64(float32(x)) }
	for name, c := range map[string]struct {
		leaf          circuit.Leaf
		a, b          float64
		first, second float64 // parameters of spread
	}{
		"1000":          {circuit.Gaussian{}, 1000, 1000.02, 0.01, 0.01},
		"1e5":           {circuit.Gaussian{}, 1e5, 1e5 + 0.0234375, 0.01, 0.03},
		"-1e5":          {circuit.Gaussian{}, -1e5, -1e5 - 0.0234375, 0.01, 0.03},
		"1.6e9":         {circuit.Gaussian{}, 1.6e9, 1.6e9 + 8960, 3600, 7200},
		"0":             {circuit.Gaussian{}, 0, 0.5, 1, 0.7},
		"logarithms":    {circuit.LogNormal{}, 3, 3.00002, 1e-5, 2e-5},
		"a thousandth":  {circuit.LogNormal{}, -1, -0.9999, 1e-3, 1e-3},
		"one hundredth": {circuit.LogNormal{}, 2, 2.02, 0.0099, 0.0095},
		"wider":         {circuit.LogNormal{}, 2, 2.3, 0.0101, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			checkMixture(t, []float64{0.6, 0.4}, [][]part{
				{{c.leaf, []float64{single(c.a), single(c.first)}}, {circuit.Gaussian{}, []float64{5, 1}}},
				{{c.leaf, []float64{single(c.b), single(c.second)}}, {circuit.Gaussian{}, []float64{7, 1}}},
			})
		})
	}
	// Of 1e9 float32 has a number in 64.
	g, params := mixture([]float64{0.5, 0.5}, [][]part{
		{{circuit.Gaussian{}, []float64{1e9, 50}}, {circuit.Gaussian{}, []float64{5, 1}}},
		{{circuit.Gaussian{}, []float64{1e9 + 128, 50}}, {circuit.Gaussian{}, []float64{7, 1}}},
	})
	m := buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
	b, out := m.batch([][]float64{{missing, missing}}), make([]float64, 4)
	if err := m.eng.Covariance(t.Context(), b, []int{0, 1}, out); err != nil || !near(out[1], 64, 1e-3) {
		t.Errorf("covariance %v, want 64, a sum over the second column: %v", out[1], err)
	}
	g, params = mixture([]float64{0.5, 0.5}, [][]part{
		{{circuit.Gaussian{}, []float64{1e9, 50}}, {circuit.Gaussian{}, []float64{1e9, 50}}},
		{{circuit.Gaussian{}, []float64{1e9 + 128, 50}}, {circuit.Gaussian{}, []float64{1e9, 50}}},
	})
	m = buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
	if err := m.eng.Covariance(t.Context(), b, []int{0, 1}, out); !errors.Is(err, dataset.ErrSetting) {
		t.Errorf("grids finer than float32: %v, %v", out, err)
	}
}

// TestExpectOfPairs takes memory by the pairs of variables that a polynomial multiplies, and not by all pairs of those.
func TestExpectOfPairs(t *testing.T) {
	const n = 2000
	g := &circuit.Graph{NumVars: n, Root: n, Nodes: make([]circuit.Node, n+1)}
	product := circuit.Node{Kind: circuit.Product, Units: 1}
	row, want := make([]float64, n), 0.0
	var p engine.Polynomial
	for v := range n {
		g.Nodes[v] = circuit.Node{Units: 1, Var: v, Leaf: circuit.Bernoulli{}}
		product.Children = append(product.Children, circuit.NodeID(v))
		row[v] = float64(v % 3 % 2)
		if v%2 == 1 {
			p.Terms = append(p.Terms, engine.Term{Factor: 1, Variables: []int{v, v - 1}})
			want += row[v] * row[v-1]
		}
	}
	g.Nodes[n] = product
	m := build(t, g, engine.Options{Rows: 4, Queries: true})
	b, out := m.batch([][]float64{row}), make([]float64, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := m.eng.Expect(t.Context(), b, []engine.Polynomial{p}, out); err != nil || out[0] != want {
		t.Errorf("%v, %v; want %v", out, err, want)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8*n*n/2 {
		t.Errorf("%d pairs of %d variables took %d bytes", n/2, n, took)
	}
}
