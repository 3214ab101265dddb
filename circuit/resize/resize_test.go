package resize

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
)

// model is a circuit with parameters, rows, and the flows of these.
type model struct {
	g      *circuit.Graph
	params reference.Params
	rows   [][]float64
	flows  *reference.Flows
}

// random returns a random model.
func random(t *testing.T, seed uint64, o reference.RandomOptions) *model {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	m := &model{g: reference.Random(rng, o)}
	return m.fill(t, rng, seed)
}

// fill draws the parameters, the rows and their flows.
func (m *model) fill(t *testing.T, rng *rand.Rand, seed uint64) *model {
	t.Helper()
	var err error
	if m.params, err = reference.Init(m.g, seed, nil); err != nil {
		t.Fatal(err)
	}
	m.rows = reference.RandomRows(m.g, rng, 20, 0.2)
	ev, err := reference.New(m.g, m.params)
	if err != nil {
		t.Fatal(err)
	}
	if m.flows, err = ev.Flows(m.rows); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *model) param(id circuit.NodeID, dst []float64) error {
	copy(dst, m.params[m.g.Owner(id)])
	return nil
}

func (m *model) flow(id circuit.NodeID, dst []float64) error {
	copy(dst, m.flows.Params[id])
	return nil
}

// evaluator returns the reference of a resized circuit, whose parameters it checks.
func evaluator(t *testing.T, c *Circuit) *reference.Evaluator {
	t.Helper()
	p, err := reference.Load64(c.Graph, c.Params)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Graph.Nodes {
		if id := circuit.NodeID(i); c.Graph.OwnsParams(id) {
			if err := circuit.CheckParams(c.Graph, id, p[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	ev, err := reference.New(c.Graph, p)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// same compares the log-likelihoods of all rows of a model.
func (m *model) same(t *testing.T, got, want *reference.Evaluator) {
	t.Helper()
	for _, row := range m.rows {
		a, err := got.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.LogLikelihood(row)
		if err != nil {
			t.Fatal(err)
		}
		if a != b && !(math.Abs(a-b) <= 1e-6*max(1, math.Abs(b))) { // weights are normalised to float32 at first
			t.Fatalf("log-likelihood %v, want %v", a, b)
		}
	}
}

// TestPruneNothing keeps all weights: the distribution must not change, whatever the blocks.
func TestPruneNothing(t *testing.T) {
	for seed := range uint64(30) {
		m := random(t, seed, reference.RandomOptions{MaxUnits: 16})
		want, err := reference.New(m.g, m.params)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: 1, Block: 1 << (seed % 6)})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(c.Flow-1) > 1e-12 {
			t.Errorf("seed %d: %v of the flow is kept, want all", seed, c.Flow)
		}
		m.same(t, evaluator(t, c), want)
		sparse := func(g *circuit.Graph) (n int) {
			for i := range g.Nodes {
				if g.Nodes[i].Edges != nil {
					n++
				}
			}
			return n
		}
		if before, after := sparse(m.g), sparse(c.Graph); after > before {
			t.Errorf("seed %d: %d sums of %d nodes leave edges out, %d did", seed, after, len(c.Graph.Nodes), before)
		}
		if before, after := circuit.Count(m.g).SumEdges, circuit.Count(c.Graph).SumEdges; after > before {
			t.Errorf("seed %d: %d edges, %d were there", seed, after, before)
		}
	}
}

// TestPrune compares a pruned circuit with the whole graph in which the weights that went are 0.
func TestPrune(t *testing.T) {
	smaller, fewerUnits := 0, 0
	seeds := 150
	if testing.Short() {
		seeds = 45
	}
	for seed := range uint64(seeds) {
		m := random(t, seed, reference.RandomOptions{MaxUnits: 16})
		size, keep := 1<<(seed%5), []float64{0.05, 0.3, 0.7}[seed%3]
		p := pruned(t, m, size, keep)
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: keep, Block: size})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		zeroed := make(reference.Params, len(m.params))
		for i, old := range m.params {
			zeroed[i] = old
			if m.g.Nodes[i].Kind == circuit.Sum && old != nil {
				zeroed[i] = m.zeroed(circuit.NodeID(i), &p.grids[i])
			}
		}
		want, err := reference.New(m.g, zeroed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		m.same(t, evaluator(t, c), want)
		before, after := circuit.Count(m.g), circuit.Count(c.Graph)
		if after.SumEdges > before.SumEdges {
			t.Errorf("seed %d: %d edges of %d", seed, after.SumEdges, before.SumEdges)
		}
		if after.SumEdges < before.SumEdges {
			smaller++
		}
		for i, from := range p.from {
			if c.Graph.Nodes[i].Units < m.g.Nodes[from].Units {
				fewerUnits++
				break
			}
		}
	}
	if smaller < seeds*2/3 || fewerUnits < seeds/5 {
		t.Errorf("%d circuits became smaller, %d lost units of a node; the test shows too little", smaller, fewerUnits)
	}
}

// pruned returns the state of Prune after it.
func pruned(t *testing.T, m *model, size int, keep float64) *pruner {
	t.Helper()
	p := &pruner{g: m.g, params: m.param, size: size, grids: make([]grid, len(m.g.Nodes)), alike: alike(m.g)}
	if _, err := p.choose(m.flow, PruneOptions{Keep: keep}); err != nil {
		t.Fatal(err)
	}
	p.rebuild()
	return p
}

// zeroed returns the weights of a sum with 0 for those outside a grid, normalised. Units without any in it keep theirs: no
// weight leads to them.
func (m *model) zeroed(id circuit.NodeID, w *grid) []float64 {
	n, old := &m.g.Nodes[id], m.params[id]
	left := make([]float64, len(old))
	sums, exist := make([]float64, n.Units), make([][]int, n.Units)
	for _, b := range w.blocks {
		w.each(b, func(r, _, at int) {
			if n.Edges == nil || n.Edges.Has(at) {
				u := int(b.row)*w.rows + r
				left[at] = old[at]
				sums[u] += old[at]
				exist[u] = append(exist[u], at)
			}
		})
	}
	whole := gridOf(m.g, id, 1)
	for _, b := range whole.blocks {
		whole.each(b, func(r, _, at int) {
			if exist[int(b.row)*whole.rows+r] == nil {
				left[at] = old[at]
			}
		})
	}
	for u, places := range exist {
		for _, at := range places {
			if left[at] /= sums[u]; sums[u] == 0 {
				left[at] = 1 / float64(len(places))
			}
		}
	}
	return left
}

// mixture returns a circuit of two variables: a root over k products of two categorical inputs.
func mixture(k int) *circuit.Graph {
	leaf := circuit.Categorical{Categories: 3}
	return &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: k, Var: 0, Leaf: leaf},
		{Kind: circuit.Input, Units: k, Var: 1, Leaf: leaf},
		{Kind: circuit.Product, Units: k, Children: []circuit.NodeID{0, 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
}

// TestPruneKeepsTheMost prunes a mixture, whose components with the most flow must stay, and no other.
func TestPruneKeepsTheMost(t *testing.T) {
	m := (&model{g: mixture(12)}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	m.flows.Params[3] = []float64{5, 0, 1, 9, 2, 2, 8, 0, 0, 0, 7, 3}
	for _, test := range []struct {
		keep  float64
		block int
		want  []int // components
		flow  float64
	}{
		{0.25, 1, []int{3, 6, 10}, 24. / 37},
		{0.33, 1, []int{3, 6, 10}, 24. / 37}, // of four weights there is not room for the last
		{0.34, 1, []int{0, 3, 6, 10}, 29. / 37},
		{0.01, 1, []int{3}, 9. / 37}, // a unit keeps a weight
		{0.5, 2, []int{2, 3, 6, 7, 10, 11}, 28. / 37},
		{0.34, 4, []int{0, 1, 2, 3}, 15. / 37},
		{1, 4, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 1},
	} {
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: test.keep, Block: test.block})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(c.Flow-test.flow) > 1e-15 {
			t.Errorf("keep %v in blocks of %d: flow %v, want %v", test.keep, test.block, c.Flow, test.flow)
		}
		got, want := make([]float64, 3*len(test.want)), []float64(nil)
		if units := c.Graph.Nodes[0].Units; units != len(test.want) {
			t.Fatalf("keep %v in blocks of %d: %d units, want %d", test.keep, test.block, units, len(test.want))
		}
		for _, k := range test.want {
			want = append(want, m.params[0][3*k:3*k+3]...)
		}
		if err := c.Params(0, got); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("keep %v in blocks of %d: leaves %v, want %v", test.keep, test.block, got, want)
			}
		}
	}
}

