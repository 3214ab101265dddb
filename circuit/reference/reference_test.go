package reference

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

func near(got, want, tol float64) bool { return got == want || math.Abs(got-want) <= tol }

// random returns a random circuit and its evaluator; the seed names it.
func random(t *testing.T, seed uint64, o RandomOptions) (*circuit.Graph, *Evaluator, *rand.Rand) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	g := Random(rng, o)
	p, err := Init(g, seed, nil)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	ev, err := New(g, p)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return g, ev, rng
}

// TestRandomCovers checks that random circuits are valid, are equal for equal
// seeds and show every feature that the pipeline must handle.
func TestRandomCovers(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		g, _, _ := random(t, seed, RandomOptions{})
		if a, b := fmt.Sprint(g), fmt.Sprint(Random(rand.New(rand.NewPCG(seed, 1)), RandomOptions{})); len(a) != len(b) {
			t.Fatalf("seed %d: not reproducible", seed)
		}
		parents := make([]int, len(g.Nodes))
		for i := range g.Nodes {
			n := &g.Nodes[i]
			key := n.Kind.String()
			for _, c := range n.Children {
				parents[c]++
				seen[key+" over "+g.Nodes[c].Kind.String()]++
			}
			if n.Kind == circuit.Input {
				seen[n.Leaf.Name()]++
			}
			if n.Tie.Node() != circuit.None && n.Kind != circuit.Product {
				seen["tied "+key]++
				if n.Edges != nil {
					seen["tied edges"]++
				}
			}
			if n.Edges != nil {
				seen["edges"]++
				if n.Edges.Mask != nil {
					seen["mask"]++
				}
			}
			if len(n.Children) > 3 {
				seen["wide "+key]++
			}
			if len(n.Children) == 1 {
				seen["narrow "+key]++
			}
		}
		for i, c := range parents {
			if c > 1 {
				seen["shared "+g.Nodes[i].Kind.String()]++
			}
		}
	}
	t.Log(seen)
	for _, key := range append(circuit.LeafTypes(), "sum over sum", "sum over input", "sum over product", "product over product",
		"product over sum", "product over input", "tied sum", "tied input", "tied edges", "edges", "mask", "wide sum", "wide product",
		"narrow sum", "narrow product", "shared input", "shared sum", "shared product") {
		if seen[key] < 5 {
			t.Errorf("%q occurs %d times in 300 circuits; want at least 5", key, seen[key])
		}
	}
}

// TestMassIsOne enumerates all states; without evidence the log is 0, and the
// probability of partial evidence is the mass of its completions.
func TestMassIsOne(t *testing.T) {
	for seed := range uint64(60) {
		g, ev, rng := random(t, seed, RandomOptions{Vars: 1 + int(seed%4), MaxUnits: 6, MaxCodes: 4, MaxNodes: 25, Discrete: true})
		empty := MissingRow(g.NumVars)
		// Parameters are float32: every layer may be off by 2^-24.
		const tol = 1e-5
		if mass, err := ev.Mass(empty); err != nil || !near(mass, 1, tol) {
			t.Errorf("seed %d: mass %v, %v", seed, mass, err)
		}
		if ll, err := ev.LogLikelihood(empty); err != nil || !near(ll, 0, tol) {
			t.Errorf("seed %d: no evidence has log-likelihood %v, %v", seed, ll, err)
		}
		row := RandomRows(g, rng, 1, 0.5)[0]
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		if mass, err := ev.Mass(row); err != nil || !near(mass, math.Exp(ll), tol) {
			t.Errorf("seed %d: completions of %v have mass %v, %v; the marginal is %v", seed, row, mass, err, math.Exp(ll))
		}
	}
}

