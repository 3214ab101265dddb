package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// buildSoft opens a circuit with so many rows of evidence in its tables.
func buildSoft(t testing.TB, g *circuit.Graph, soft int, o engine.Options) *model {
	t.Helper()
	params, err := reference.Init(g, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	co := compile.DefaultOptions()
	co.Soft = soft
	return buildCompiled(t, g, params, co, o)
}

func (m *model) softBatch(rows [][]float64, soft [][]*dataset.Evidence) *dataset.Batch {
	return reference.SoftBatch(reference.Schema(m.graph), rows, soft)
}

// checkSoft compares the log-likelihoods of rows with evidence with those of the reference, and
// returns how many are finite.
func (m *model) checkSoft(t *testing.T, rows [][]float64, soft [][]*dataset.Evidence) (finite int) {
	t.Helper()
	ll := make([]float64, len(rows))
	if err := m.eng.LogLikelihood(context.Background(), m.softBatch(rows, soft), ll); err != nil {
		t.Fatal(err)
	}
	for r, row := range rows {
		want, err := m.ref.SoftLogLikelihood(row, soft[r])
		if err != nil {
			t.Fatal(err)
		}
		if !math.IsInf(want, 0) {
			finite++
		}
		if !near(ll[r], want, 1e-5*max(1, math.Abs(want))) {
			t.Errorf("row %d %v, evidence %v: log-likelihood %v, want %v", r, row, text(soft[r]), ll[r], want)
		}
	}
	return finite
}

func text(soft []*dataset.Evidence) (out []string) {
	for _, e := range soft {
		if e == nil {
			out = append(out, "-")
		} else {
			out = append(out, fmt.Sprintf("%+v", *e))
		}
	}
	return out
}

// TestSoftRandom evaluates random circuits of all leaves with random evidence, with room for
// all of it and with so little that launches are cut.
func TestSoftRandom(t *testing.T) {
	n := 24
	if testing.Short() {
		n = 15
	}
	finite := 0
	for seed := range uint64(n) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 41))
			g := reference.Random(rng, reference.RandomOptions{MaxNodes: 30})
			m := buildSoft(t, g, []int{64, 3, 1}[seed%3], engine.Options{Rows: 16})
			rows := reference.RandomRows(g, rng, 21, 0.3)
			hard := make([][]*dataset.Evidence, len(rows))
			for r := range hard {
				hard[r] = make([]*dataset.Evidence, g.NumVars)
			}
			m.checkSoft(t, rows, hard)
			soft := reference.RandomSoft(g, rng, rows, 0.6)
			finite += m.checkSoft(t, rows, soft)
			m.checkSoft(t, rows, soft) // from rows that are there
		})
	}
	if finite < 15*n {
		t.Errorf("%d rows are possible, which is too few", finite)
	}
}

// with returns the log of the probability of a row and of what is known of it, if a cell has a
// value.
func (m *model) with(t *testing.T, row []float64, soft []*dataset.Evidence, v int, x float64) float64 {
	t.Helper()
	row, soft = append([]float64{}, row...), append([]*dataset.Evidence{}, soft...)
	row[v], soft[v] = x, nil
	ll, err := m.ref.SoftLogLikelihood(row, soft)
	if err != nil {
		t.Fatal(err)
	}
	return ll
}