// TestPruneRoot keeps the weights of a root that are not to go, those without flow as well, and counts them as kept.
func TestPruneRoot(t *testing.T) {
	m := (&model{g: mixture(12)}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	m.flows.Params[3] = []float64{5, 0, 1, 9, 2, 2, 8, 0, 0, 0, 7, 3}
	for _, keep := range []float64{0.01, 0.5, 1} {
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: keep, Block: 1, Root: true})
		if err != nil {
			t.Fatal(err)
		}
		if units := c.Graph.Nodes[0].Units; units != 12 || c.Flow != 1 {
			t.Errorf("keep %v: %d units and a flow of %v, want all", keep, units, c.Flow)
		}
	}
}

// TestPruneZeros prunes a mixture to components of which no weight is above 0, or one is.
func TestPruneZeros(t *testing.T) {
	m := (&model{g: mixture(4)}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	m.flows.Params[3] = []float64{2, 0, 1, 0}
	for _, test := range []struct{ weights, want []float64 }{
		{[]float64{0, 0.5, 0, 0.5}, []float64{0.5, 0.5}},
		{[]float64{0, 0.5, 0.25, 0.25}, []float64{0, 1}},
	} {
		m.params[3] = test.weights
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: 0.5, Block: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, 2)
		if err := c.Params(c.Graph.Root, got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("of the weights %v are left %v, want %v", test.weights, got, test.want)
		}
	}
}