// TestHandComputed compares with numbers worked out on paper.
func TestHandComputed(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Var: 0, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Bernoulli{}, Tie: circuit.TieTo(0)},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	p := Params{{0.25, 0.75, 0.5, 0.5}, nil, nil, {0.125, 0.875}}
	ev, err := New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	a, b := 0.125*0.75*0.25, 0.875*0.5*0.5 // the two terms of p(1, 0)
	ll, err := ev.LogLikelihood([]float64{1, 0})
	if err != nil || !near(ll, math.Log(a+b), 1e-15) {
		t.Errorf("log-likelihood %v, %v; want %v", ll, err, math.Log(a+b))
	}
	f, err := ev.Flows([][]float64{{1, 0}, {1, math.NaN()}})
	if err != nil {
		t.Fatal(err)
	}
	c, d := 0.125*0.75, 0.875*0.5 // of p(1, ?)
	share := []float64{a/(a+b) + c/(c+d), b/(a+b) + d/(c+d)}
	for u, want := range share {
		if !near(f.Params[3][u], want, 1e-14) || !near(f.Nodes[2][u], want, 1e-14) {
			t.Errorf("unit %d: flows %v, %v; want %v", u, f.Params[3][u], f.Nodes[2][u], want)
		}
	}
	// Tied inputs pool: variable 0 sees 1 in both rows, variable 1 sees 0 in the first.
	if want := a / (a + b); !near(f.Stats[0][0], want, 1e-14) || !near(f.Weights[0][0], share[0]+want, 1e-14) || f.Stats[1] != nil {
		t.Errorf("statistics %v, weights %v", f.Stats[0], f.Weights[0])
	}
	next := ev.EM(f, Step{Size: 0.5, Pseudocount: 1})
	if want := 0.5*0.125 + 0.5*(share[0]+0.5)/3; !near(next[3][0], want, 1e-14) {
		t.Errorf("weight %v, want %v", next[3][0], want)
	}
	if want := 0.5*0.25 + 0.5*(a/(a+b)+0.5)/(share[0]+a/(a+b)+1); !near(next[0][0], want, 1e-14) {
		t.Errorf("leaf %v, want %v", next[0][0], want)
	}
}

// TestFlowLaws: the root's flow is 1 a row, a sum's flow is that of its weights,
// every other node's flow is what its parents send.
func TestFlowLaws(t *testing.T) {
	for seed := range uint64(80) {
		g, ev, rng := random(t, seed, RandomOptions{Untied: seed%2 == 0})
		for _, row := range RandomRows(g, rng, 3, 0.2) {
			values, err := ev.Values(row)
			if err != nil {
				t.Fatal(err)
			}
			f, err := ev.Flows([][]float64{row})
			if err != nil {
				t.Fatal(err)
			}
			if f.Rows+f.Impossible != 1 || (f.Impossible == 1) != math.IsInf(values[g.Root][0], -1) {
				t.Fatalf("seed %d: %d rows, %d impossible, log-likelihood %v", seed, f.Rows, f.Impossible, values[g.Root][0])
			}
			if !near(f.Nodes[g.Root][0], float64(f.Rows), 1e-12) {
				t.Errorf("seed %d: root flow %v", seed, f.Nodes[g.Root][0])
			}
			checkConservation(t, seed, g, ev, f, row)
		}
	}
}

func checkConservation(t *testing.T, seed uint64, g *circuit.Graph, ev *Evaluator, f *Flows, row []float64) {
	t.Helper()
	const tol = 1e-10 // some thousand float64 roundings
	cover := make([]float64, g.NumVars)
	pooled := map[circuit.NodeID]float64{} // node flows of a tie group's sums
	for i := range g.Nodes {
		n, id := &g.Nodes[i], circuit.NodeID(i)
		flow := 0.0
		for _, v := range f.Nodes[i] {
			if !(v >= 0 && v <= 1+tol) && n.Kind != circuit.Product {
				t.Errorf("seed %d: node %d has flow %v", seed, i, v)
			}
			flow += v
		}
		switch n.Kind {
		case circuit.Input:
			cover[n.Var] += flow
		case circuit.Sum:
			pooled[g.Owner(id)] += flow
		}
	}
	for id, want := range pooled {
		got := 0.0
		for _, v := range f.Params[id] {
			got += v
		}
		if !near(got, want, tol) {
			t.Errorf("seed %d: weights of node %d have flow %v, its units %v", seed, id, got, want)
		}
	}
	// Smooth and decomposable: each variable is read once along every path.
	for v, got := range cover {
		if !near(got, float64(f.Rows), tol) {
			t.Errorf("seed %d: inputs of variable %d have flow %v", seed, v, got)
		}
	}
	for i := range g.Nodes {
		if f.Weights[i] == nil || math.IsNaN(row[g.Nodes[i].Var]) {
			continue
		}
		for u, w := range f.Weights[i] {
			if !(w >= f.Nodes[i][u]-tol) {
				t.Errorf("seed %d: input %d has flow %v and weight %v", seed, i, f.Nodes[i][u], w)
			}
		}
	}
}