// distribution returns the values that a cell may have, on a grid where they are not counts, and
// their probabilities.
func (m *model) distribution(t *testing.T, row []float64, soft []*dataset.Evidence, v int) (values, p []float64) {
	t.Helper()
	const far, steps = 30, 6000
	step, first, last, logs := 1.0, 0.0, float64(far), m.leaf(v).Name() == "log-normal"
	switch codes := circuit.Domains(m.graph)[v]; {
	case codes > 0:
		last = float64(codes - 1)
	case m.leaf(v).Name() == "poisson":
		first, last = max(first, math.Ceil(soft[v].Low)), min(last, math.Floor(soft[v].High))
	default:
		first, last = max(-far, soft[v].Low), min(far, soft[v].High)
		if logs {
			first, last = math.Log(max(1e-5, soft[v].Low)), math.Log(min(1e5, soft[v].High))
		}
		step = (last - first) / steps
		first += step / 2
	}
	top := math.Inf(-1)
	for x := first; x < last+step/4; x += step {
		x, l := x, 0.0
		if logs {
			x, l = math.Exp(x), x
		}
		if soft[v] != nil && soft[v].Runs != nil {
			l = math.Log(soft[v].Likelihood(int(x)))
		}
		values, p = append(values, x), append(p, l+m.with(t, row, soft, v, x))
		top = max(top, p[len(p)-1])
	}
	sum := 0.0
	for i, l := range p {
		p[i] = math.Exp(l - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return values, p
}

func (m *model) leaf(v int) circuit.Leaf {
	for i := range m.graph.Nodes {
		if n := &m.graph.Nodes[i]; n.Kind == circuit.Input && n.Var == v {
			return n.Leaf
		}
	}
	return nil
}

// checkSoftConditional compares conditionals and moments of all variables at once with those of
// one value at a time, and returns how many evidences it has seen.
func (m *model) checkSoftConditional(t *testing.T, rows [][]float64, soft [][]*dataset.Evidence, tol float64) (seen int) {
	t.Helper()
	ctx, b, n := context.Background(), m.softBatch(rows, soft), m.graph.NumVars
	variables := everyVariable(m.graph)
	width := 0
	for _, v := range variables {
		w, err := m.eng.ConditionalWidth(v)
		if err != nil {
			t.Fatal(err)
		}
		width += w
	}
	got, moments := make([]float64, len(rows)*width), make([]float64, len(rows)*2*n)
	if err := m.eng.Conditional(ctx, b, variables, got); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.Moments(ctx, b, moments); err != nil {
		t.Fatal(err)
	}
	for r, row := range rows {
		ll, err := m.ref.SoftLogLikelihood(row, soft[r])
		if err != nil {
			t.Fatal(err)
		}
		at := got[r*width : (r+1)*width]
		for _, v := range variables {
			w, _ := m.eng.ConditionalWidth(v)
			of := at[:w]
			at = at[w:]
			if math.IsInf(ll, -1) {
				if !math.IsNaN(of[0]) || !math.IsNaN(moments[r*2*n+v]) {
					t.Errorf("row %d is impossible, and variable %d has %v", r, v, of)
				}
				continue
			}
			codes := circuit.Domains(m.graph)[v]
			if !math.IsNaN(row[v]) || codes == 0 && soft[r][v] == nil {
				continue
			}
			if soft[r][v] != nil {
				seen++
			}
			values, p := m.distribution(t, row, soft[r], v)
			mean, variance := 0.0, 0.0
			for i, x := range values {
				mean += p[i] * x
				if codes > 0 && !near(of[i], p[i], tol) {
					t.Errorf("row %d, variable %d: probability of %v is %v, want %v (evidence %v)", r, v, x, of[i], p[i], text(soft[r]))
				}
			}
			for i, x := range values {
				variance += p[i] * (x - mean) * (x - mean)
			}
			scale := tol * max(1, math.Abs(mean), mean*mean, variance)
			if !near(moments[r*2*n+v], mean, scale) || !near(moments[r*2*n+n+v], variance, scale) {
				t.Errorf("row %d, variable %d: moments %v, %v, want %v, %v (evidence %v)", r, v, moments[r*2*n+v], moments[r*2*n+n+v], mean, variance, text(soft[r]))
			}
			if codes == 0 && (!near(of[0], mean, scale) || !near(of[1], variance, scale)) {
				t.Errorf("row %d, variable %d: conditional %v, want %v, %v", r, v, of, mean, variance)
			}
		}
	}
	return seen
}

// TestSoftConditional asks for all conditionals and moments of random discrete circuits.
func TestSoftConditional(t *testing.T) {
	n, seen := 12, 0
	if testing.Short() {
		n = 8
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 43))
			g := reference.Random(rng, reference.RandomOptions{Discrete: true, MaxNodes: 25, MaxCodes: 6})
			m := buildSoft(t, g, []int{64, 2}[seed%2], engine.Options{Rows: 16, Queries: true})
			rows := reference.RandomRows(g, rng, 11, 0.3)
			seen += m.checkSoftConditional(t, rows, reference.RandomSoft(g, rng, rows, 0.6), 1e-5)
		})
	}
	if seen < 5*n {
		t.Errorf("%d evidences are too few", seen)
	}
}