// TestPruneFlow holds the flow that is said to be kept to the weights that are left, shared ones once.
func TestPruneFlow(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 45
	}
	for seed := range seeds {
		m := random(t, seed, reference.RandomOptions{MaxUnits: 16})
		size, keep := 1<<(seed%3), []float64{0.05, 0.3, 0.7}[seed%3]
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: keep, Block: size})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p := pruned(t, m, size, keep)
		var kept, total float64
		for i, from := range p.from {
			if id := circuit.NodeID(i); p.graph.Nodes[i].Kind == circuit.Sum && p.graph.OwnsParams(id) {
				flow := m.flows.Params[m.g.Owner(from)]
				w, _ := p.left(from)
				for _, b := range w.blocks {
					w.each(b, func(_, _, at int) { kept += flow[at] })
				}
			}
		}
		for i, flow := range m.flows.Params {
			if m.g.Nodes[i].Kind == circuit.Sum {
				for _, x := range flow {
					total += x
				}
			}
		}
		if total > 0 && !(math.Abs(c.Flow-kept/total) < 1e-12) {
			t.Errorf("seed %d: %v of the flow is said to be kept, and %v is", seed, c.Flow, kept/total)
		}
	}
}

// TestPruneSpends prunes chains of sums, where units that nothing leads to any more have weights with more flow than others:
// those make room for weights of units that stay.
func TestPruneSpends(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 6, Latents: 16, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }})
	if err != nil {
		t.Fatal(err)
	}
	m := (&model{g: g}).fill(t, rand.New(rand.NewPCG(2, 1)), 3)
	for _, keep := range []float64{0.1, 0.29, 0.5, 0.9} {
		for _, block := range []int{1, 4} {
			c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: keep, Block: block})
			if err != nil {
				t.Fatal(err)
			}
			before, after := circuit.Count(g).SumEdges, circuit.Count(c.Graph).SumEdges
			if most := int64(keep * float64(before)); after > most || after <= most-int64(block*block) {
				t.Errorf("keep %v in blocks of %d: %d weights are left, want %d", keep, block, after, most)
			}
		}
	}
}

