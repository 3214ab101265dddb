package resize

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestGrow grows random circuits without noise, which must not change what they say, and with noise,
// which must.
func TestGrow(t *testing.T) {
	for seed := range uint64(30) {
		m := random(t, seed, reference.RandomOptions{MaxUnits: 12})
		want, err := reference.New(m.g, m.params)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Grow(m.g, m.param, GrowOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.same(t, evaluator(t, c), want)
		sets := alike(m.g)
		for i := range m.g.Nodes {
			times := 2
			if sets[i] == sets[m.g.Root] {
				times = 1
			}
			if got, want := c.Graph.Nodes[i].Units, times*m.g.Nodes[i].Units; got != want {
				t.Errorf("seed %d: node %d has %d units, want %d", seed, i, got, want)
			}
		}
		edges := func(g *circuit.Graph, times func(node, child circuit.NodeID) int) (n int) {
			for i := range g.Nodes {
				id, sum := circuit.NodeID(i), &g.Nodes[i]
				if sum.Kind != circuit.Sum {
					continue
				}
				w, has := gridOf(g, id, 1), has(sum)
				child := childOf(g, sum, &w)
				for _, b := range w.blocks {
					if has(b.at) {
						k, _ := child(b.col)
						n += times(id, sum.Children[k])
					}
				}
			}
			return n
		}
		twice := func(id circuit.NodeID) int { return c.Graph.Nodes[id].Units / m.g.Nodes[id].Units }
		whole := edges(m.g, func(node, child circuit.NodeID) int { return twice(node) * twice(child) })
		if got := edges(c.Graph, func(_, _ circuit.NodeID) int { return 1 }); got != whole {
			t.Errorf("seed %d: %d edges, want %d: each for both copies of its units", seed, got, whole)
		}
		noisy, err := Grow(m.g, m.param, GrowOptions{Noise: 0.5, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		evaluator(t, noisy)
	}
}

// TestGrowUnevenly grows a sum of which one child stays as it is, since it shares its parameters with
// a factor of the root.
func TestGrowUnevenly(t *testing.T) {
	leaf := circuit.Categorical{Categories: 3}
	g := &circuit.Graph{NumVars: 2, Root: 4, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: leaf},
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: leaf, Tie: circuit.TieTo(0)},
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: leaf},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{1, 2}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 3}},
	}}
	m := (&model{g: g}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	want, err := reference.New(g, m.params)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Grow(g, m.param, GrowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := []int{c.Graph.Nodes[1].Units, c.Graph.Nodes[2].Units, c.Graph.Nodes[3].Units}; !slices.Equal(got, []int{1, 2, 1}) {
		t.Errorf("units %v, want 1, 2 and 1", got)
	}
	m.same(t, evaluator(t, c), want)
}

// TestGrowNoise holds the noise to its size and its seed.
func TestGrowNoise(t *testing.T) {
	m := (&model{g: mixture(2000)}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	for i := range m.params[3] {
		m.params[3][i] = 1. / 2000
	}
	read := func(seed uint64) []float64 {
		c, err := Grow(m.g, m.param, GrowOptions{Noise: 0.3, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		p := make([]float64, 4000)
		if err := c.Params(3, p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, again, other := read(1), read(1), read(2)
	var mean, square float64
	differ := 0
	for i, x := range p {
		if x != again[i] {
			t.Fatal("one seed gives two circuits")
		}
		if x != other[i] {
			differ++
		}
		mean += math.Log(x) / 4000
		square += math.Log(x) * math.Log(x) / 4000
	}
	if sigma := math.Sqrt(square - mean*mean); math.Abs(sigma-0.3) > 0.02 || differ < 3990 {
		t.Errorf("logarithms of the weights have the deviation %v, want 0.3; %d differ under another seed", sigma, differ)
	}
}

// TestGrowTiny grows a sum with so much noise that weights fall below all that float32 has: those that were positive are as
// large as updates leave them, and those that were 0 stay.
func TestGrowTiny(t *testing.T) {
	m := (&model{g: mixture(2000)}).fill(t, rand.New(rand.NewPCG(1, 1)), 1)
	for i := range m.params[3] {
		m.params[3][i] = []float64{0, 1e-3 - 1e-33, 1e-33, 1e-33 / 3}[i%4] * 2
	}
	c, err := Grow(m.g, m.param, GrowOptions{Noise: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	evaluator(t, c)
	p := make([]float64, 4000)
	if err := c.Params(3, p); err != nil {
		t.Fatal(err)
	}
	for i, x := range p {
		if old := m.params[3][i%2000]; (old > 0) != (x >= circuit.MinProb) || (old == 0) != (x == 0) {
			t.Fatalf("weight %d of %v becomes %v", i, old, x)
		}
	}
}