// valued yields small circuits over variables of one family without a table, and one of codes.
func valued(t testing.TB, do func(name string, g *circuit.Graph)) {
	t.Helper()
	for _, leaf := range []circuit.Leaf{circuit.Gaussian{}, circuit.Poisson{}, circuit.LogNormal{}} {
		g := &circuit.Graph{NumVars: 3}
		add := func(n circuit.Node) circuit.NodeID {
			g.Nodes = append(g.Nodes, n)
			return circuit.NodeID(len(g.Nodes) - 1)
		}
		const units = 5
		input := func(v int, l circuit.Leaf) circuit.NodeID {
			return add(circuit.Node{Kind: circuit.Input, Units: units, Var: v, Leaf: l})
		}
		sum := func(of circuit.NodeID) circuit.NodeID {
			return add(circuit.Node{Kind: circuit.Sum, Units: units, Children: []circuit.NodeID{of}})
		}
		a, c, d := sum(input(0, leaf)), input(1, leaf), input(2, circuit.Categorical{Categories: 3})
		inner := sum(add(circuit.Node{Kind: circuit.Product, Units: units, Children: []circuit.NodeID{c, d}}))
		top := add(circuit.Node{Kind: circuit.Product, Units: units, Children: []circuit.NodeID{a, inner}})
		g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{top}})
		do(leaf.Name(), g)
	}
}

// TestSoftValues asks for likelihoods, conditionals and moments where leaves have no table.
func TestSoftValues(t *testing.T) {
	valued(t, func(name string, g *circuit.Graph) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(9, 9))
			m := buildSoft(t, g, 64, engine.Options{Rows: 16, Queries: true})
			rows := reference.RandomRows(g, rng, 12, 0.2)
			if testing.Short() {
				rows = rows[:4]
			}
			soft := reference.RandomSoft(g, rng, rows, 0.6)
			m.checkSoft(t, rows, soft)
			if seen := m.checkSoftConditional(t, rows, soft, 3e-5); seen < len(rows)/2 {
				t.Errorf("%d evidences are too few", seen)
			}
		})
	})
}

// TestSoftLimits compares evidence that is a value, or that says nothing, with a cell that is
// so: a set of one category, one of all, a range of all numbers, likelihoods of 0.
func TestSoftLimits(t *testing.T) {
	structured(t, func(name string, g *circuit.Graph) {
		t.Run(name, func(t *testing.T) {
			m := buildSoft(t, g, 4, engine.Options{Rows: 8})
			rng := rand.New(rand.NewPCG(5, 6))
			rows := reference.RandomRows(g, rng, 6, 0)
			s := reference.Schema(g)
			want, got := make([]float64, len(rows)), make([]float64, len(rows))
			for _, tc := range []struct {
				name string
				hard func(x float64) float64
				soft func(x float64) (*dataset.Evidence, error)
			}{
				{"one", func(x float64) float64 { return x }, func(x float64) (*dataset.Evidence, error) { return s.Columns[1].SetEvidence([]int{int(x)}) }},
				{"all", func(float64) float64 { return missing }, func(float64) (*dataset.Evidence, error) { return s.Columns[1].SetEvidence([]int{0, 1, 2}) }},
				{"one range", func(x float64) float64 { return x }, func(x float64) (*dataset.Evidence, error) { return s.Columns[1].RangeEvidence(x, x) }},
				{"excluded", func(x float64) float64 { return x }, func(x float64) (*dataset.Evidence, error) {
					l := make([]float64, 3)
					l[int(x)] = 1
					return s.Columns[1].LikelihoodEvidence(l)
				}},
			} {
				hard, soft := make([][]float64, len(rows)), make([][]*dataset.Evidence, len(rows))
				cut := make([][]float64, len(rows))
				for r, row := range rows {
					hard[r], cut[r], soft[r] = append([]float64{}, row...), append([]float64{}, row...), make([]*dataset.Evidence, len(row))
					for v := 0; v < len(row); v += 2 {
						hard[r][v] = tc.hard(row[v])
						var err error
						if soft[r][v], err = tc.soft(row[v]); err != nil {
							t.Fatal(err)
						}
						cut[r][v] = missing
					}
				}
				ctx := context.Background()
				if err := m.eng.LogLikelihood(ctx, m.batch(hard), want); err != nil {
					t.Fatal(err)
				}
				if err := m.eng.LogLikelihood(ctx, m.softBatch(cut, soft), got); err != nil {
					t.Fatal(err)
				}
				for r := range got {
					if !near(got[r], want[r], 1e-5) {
						t.Errorf("%s, row %d: %v, want %v", tc.name, r, got[r], want[r])
					}
				}
			}
		})
	})
}