// TestPruneShare prunes a mixture whose components are alike, beside a sum that the root does not reach: of 100 weights the
// share that was asked for is left.
func TestPruneShare(t *testing.T) {
	g := mixture(100)
	g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Sum, Units: 7, Children: []circuit.NodeID{0}})
	m := (&model{g: g}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	for i := range m.flows.Params[3] {
		m.flows.Params[3][i] = 1
	}
	for keep := 1; keep <= 100; keep++ {
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: float64(keep) / 100, Block: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Graph.Nodes[0].Units; got != keep || len(c.Graph.Nodes) != 4 {
			t.Errorf("keep %d %%: %d components in %d nodes are left", keep, got, len(c.Graph.Nodes))
		}
	}
}

// TestPruneUnreached: weights that the root does not reach are none of those of which a share stays.
func TestPruneUnreached(t *testing.T) {
	m := (&model{g: &circuit.Graph{NumVars: 1, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 8, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Sum, Units: 2, Children: []circuit.NodeID{0}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{1}, Edges: &circuit.Edges{Rows: 1, Cols: 1, Pairs: [][2]int32{{0, 0}}}},
	}}}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: 0.5, Block: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := circuit.Count(c.Graph).SumEdges; got != 4 {
		t.Errorf("%d weights are left, want half of the 9 that are reached", got)
	}
	clear(m.flows.Params[1])
	clear(m.flows.Params[2])
	if c, err = Prune(m.g, m.param, m.flow, PruneOptions{Keep: 0.5, Block: 1}); err != nil || c.Flow != 1 {
		t.Errorf("without flow, %v of it is kept, want 1; %v", c.Flow, err)
	}
}

// TestPruneSharedNodes prunes an HMM, whose steps share their weights: all steps keep the same units.
func TestPruneSharedNodes(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 5, Latents: 16, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }, Tied: true})
	if err != nil {
		t.Fatal(err)
	}
	m := (&model{g: g}).fill(t, rand.New(rand.NewPCG(2, 1)), 3)
	for _, block := range []int{1, 4} {
		c, err := Prune(m.g, m.param, m.flow, PruneOptions{Keep: 0.3, Block: block})
		if err != nil {
			t.Fatal(err)
		}
		evaluator(t, c)
		before, after := circuit.Count(g), circuit.Count(c.Graph)
		if share := float64(after.SumEdges) / float64(before.SumEdges); share > 0.35 {
			t.Errorf("blocks of %d: %v of the edges are left", block, share)
		}
		owners := func(g *circuit.Graph) (n int) {
			for i := range g.Nodes {
				if g.OwnsParams(circuit.NodeID(i)) {
					n++
				}
			}
			return n
		}
		if got, want := owners(c.Graph), owners(g); got != want {
			t.Errorf("blocks of %d: %d nodes have parameters of their own, want %d", block, got, want)
		}
		for i := range c.Graph.Nodes {
			n := &c.Graph.Nodes[i]
			if to := n.Tie.Node(); to != circuit.None && n.Kind == circuit.Sum && n.Edges != c.Graph.Nodes[to].Edges {
				t.Errorf("node %d has edge blocks of its own", i)
			}
		}
	}
}

// TestOptions refuses what cannot work.
func TestOptions(t *testing.T) {
	m := random(t, 1, reference.RandomOptions{})
	for _, o := range []PruneOptions{{0, 1, false}, {-1, 1, false}, {1.1, 1, false}, {math.NaN(), 1, false}, {0.5, 0, false}, {0.5, 3, false}, {0.5, 2048, false}} {
		if _, err := Prune(m.g, m.param, m.flow, o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v, want ErrOptions", o, err)
		}
	}
	for _, noise := range []float64{-1, 11, math.NaN(), math.Inf(1)} {
		if _, err := Grow(m.g, m.param, GrowOptions{Noise: noise}); !errors.Is(err, ErrOptions) {
			t.Errorf("noise %v: %v, want ErrOptions", noise, err)
		}
	}
	broken := errors.New("broken")
	fails := func(circuit.NodeID, []float64) error { return broken }
	if _, err := Prune(m.g, m.param, fails, PruneOptions{Keep: 1, Block: 1}); !errors.Is(err, broken) {
		t.Errorf("flows that cannot be read: %v", err)
	}
	c, err := Prune(m.g, fails, m.flow, PruneOptions{Keep: 1, Block: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reference.Load64(c.Graph, c.Params); !errors.Is(err, broken) {
		t.Errorf("parameters that cannot be read: %v", err)
	}
}
