package circuit

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// sampleGraph is a valid graph with every feature. Nodes:
//
//	0,1  inputs of variable 0, 4 units; 1 is tied to 0
//	2    input of variable 1, 4 units
//	3    product of 0 and 2      4  product of 1 and 2
//	5    sum of 3 and 4: 2×2 blocks with a mask, 4 units
//	6    dense sum of 3 and 4, 4 units; 7 is tied to it
//	8    root over 5, 6 and 7
func sampleGraph() *Graph {
	cat := Categorical{Categories: 3}
	edges := &Edges{Rows: 2, Cols: 4, Pairs: [][2]int32{{0, 0}, {1, 0}, {1, 1}}, Mask: []uint64{0x00fff1}}
	return &Graph{NumVars: 2, Root: 8, Nodes: []Node{
		{Kind: Input, Units: 4, Var: 0, Leaf: cat},
		{Kind: Input, Units: 4, Var: 0, Leaf: cat, Tie: TieTo(0)},
		{Kind: Input, Units: 4, Var: 1, Leaf: Gaussian{}},
		{Kind: Product, Units: 4, Children: []NodeID{0, 2}},
		{Kind: Product, Units: 4, Children: []NodeID{1, 2}},
		{Kind: Sum, Units: 4, Children: []NodeID{3, 4}, Edges: edges},
		{Kind: Sum, Units: 4, Children: []NodeID{3, 4}},
		{Kind: Sum, Units: 4, Children: []NodeID{4, 3}, Tie: TieTo(6)},
		{Kind: Sum, Units: 1, Children: []NodeID{5, 6, 7}},
	}}
}