// TestSoftRefused wants a line for what the engine cannot take.
func TestSoftRefused(t *testing.T) {
	structured(t, func(name string, g *circuit.Graph) {
		if name != "hclt" {
			return
		}
		m := build(t, g, engine.Options{Rows: 8, Train: true})
		rng := rand.New(rand.NewPCG(5, 6))
		rows := reference.RandomRows(g, rng, 3, 0)
		b := m.softBatch(rows, reference.RandomSoft(g, rng, rows, 1))
		ll := make([]float64, 3)
		if err := m.eng.LogLikelihood(context.Background(), b, ll); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("an engine without rows of evidence: %v", err)
		}
		if err := m.eng.Accumulate(context.Background(), b, 0, 3, ll); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("training: %v", err)
		}
	})
}

// TestSoftBins asks for ranges of values whose leaves are histograms over them, stored with a
// scale: a bin counts by the share of it that lies in the range.
func TestSoftBins(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 3, Var: 0, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 3, Var: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Product, Units: 3, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}, Root: 3}
	params, err := reference.Init(g, 7, nil)
	if err != nil {
		t.Fatal(err)
	}
	edges := []float64{10, 20, 24, 40}
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Continuous, Offset: 12, Scale: 4, Edges: edges, Outside: 1e-9},
		{Kind: dataset.Continuous, Offset: -3, Scale: 2},
	}}
	co := compile.DefaultOptions()
	co.Soft = 4
	m := buildCompiled(t, g, params, co, engine.Options{Rows: 4, Queries: true, Schema: schema})
	ctx := context.Background()
	for _, r := range [][2]float64{{10, 40}, {15, 22}, {-100, 20}, {24, math.Inf(1)}, {23, 23.5}, {16, 16 + 4e-9}, {math.Inf(-1), 10.5}} {
		rows := [][]float64{{missing, missing}}
		soft := [][]*dataset.Evidence{{{Low: r[0], High: r[1]}, {Low: -4, High: 1}}}
		ll, p, moments := make([]float64, 1), make([]float64, 4), make([]float64, 4)
		for name, err := range map[string]error{
			"loglik":      m.eng.LogLikelihood(ctx, reference.SoftBatch(schema, rows, soft), ll),
			"conditional": m.eng.Conditional(ctx, reference.SoftBatch(schema, rows, soft), []int{0, 1}, p),
			"moments":     m.eng.Moments(ctx, reference.SoftBatch(schema, rows, soft), moments),
		} {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		sum, mean, square := 0.0, 0.0, 0.0
		for code := range 3 {
			lo, hi := max(r[0], edges[code]), min(r[1], edges[code+1])
			if hi <= lo {
				continue
			}
			l, err := m.ref.SoftLogLikelihood([]float64{float64(code), missing}, []*dataset.Evidence{nil, {Low: -0.5, High: 2}})
			if err != nil {
				t.Fatal(err)
			}
			w := math.Exp(l) * (hi - lo) / (edges[code+1] - edges[code])
			sum, mean, square = sum+w, mean+w*(lo+hi)/2, square+w*((hi-lo)*(hi-lo)/12+(lo+hi)*(lo+hi)/4)
		}
		mean, square = mean/sum, square/sum
		if !near(ll[0], math.Log(sum), 1e-5) || !near(p[0], mean, 1e-3) || !near(p[1], square-mean*mean, 1e-2) || p[0] != moments[0] || p[1] != moments[2] {
			t.Errorf("range %v: log probability %v, moments %v; want %v, %v, %v", r, ll[0], p, math.Log(sum), mean, square-mean*mean)
		}
		if !(p[2] >= -4 && p[2] <= 1) {
			t.Errorf("range %v: the mean of the other column is %v", r, p[2])
		}
		for _, fill := range []func(b *dataset.Batch) error{
			func(b *dataset.Batch) error { return m.eng.Sample(ctx, b, 5, 0) },
			func(b *dataset.Batch) error {
				return m.eng.MPE(ctx, b, engine.MPEOptions{Candidates: 2, Sweeps: 2}, make([]float64, 1), make([]float64, 1))
			},
		} {
			b := reference.SoftBatch(schema, rows, soft)
			if err := fill(b); err != nil {
				t.Fatal(err)
			}
			x, y := schema.Columns[0].Number(b.Columns[0].Values[0]), schema.Columns[1].Number(b.Columns[1].Values[0])
			if !(x >= max(10, r[0]) && x <= min(40, r[1]) && y >= -4 && y <= 1) {
				t.Errorf("range %v: filled with %v, %v", r, x, y)
			}
		}
	}
	rows, soft := [][]float64{{missing, missing}}, [][]*dataset.Evidence{{{Low: 50, High: 60}, nil}}
	ll := make([]float64, 1)
	if err := m.eng.LogLikelihood(ctx, reference.SoftBatch(schema, rows, soft), ll); err != nil || !math.IsInf(ll[0], -1) {
		t.Errorf("a range beyond all bins: %v, %v", ll[0], err)
	}
}

