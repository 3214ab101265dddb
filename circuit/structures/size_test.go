package structures

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

func pixels(int) circuit.Leaf { return circuit.Categorical{Categories: 256} }

func hclt784(m int) (*circuit.Graph, error) {
	tree, err := RandomTreeInner(784, 604, 7)
	if err != nil {
		return nil, err
	}
	return HCLT(tree, HCLTOptions{Latents: m, Leaf: pixels})
}

func hmm32(m int) (*circuit.Graph, error) {
	return HMM(HMMOptions{Length: 32, Latents: m, Tied: true, Leaf: pixels})
}

func rat784(m int) (*circuit.Graph, error) {
	o := DefaultRATSPN()
	o.Vars, o.Latents, o.Leaf, o.Seed = 784, m, pixels, 3
	return RATSPN(o)
}

func pd28Options(m int) PDOptions {
	o := DefaultPD()
	o.Shape, o.Latents, o.Leaf, o.Seed = [3]int{28, 28, 1}, m, pixels, 3
	return o
}

func pd28(m int) (*circuit.Graph, error) { return PD(pd28Options(m)) }

// benchmarks are the structures of Table 1 of Liu, Ahmed, Van den Broeck, ICML
// 2024, with the sizes that they must have.
var benchmarks = []struct {
	name         string
	latents      []int
	build        func(m int) (*circuit.Graph, error)
	nodes, edges func(m int64) int64
}{
	{"rat-spn", []int{64, 128, 256, 512, 1024}, rat784,
		func(m int64) int64 { return 908*m + 1 }, func(m int64) int64 { return 124*m*m + 1694*m }},
	{"hclt", []int{64, 128, 256, 512, 1024}, hclt784,
		func(m int64) int64 { return 1387*m + 1 }, func(m int64) int64 { return 603*m*m + 1388*m }},
	{"hmm", []int{512, 1024, 2048, 4096, 6144}, hmm32,
		func(m int64) int64 { return 63*m + 1 }, func(m int64) int64 { return 31*m*m + 63*m }},
	{"pd", []int{64, 128, 256, 512, 768}, pd28,
		func(m int64) int64 { return 1567*m + 1 }, func(m int64) int64 { return 3121*m*m + 7068*m }},
}

func TestSizes(t *testing.T) {
	for _, s := range benchmarks {
		for _, m := range s.latents {
			t.Run(fmt.Sprintf("structure=%s/latents=%d", s.name, m), func(t *testing.T) {
				g, err := s.build(m)
				if err != nil {
					t.Fatal(err)
				}
				if err := circuit.Validate(g); err != nil {
					t.Fatal(err)
				}
				got, nodes, edges := circuit.Count(g), s.nodes(int64(m)), s.edges(int64(m))
				if got.Nodes() != nodes || got.Edges() != edges {
					t.Errorf("%d nodes and %d edges, want %d and %d", got.Nodes(), got.Edges(), nodes, edges)
				}
				if reached := circuit.Reachable(g); slices.Contains(reached, false) {
					t.Error("a node is out of the root's reach")
				}
			})
		}
	}
}

func TestPublishedPDSize(t *testing.T) {
	for _, m := range []int{64, 128, 256, 512, 768} {
		nodes, edges, err := PublishedPDSize(pd28Options(m))
		if err != nil {
			t.Fatal(err)
		}
		if want, wantEdges := int64(2687*m+1), int64(3072*m*m+46716*m); nodes != want || edges != wantEdges {
			t.Errorf("latents=%d: %d nodes and %d edges, want %d and %d", m, nodes, edges, want, wantEdges)
		}
	}
	// Blocks smaller than 32: the sums of 1,120 products that are lifted and of 49 cells have so many edges fewer for a latent.
	for m, block := range map[int]int64{1: 1, 6: 2, 16: 16, 32: 16, 40: 8, 48: 16, 96: 32} {
		_, edges, err := PublishedPDSize(pd28Options(m))
		if err != nil {
			t.Fatal(err)
		}
		if m := int64(m); edges != 3072*m*m+46716*m-1169*m*(32-block) {
			t.Errorf("latents=%d: %d edges, want %d", m, edges, 3072*m*m+46716*m-1169*m*(32-block))
		}
	}
	// One cell: no splits, nothing to lift, the root sees one product.
	nodes, edges, err := PublishedPDSize(PDOptions{Shape: [3]int{2, 2, 1}, SplitInterval: 2, MaxProductBlocks: 8, Latents: 3})
	if err != nil || nodes != 4*3+1 || edges != 4*3+3 {
		t.Errorf("one cell: %d nodes, %d edges, %v; want 13, 15", nodes, edges, err)
	}
}