func TestValidate(t *testing.T) {
	other := func(f func(e *Edges)) func(g *Graph) {
		return func(g *Graph) { f(g.Nodes[5].Edges) }
	}
	leaves := func(first, second Leaf) func(g *Graph) { // of variable 0
		return func(g *Graph) { g.Nodes[0].Leaf, g.Nodes[1].Leaf, g.Nodes[1].Tie = first, second, Tie{} }
	}
	for _, tc := range []struct {
		name string
		edit func(g *Graph)
		text string // in the message; "" for a valid graph
	}{
		{"valid", func(*Graph) {}, ""},
		{"no mask", other(func(e *Edges) { e.Mask = nil }), ""},
		{"no nodes", func(g *Graph) { g.Nodes = nil }, "no nodes"},
		{"no variables", func(g *Graph) { g.NumVars = 0 }, "0 variables"},
		{"too many variables", func(g *Graph) { g.NumVars = MaxVars + 1 }, "variables"},
		{"root outside", func(g *Graph) { g.Root = 9 }, "root is 9"},
		{"root negative", func(g *Graph) { g.Root = -1 }, "root is -1"},
		{"root of many units", func(g *Graph) { g.Root = 6 }, "4 units; a root has one"},
		{"a pointer to no leaf", func(g *Graph) { g.Nodes[2].Leaf = (*Gaussian)(nil) }, "has no leaf"},
		{"no units", func(g *Graph) { g.Nodes[6].Units = 0 }, "0 units"},
		{"too many units", func(g *Graph) { g.Nodes[6].Units = MaxUnits + 1 }, "units"},
		{"unknown kind", func(g *Graph) { g.Nodes[6].Kind = 7 }, "kind 7"},
		{"child after parent", func(g *Graph) { g.Nodes[3].Children = []NodeID{0, 4} }, "node 4 as child 1"},
		{"child of itself", func(g *Graph) { g.Nodes[6].Children = []NodeID{6} }, "node 6 as child 0"},
		{"negative child", func(g *Graph) { g.Nodes[6].Children = []NodeID{3, -1} }, "node -1 as child 1"},
		{"negative child of a tied sum", func(g *Graph) { g.Nodes[7].Children = []NodeID{-5, 3} }, "node -5 as child 0"},
		{"sum without children", func(g *Graph) { g.Nodes[8].Children = nil }, "no children"},
		{"product without children", func(g *Graph) { g.Nodes[3].Children = nil }, "no children"},
		{"input with children", func(g *Graph) { g.Nodes[2].Children = []NodeID{0} }, "inputs have none"},
		{"input without leaf", func(g *Graph) { g.Nodes[2].Leaf = nil }, "no leaf"},
		{"sum with leaf", func(g *Graph) { g.Nodes[6].Leaf = Bernoulli{} }, "has a leaf"},
		{"variable outside", func(g *Graph) { g.Nodes[2].Var = 2 }, "variable 2 of 2"},
		{"impossible leaf", func(g *Graph) { g.Nodes[2].Leaf = Categorical{} }, "0 categories"},
		{"two domains", func(g *Graph) { g.Nodes[1].Leaf, g.Nodes[1].Tie = Categorical{Categories: 4}, Tie{} }, "one domain"},
		{"counts among real numbers", leaves(Gaussian{}, Poisson{}), "gives variable 0 counts and an earlier leaf real numbers"},
		{"real numbers among counts", leaves(Poisson{}, RealHistogram{Breaks: []float64{0, 1}}), "gives variable 0 real numbers and an earlier leaf counts"},
		{"codes among counts", leaves(Poisson{}, Bernoulli{}), "gives variable 0 2 codes and an earlier leaf counts"},
		{"a Gaussian and a histogram", leaves(Gaussian{}, RealHistogram{Breaks: []float64{0, 1}}), ""},
		{"a Gaussian and a log-normal", leaves(Gaussian{}, LogNormal{}), ""},
		{"product of unequal units", func(g *Graph) { g.Nodes[2].Units = 2 }, "child 2 has 2"},
		{"product with edges", func(g *Graph) { g.Nodes[3].Edges = g.Nodes[5].Edges }, "only sums"},
		{"tied product", func(g *Graph) { g.Nodes[4].Tie = TieTo(3) }, "products have no parameters"},
		{"tied to a later node", func(g *Graph) { g.Nodes[0].Tie = TieTo(1) }, "earlier node"},
		{"tied to itself", func(g *Graph) { g.Nodes[0].Tie = TieTo(0) }, "earlier node"},
		{"tied to a negative node", func(g *Graph) { g.Nodes[1].Tie = TieTo(-2) }, "earlier node"},
		{"tied to another kind", func(g *Graph) { g.Nodes[7].Tie = TieTo(4) }, "tied to product"},
		{"tied to a tied node", func(g *Graph) { g.Nodes[2].Leaf, g.Nodes[2].Tie = g.Nodes[0].Leaf, TieTo(1) }, "which is tied to 0"},
		{"tied input with children", func(g *Graph) { g.Nodes[1].Children = []NodeID{0} }, "inputs have none"},
		{"tied to another leaf", func(g *Graph) { g.Nodes[1].Leaf = Binomial{Trials: 2} }, "other leaves"},
		{"tied to other units", func(g *Graph) { g.Nodes[1].Units = 3 }, "3 units and is tied"},
		{"tied to other edges", func(g *Graph) { g.Nodes[7].Tie = TieTo(5) }, "other edge blocks"},
		{"tied to fewer children", func(g *Graph) { g.Nodes[7].Children = []NodeID{3} }, "1 children"},
		{"tied to children of other units", func(g *Graph) {
			g.Nodes = append(g.Nodes, Node{Kind: Sum, Units: 1, Children: []NodeID{8, 5}}, Node{Kind: Sum, Units: 1, Children: []NodeID{5, 8}, Tie: TieTo(9)})
			g.Root = 10
		}, "4 units in child 0"},
		{"blocks that do not divide", other(func(e *Edges) { e.Rows = 3 }), "blocks divide"},
		{"blocks of nothing", other(func(e *Edges) { e.Cols = 0 }), "blocks divide"},
		{"block outside", other(func(e *Edges) { e.Pairs[2] = [2]int32{1, 2} }), "keep it inside"},
		{"block negative", other(func(e *Edges) { e.Pairs[0] = [2]int32{0, -1} }), "keep it inside"},
		{"blocks unsorted", other(func(e *Edges) { e.Pairs[1], e.Pairs[2] = e.Pairs[2], e.Pairs[1] }), "list each once"},
		{"block twice", other(func(e *Edges) { e.Pairs[2] = e.Pairs[1] }), "list each once"},
		{"first row block empty", other(func(e *Edges) { e.Pairs, e.Mask = e.Pairs[1:], nil }), "row block 0"},
		{"last row block empty", other(func(e *Edges) { e.Pairs, e.Mask = e.Pairs[:1], nil }), "row block 1"},
		{"middle row block empty", other(func(e *Edges) { e.Rows, e.Mask = 1, nil; e.Pairs = [][2]int32{{0, 0}, {1, 0}, {3, 0}} }), "row block 2"},
		{"no blocks", other(func(e *Edges) { e.Pairs, e.Mask = nil, nil }), "row block"},
		{"mask too short", other(func(e *Edges) { e.Mask = []uint64{} }), "0 words"},
		{"mask too long", other(func(e *Edges) { e.Mask = append(e.Mask, 0) }), "2 words"},
		{"mask bits after the end", other(func(e *Edges) { e.Mask[0] |= 1 << 24 }), "mask bits after"},
		{"unit without weight", other(func(e *Edges) { e.Mask[0] &^= 0xf }), "no weight in unit 0"},
		{"not smooth", func(g *Graph) { g.Nodes[8].Children = []NodeID{5, 2} }, "not smooth"},
		{"not decomposable", func(g *Graph) { g.Nodes[4].Children = []NodeID{1, 0, 2} }, "not decomposable"},
		{"child twice", func(g *Graph) { g.Nodes[4].Children = []NodeID{2, 2} }, "not decomposable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := sampleGraph()
			tc.edit(g)
			err := Validate(g)
			if tc.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("Validate = %v; want ErrGraph with %q", err, tc.text)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "%!") {
				t.Errorf("message is not one clean line: %q", err)
			}
		})
	}
	if err := Validate(nil); !errors.Is(err, ErrGraph) {
		t.Errorf("Validate(nil) = %v", err)
	}
}