// TestSoftBinEdges asks for each of many narrow bins, whose edges are rounded where they are stored: its neighbours, of which
// one has nearly all of the mass, have no share in it.
func TestSoftBinEdges(t *testing.T) {
	const n = 2048
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: n}}}}
	p := make([]float64, n)
	column := dataset.Column{Kind: dataset.Continuous, Offset: 1000.1, Scale: 300.7}
	for k := range n {
		p[k] = []float64{2. / n * (1 - 1e-6), 2. / n * 1e-6}[k%2]
		column.Edges = append(column.Edges, float64(k))
	}
	column.Edges = append(column.Edges, n)
	schema := &dataset.Schema{Columns: []dataset.Column{column}}
	co := compile.DefaultOptions()
	co.Soft = 64
	m := buildCompiled(t, g, reference.Params{p}, co, engine.Options{Rows: 64, Queries: true, Schema: schema})
	for first := 0; first < n; first += 64 {
		rows, soft := make([][]float64, 64), make([][]*dataset.Evidence, 64)
		for i := range rows {
			k := float64(first + i)
			rows[i], soft[i] = []float64{missing}, []*dataset.Evidence{{Low: k, High: k + 1}}
		}
		ll, moments := make([]float64, 64), make([]float64, 128)
		if err := m.eng.LogLikelihood(t.Context(), reference.SoftBatch(schema, rows, soft), ll); err != nil {
			t.Fatal(err)
		}
		if err := m.eng.Moments(t.Context(), reference.SoftBatch(schema, rows, soft), moments); err != nil {
			t.Fatal(err)
		}
		for i, l := range ll {
			k := first + i
			if mean := moments[2*i]; !near(l, math.Log(p[k]), 1e-6) || !(math.Abs(mean-float64(k)-0.5) <= 1e-9) || !(math.Abs(moments[2*i+1]-1./12) < 1e-9) {
				t.Fatalf("%d..%d: log probability %v, moments %v; want %v, %v", k, k+1, l, moments[2*i:2*i+2], math.Log(p[k]), float64(k)+0.5)
			}
		}
	}
}

// TestSoftCounts has the moments of counts of which sets and likelihoods are known, from the probabilities of each.
func TestSoftCounts(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Leaf: circuit.Poisson{}}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	co := compile.DefaultOptions()
	co.Soft = 4
	m := buildCompiled(t, g, reference.Params{{2, 6}, {0.25, 0.75}}, co, engine.Options{Rows: 4, Queries: true})
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous}}}
	for _, runs := range [][]dataset.Run{{{First: 3, Last: 3, Likelihood: 1}}, {{First: 2, Last: 5, Likelihood: 1}}, {{First: 0, Last: 1, Likelihood: 0.5}, {First: 7, Last: 9, Likelihood: 2}}} {
		sum, mean, square := 0.0, 0.0, 0.0
		for _, r := range runs {
			for x := r.First; x <= r.Last; x++ {
				k, factorial := float64(x), math.Gamma(float64(x+1))
				p := r.Likelihood * (0.25*math.Exp(-2)*math.Pow(2, k) + 0.75*math.Exp(-6)*math.Pow(6, k)) / factorial
				sum, mean, square = sum+p, mean+k*p, square+k*k*p
			}
		}
		mean, square = mean/sum, square/sum
		b := reference.SoftBatch(schema, [][]float64{{missing}}, [][]*dataset.Evidence{{{Runs: runs}}})
		got := make([]float64, 2)
		if err := m.eng.Moments(t.Context(), b, got); err != nil {
			t.Fatal(err)
		}
		if !near(got[0], mean, 1e-5) || !near(got[1], square-mean*mean, 1e-4) {
			t.Errorf("%v: moments %v, want %v and %v", runs, got, mean, square-mean*mean)
		}
	}
}