// TestTied checks that homogeneous steps share their parameters with the last
// step, and that an untied model owns all of them.
func TestTied(t *testing.T) {
	for _, tied := range []bool{true, false} {
		g, err := HMM(HMMOptions{Length: 9, Latents: 5, Tied: tied, Leaf: pixels})
		if err != nil {
			t.Fatal(err)
		}
		owned := map[circuit.Kind]int{}
		for id, n := range g.Nodes {
			if g.OwnsParams(circuit.NodeID(id)) {
				owned[n.Kind]++
			}
		}
		// With the root's, a tied model has two sets of weights.
		want := map[circuit.Kind]int{circuit.Input: 1, circuit.Sum: 2}
		if !tied {
			want = map[circuit.Kind]int{circuit.Input: 9, circuit.Sum: 9}
		}
		if owned[circuit.Input] != want[circuit.Input] || owned[circuit.Sum] != want[circuit.Sum] {
			t.Errorf("tied=%v: own parameters %v, want %v", tied, owned, want)
		}
	}
}

// TestPDProducts checks that no product of a PD circuit is left unused and that
// no block of a sum takes more than it may, unless it must.
func TestPDProducts(t *testing.T) {
	for _, tc := range []struct {
		latents, most, wantMost int
		shape                   [3]int
	}{
		{64, 8, 8, [3]int{28, 28, 1}},
		{64, 2, 6, [3]int{28, 28, 1}}, // two blocks for 11 products
		{32, 8, 11, [3]int{28, 28, 1}},
		{24, 8, 11, [3]int{28, 28, 1}},
		{96, 3, 4, [3]int{25, 30, 3}}, // three blocks for 12 products
	} {
		o := pd28Options(tc.latents)
		o.MaxProductBlocks, o.Shape = tc.most, tc.shape
		g, err := PD(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := circuit.Validate(g); err != nil {
			t.Fatal(err)
		}
		used, most := make([]bool, len(g.Nodes)), 0
		for id, n := range g.Nodes {
			if n.Kind != circuit.Sum || n.Edges == nil {
				for _, c := range n.Children {
					used[c] = true
				}
				if n.Kind == circuit.Sum && circuit.NodeID(id) != g.Root {
					most = max(most, len(n.Children))
				}
				continue
			}
			taken := map[[2]int32]int{} // units of a product that a block takes
			for _, p := range n.Edges.Pairs {
				product := p[1] * int32(n.Edges.Cols) / int32(tc.latents)
				taken[[2]int32{p[0], product}] += n.Edges.Cols
				used[n.Children[product]] = true
			}
			perBlock := make([]int, n.Units/n.Edges.Rows)
			for k, units := range taken {
				if units != tc.latents {
					t.Errorf("latents=%d: block %d takes %d units of product %d", tc.latents, k[0], units, k[1])
				}
				perBlock[k[0]]++
			}
			most = max(most, slices.Max(perBlock))
		}
		if most != tc.wantMost {
			t.Errorf("latents=%d max=%d: a block takes %d products, want %d", tc.latents, tc.most, most, tc.wantMost)
		}
		if i := slices.Index(used[:len(used)-1], false); i >= 0 {
			t.Errorf("latents=%d max=%d: nothing uses node %d", tc.latents, tc.most, i)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, s := range benchmarks {
		m := s.latents[len(s.latents)-1]
		b.Run(fmt.Sprintf("structure=%s/latents=%d", s.name, m), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.build(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