// BenchmarkValidate checks 8000 products over 784 variables and chains of
// 980,000 nodes.
func BenchmarkValidate(b *testing.B) {
	g := &Graph{NumVars: 784}
	add := func(n Node) NodeID {
		n.Units = 1
		g.Nodes = append(g.Nodes, n)
		return NodeID(len(g.Nodes) - 1)
	}
	var inputs, roots []NodeID
	for v := range 784 {
		inputs = append(inputs, add(Node{Kind: Input, Var: v, Leaf: Bernoulli{}}))
	}
	for range 8000 {
		roots = append(roots, add(Node{Kind: Product, Children: inputs}))
	}
	for range 312 {
		last := add(Node{Kind: Input, Leaf: Bernoulli{}})
		for v := 1; v < 784; v++ {
			leaf := add(Node{Kind: Input, Var: v, Leaf: Bernoulli{}})
			both := add(Node{Kind: Product, Children: []NodeID{last, leaf}})
			side := add(Node{Kind: Sum, Children: []NodeID{both}})
			last = add(Node{Kind: Sum, Children: []NodeID{both, side}})
		}
		roots = append(roots, last)
	}
	g.Root = add(Node{Kind: Sum, Children: roots})
	for b.Loop() {
		if err := Validate(g); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(g.Nodes)), "nodes")
}