// TestEMNeverLowers runs full-batch steps without pseudocount. Discretised
// logistics match moments, so circuits with them are left out.
func TestEMNeverLowers(t *testing.T) {
	tried := 0
	for seed := range uint64(120) {
		g, ev, rng := random(t, seed, RandomOptions{MaxUnits: 6, MaxNodes: 30, Positive: true})
		if hasLogistic(g) {
			continue
		}
		tried++
		rows := RandomRows(g, rng, 12, 0.2)
		last := math.Inf(-1)
		for step := range 6 {
			f, err := ev.Flows(rows)
			if err != nil {
				t.Fatal(err)
			}
			if f.Impossible != 0 {
				t.Fatalf("seed %d: %d rows are impossible", seed, f.Impossible)
			}
			if !(f.LogLikelihood >= last-1e-9*math.Abs(last)) {
				t.Errorf("seed %d: step %d lowers the log-likelihood from %v to %v", seed, step, last, f.LogLikelihood)
			}
			if step > 0 { // the start is normalised to float32 only
				last = f.LogLikelihood
			}
			if ev, err = New(g, ev.EM(f, Step{Size: 1})); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d circuits without discretised logistics", tried)
	}
}

func hasLogistic(g *circuit.Graph) bool {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == circuit.Input && n.Leaf.Name() == "discretised-logistic" {
			return true
		}
	}
	return false
}

// TestEMRules covers the corners of the update of one sum unit.
func TestEMRules(t *testing.T) {
	edges := []edge{{param: 0}, {param: 1}, {param: 2}}
	for _, tc := range []struct {
		name              string
		theta, flow, want []float64
		step              Step
	}{
		{"full", []float64{0.5, 0.25, 0.25}, []float64{1, 2, 1}, []float64{0.25, 0.5, 0.25}, Step{1, 0}},
		{"blend", []float64{0.5, 0.25, 0.25}, []float64{0, 4, 0}, []float64{0.25, 0.625, 0.125}, Step{0.5, 0}},
		{"pseudocount", []float64{0.5, 0.25, 0.25}, []float64{0, 3, 0}, []float64{1. / 9, 7. / 9, 1. / 9}, Step{1, 1.5}},
		{"structural zero", []float64{0.5, 0, 0.5}, []float64{3, 0, 1}, []float64{0.625, 0, 0.375}, Step{1, 4}},
		{"no flow", []float64{0.5, 0.25, 0.25}, []float64{0, 0, 0}, []float64{0.5, 0.25, 0.25}, Step{1, 0}},
		{"no flow, pseudocount", []float64{0.5, 0.25, 0.25}, []float64{0, 0, 0}, []float64{1. / 3, 1. / 3, 1. / 3}, Step{1, 1}},
		{"positive stays positive", []float64{0.5, 0.25, 0.25}, []float64{4, 4, 0}, []float64{0.5, 0.5, circuit.MinProb}, Step{1, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := append([]float64{}, tc.theta...)
			updateWeights(got, tc.flow, edges, tc.step)
			for i := range got {
				if !near(got[i], tc.want[i], 1e-15) || (got[i] == 0) != (tc.want[i] == 0) {
					t.Fatalf("weights %v, want %v", got, tc.want)
				}
			}
		})
	}
}