// BenchmarkInitParams starts one dense sum.
func BenchmarkInitParams(b *testing.B) {
	g := sampleGraph()
	g.Nodes[6].Units = 1 << 17
	dst := make([]float32, g.NumParams(6))
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		if err := InitParams(g, 6, 1, nil, dst); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzValidate builds graphs from bytes: nothing panics, and what Validate lets
// through can be counted, started and examined.
func FuzzValidate(f *testing.F) {
	in0, in1 := []byte{0, 2, 0, 0, 0, 0, 3}, []byte{0, 2, 0, 1, 0, 1, 0, 4} // categorical, histogram
	and := []byte{1, 2, 0, 0, 2, 0, 1, 0}
	or := []byte{2, 2, 0, 0, 1, 2, 3, 1, 2, 2, 0, 0, 1, 0, 0x0e, 0} // two blocks with a mask
	tied := []byte{2, 2, 4, 0, 1, 2, 3, 1, 2, 2, 0, 0, 1, 0, 0x0e, 0}
	root := []byte{2, 1, 0, 0, 2, 3, 4, 0}
	for _, parts := range [][][]byte{{{2}, in0, in1, and, or, tied, root}, {{1}, {0, 1, 0, 0, 0, 0, 2}}} {
		seed := slices.Concat(parts...)
		if err := Validate(graphFromBytes(seed)); err != nil {
			f.Fatalf("seed %v: %v", seed, err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g := graphFromBytes(data)
		if err := Validate(g); err != nil {
			if !errors.Is(err, ErrGraph) {
				t.Fatalf("%v does not match ErrGraph", err)
			}
			Properties(g)
			return
		}
		if p := Properties(g); !p.Smooth || !p.Decomposable {
			t.Fatalf("valid, but %+v", p)
		}
		stats := Count(g)
		if stats.Nodes() < 1 {
			t.Fatalf("counts %+v", stats)
		}
		for i := range g.Nodes {
			if id := NodeID(i); g.OwnsParams(id) {
				p := make([]float32, g.NumParams(id))
				if err := InitParams(g, id, 1, nil, p); err != nil {
					t.Fatal(err)
				}
				if err := CheckParams(g, id, p); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// graphFromBytes reads small signed numbers, one a byte.
func graphFromBytes(data []byte) *Graph {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := int8(data[0])
		data = data[1:]
		return int(b)
	}
	g := &Graph{NumVars: next()}
	for len(data) > 0 && len(g.Nodes) < 50 {
		n := Node{Kind: Kind(next()), Units: next(), Tie: TieTo(NodeID(next() - 1)), Var: next()}
		for range next() & 3 {
			n.Children = append(n.Children, NodeID(next()))
		}
		switch k := next(); {
		case n.Kind == Input && k&1 == 0:
			n.Leaf = Categorical{Categories: next()}
		case n.Kind == Input:
			n.Leaf = Histogram{Edges: []int{next(), next()}}
		case k&1 == 1:
			n.Edges = &Edges{Rows: next(), Cols: next()}
			for range next() & 7 {
				n.Edges.Pairs = append(n.Edges.Pairs, [2]int32{int32(next()), int32(next())})
			}
			if k&2 != 0 {
				n.Edges.Mask = []uint64{binary.LittleEndian.Uint64(append([]byte{byte(next()), byte(next())}, make([]byte, 6)...))}
			}
		}
		g.Nodes = append(g.Nodes, n)
	}
	g.Root = NodeID(len(g.Nodes) - 1)
	return g
}

// TestTie: a literal that says nothing of a tie has parameters of its own, and
// every node can be named, the first one as well.
func TestTie(t *testing.T) {
	for _, id := range []NodeID{0, 1, math.MaxInt32, -2, math.MinInt32} {
		if tie := TieTo(id); tie.Node() != id || tie == (Tie{}) {
			t.Errorf("the tie to node %d is %+v, to node %d", id, tie, tie.Node())
		}
	}
	if TieTo(None) != (Tie{}) || (Tie{}).Node() != None {
		t.Error("no tie names a node")
	}
	g := &Graph{NumVars: 1, Root: 2, Nodes: []Node{
		{Kind: Input, Units: 2, Leaf: Bernoulli{}},
		{Kind: Input, Units: 2, Leaf: Bernoulli{}, Tie: TieTo(0)},
		{Kind: Sum, Units: 1, Children: []NodeID{0, 1}},
	}}
	if err := Validate(g); err != nil {
		t.Fatal(err)
	}
	for id, want := range []struct {
		owns  bool
		owner NodeID
	}{{true, 0}, {false, 0}, {true, 2}} {
		if id := NodeID(id); g.OwnsParams(id) != want.owns || g.Owner(id) != want.owner {
			t.Errorf("node %d owns parameters: %t, uses those of %d; want %+v", id, g.OwnsParams(id), g.Owner(id), want)
		}
	}
}