// TestSampleQueries compares the frequencies of samples given evidence with the exact
// conditional probabilities.
func TestSampleQueries(t *testing.T) {
	for seed := range uint64(10) {
		g, ev, rng := random(t, seed, RandomOptions{Vars: 3, MaxUnits: 5, MaxCodes: 3, Discrete: true, Positive: true})
		given := RandomRows(g, rng, 1, 0)[0]
		given[0], given[2] = math.NaN(), math.NaN()
		const n = 4000
		count := map[string]float64{}
		for range n {
			row, err := ev.Sample(given, rng)
			if err != nil {
				t.Fatal(err)
			}
			count[fmt.Sprint(row)]++
		}
		base, err := ev.LogLikelihood(given)
		if err != nil {
			t.Fatal(err)
		}
		states, err := States(g, given)
		if err != nil {
			t.Fatal(err)
		}
		chi, cells := 0.0, 0.0
		for row := range states {
			ll, _ := ev.LogLikelihood(row)
			p, got := math.Exp(ll-base), count[fmt.Sprint(row)]
			if chi += (got - n*p) * (got - n*p) / (n * p); n*p >= 5 {
				cells++
			}
			// Five standard errors of a frequency.
			if !near(got/n, p, 5*math.Sqrt(p/n)) {
				t.Errorf("seed %d: %v has frequency %v, probability %v", seed, row, got/n, p)
			}
		}
		// Six standard deviations and ten above the mean of chi-square.
		if df := cells - 1; !(chi <= df+6*math.Sqrt(2*df)+10) {
			t.Errorf("seed %d: chi-square %v over %v completions", seed, chi, cells)
		}
	}
}

func TestBatchRoundTrip(t *testing.T) {
	g, _, rng := random(t, 7, RandomOptions{Vars: 12})
	rows := RandomRows(g, rng, 20, 0.3)
	if got := Rows(Batch(Schema(g), rows)); fmt.Sprint(got) != fmt.Sprint(rows) {
		t.Errorf("got %v, want %v", got, rows)
	}
}

func TestRefuses(t *testing.T) {
	g, ev, _ := random(t, 3, RandomOptions{Vars: 2, Discrete: true})
	for _, row := range [][]float64{nil, {0}, {0, 99}, {0.5, 0}, {0, math.Inf(1)}} {
		if _, err := ev.LogLikelihood(row); !errors.Is(err, ErrRow) {
			t.Errorf("row %v: %v", row, err)
		}
	}
	if _, err := New(g, nil); !errors.Is(err, circuit.ErrGraph) {
		t.Errorf("no parameters: %v", err)
	}
	p := ev.p.Clone()
	for i := range p {
		if p[i] != nil {
			p[i][0] = math.NaN()
			break
		}
	}
	if _, err := New(g, p); !errors.Is(err, circuit.ErrGraph) {
		t.Errorf("NaN parameter: %v", err)
	}
	if _, err := FromFloat32(g, make([][]float32, len(g.Nodes))); !errors.Is(err, circuit.ErrGraph) {
		t.Errorf("empty parameters: %v", err)
	}
	many := &circuit.Graph{NumVars: 4}
	for v := range 4 {
		many.Nodes = append(many.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Categorical{Categories: 256}})
	}
	if _, err := States(many, MissingRow(4)); !errors.Is(err, ErrDomain) {
		t.Errorf("too many states: %v", err)
	}
}

// TestLoad64 keeps the digits that Load rounds away.
func TestLoad64(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}}}}
	wide := Params{{0.9, 0.1}}
	for _, tc := range []struct {
		name string
		load func() (Params, error)
		want float64
	}{
		{"Load", func() (Params, error) { return Load(g, wide.Read) }, math.Log(float64(float32(0.1)))},
		{"Load64", func() (Params, error) { return Load64(g, wide.Read64) }, math.Log(0.1)},
	} {
		p, err := tc.load()
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.LogLikelihood([]float64{1}); err != nil || got != tc.want {
			t.Errorf("%s: log probability is %v, want %v: %v", tc.name, got, tc.want, err)
		}
	}
	if err := wide.Read64(0, make([]float64, 1)); !errors.Is(err, circuit.ErrGraph) {
		t.Errorf("a slice of another length: %v, want ErrGraph", err)
	}
}
