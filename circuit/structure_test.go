package circuit

import (
	"errors"
	"math"
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	got := Count(sampleGraph())
	want := Stats{
		InputUnits: 12, ProductUnits: 8, SumUnits: 13,
		SumEdges:     13 + 32 + 32 + 12, // 13 bits of the mask, two dense sums, the root
		ProductEdges: 16,
		SumParams:    13 + 32 + 12,
		InputParams:  4*3 + 4*2,
		Depth:        4,
	}
	if got != want {
		t.Errorf("Count = %+v, want %+v", got, want)
	}
	if got.Nodes() != 25 || got.Edges() != 105 || got.Params() != 77 {
		t.Errorf("%d nodes, %d edges, %d parameters", got.Nodes(), got.Edges(), got.Params())
	}
	g := sampleGraph()
	g.Nodes[8].Children = []NodeID{5, 7} // node 6 is out of reach, its parameters are not
	got = Count(g)
	if got.SumUnits != 9 || got.SumEdges != 13+32+8 || got.SumParams != 13+32+8 {
		t.Errorf("without node 6: %+v", got)
	}
}

// TestCountHMM counts the table's homogeneous HMM of length 32.
func TestCountHMM(t *testing.T) {
	const length, m = 32, 5
	g := &Graph{NumVars: length}
	add := func(n Node) NodeID {
		g.Nodes = append(g.Nodes, n)
		return NodeID(len(g.Nodes) - 1)
	}
	emission, transition, last := None, None, None
	for v := range length {
		x := add(Node{Kind: Input, Units: m, Var: v, Leaf: Categorical{Categories: 10}, Tie: TieTo(emission)})
		if v == 0 {
			emission, last = x, x
			continue
		}
		s := add(Node{Kind: Sum, Units: m, Children: []NodeID{last}, Tie: TieTo(transition)})
		if v == 1 {
			transition = s
		}
		last = add(Node{Kind: Product, Units: m, Children: []NodeID{s, x}})
	}
	g.Root = add(Node{Kind: Sum, Units: 1, Children: []NodeID{last}})
	if err := Validate(g); err != nil {
		t.Fatal(err)
	}
	s := Count(g)
	if s.Nodes() != 63*m+1 || s.Edges() != 31*m*m+63*m || s.Params() != m*m+m+10*m {
		t.Errorf("%d nodes, %d edges, %d parameters", s.Nodes(), s.Edges(), s.Params())
	}
	if p := Properties(g); !p.StructuredDecomposable || p.Deterministic || !p.TotalScope {
		t.Errorf("%+v", p)
	}
}

func TestScopes(t *testing.T) {
	g := &Graph{NumVars: 500, Root: 4, Nodes: []Node{
		{Kind: Input, Units: 1, Var: 3, Leaf: Bernoulli{}},
		{Kind: Input, Units: 1, Var: 470, Leaf: Bernoulli{}},
		{Kind: Product, Units: 1, Children: []NodeID{0, 1}},
		{Kind: Product, Units: 1, Children: []NodeID{1, 0}},
		{Kind: Sum, Units: 1, Children: []NodeID{2, 3}},
	}}
	s, err := ScopesOf(g)
	if err != nil {
		t.Fatal(err)
	}
	if s.Distinct() != 3 || s.Number(2) != s.Number(4) || s.Number(2) != s.Number(3) {
		t.Errorf("%d distinct scopes, numbers %v; equal scopes are shared", s.Distinct(), s.nodes)
	}
	root := s.Of(4)
	if !slices.Equal(root.Vars(), []int{3, 470}) || root.Len() != 2 || !root.Has(470) || root.Has(4) || root.Has(499) {
		t.Errorf("root scope %v", root)
	}
	if !root.Overlaps(s.Of(1)) || s.Of(0).Overlaps(s.Of(1)) || s.Of(1).Has(3) {
		t.Error("scopes 3 and 470 are disjoint, the root has both")
	}
	g.Nodes[4].Children = []NodeID{2, 0} // not smooth: the union
	if s, err = ScopesOf(g); err != nil || s.Number(4) != s.Number(2) {
		t.Errorf("scope of a sum is the union: %v, %v", s, err)
	}
}

// TestScopesOfOneWord wants variables of the same 64 to be told apart.
func TestScopesOfOneWord(t *testing.T) {
	g := &Graph{NumVars: 2, Root: 2, Nodes: []Node{
		{Kind: Input, Units: 1, Var: 0, Leaf: Bernoulli{}}, {Kind: Input, Units: 1, Var: 1, Leaf: Bernoulli{}},
		{Kind: Product, Units: 1, Children: []NodeID{0, 1}},
	}}
	s, err := ScopesOf(g)
	if err != nil {
		t.Fatal(err)
	}
	if s.Of(0).Overlaps(s.Of(1)) || !s.Of(0).Overlaps(s.Of(2)) || !s.Of(2).Overlaps(s.Of(1)) {
		t.Errorf("%v, %v and %v overlap as they should not", s.Of(0), s.Of(1), s.Of(2))
	}
}

func TestProperties(t *testing.T) {
	ind := func(v, x int) Node {
		return Node{Kind: Input, Units: 1, Var: v, Leaf: Indicator{Domain: 2, Value: x}}
	}
	and := func(c ...NodeID) Node { return Node{Kind: Product, Units: 1, Children: c} }
	or := func(c ...NodeID) Node { return Node{Kind: Sum, Units: 1, Children: c} }
	literals := []Node{ind(0, 0), ind(0, 1), ind(1, 0), ind(1, 1), ind(2, 0), ind(2, 1)} // 0..5
	for _, tc := range []struct {
		name  string
		nodes []Node
		want  Props
	}{
		{"exclusive or", []Node{and(0, 3), and(1, 2), or(6, 7)}, Props{true, true, false, true, true}},
		{
			// (x0 xor x1)·x2 + (x0 xnor x1)·!x2: the proof goes through the sums.
			"two sums", []Node{
				and(0, 3), and(1, 2), or(6, 7), and(0, 2), and(1, 3), or(9, 10), // 6..11
				and(8, 5), and(11, 5), or(12, 13),
			}, Props{true, true, true, true, true},
		},
		{"same term twice", []Node{and(0, 3), and(0, 3), or(6, 7)}, Props{true, true, false, false, true}},
		{"same value twice", []Node{ind(0, 1), or(1, 6)}, Props{true, true, false, false, true}},
		{"free variable", []Node{and(0, 3), or(0, 1), and(7, 2), or(6, 8)}, Props{true, true, false, true, true}},
		{
			"two splits", []Node{and(0, 2), and(6, 4), and(3, 5), and(1, 8), or(7, 9)}, // (01)2 and 0(12)
			Props{true, true, true, true, false},
		},
		{"not smooth", []Node{or(0, 3)}, Props{false, true, false, false, false}},
		{"not decomposable", []Node{and(0, 1)}, Props{true, false, false, true, false}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := &Graph{NumVars: 3, Nodes: append(slices.Clone(literals), tc.nodes...)}
			g.Root = NodeID(len(g.Nodes) - 1)
			if got := Properties(g); got != tc.want {
				t.Errorf("Properties = %+v, want %+v", got, tc.want)
			}
		})
	}
	masked := sampleGraph()
	one := &Edges{Rows: 4, Cols: 8, Pairs: [][2]int32{{0, 0}}, Mask: []uint64{0x80402001}}
	masked.Nodes = append(masked.Nodes[:5:5], Node{Kind: Sum, Units: 4, Children: []NodeID{3, 4}, Edges: one},
		Node{Kind: Sum, Units: 1, Children: []NodeID{5}, Edges: &Edges{Rows: 1, Cols: 1, Pairs: [][2]int32{{0, 2}}}})
	masked.Root = 6
	if err := Validate(masked); err != nil {
		t.Fatal(err)
	}
	if p := Properties(masked); !p.Deterministic {
		t.Errorf("one weight a unit: %+v", p)
	}
	one.Mask[0] |= 2
	if p := Properties(masked); p.Deterministic {
		t.Errorf("two weights into one child: %+v", p)
	}
	if p := Properties(&Graph{}); p != (Props{}) {
		t.Errorf("broken graph: %+v", p)
	}
}

func TestDomains(t *testing.T) {
	g := sampleGraph()
	g.NumVars = 3
	if got := Domains(g); !slices.Equal(got, []int{3, 0, -1}) {
		t.Errorf("Domains = %v", got)
	}
	if got := RootDomains(g); !slices.Equal(got, []int{3, 0, -1}) {
		t.Errorf("RootDomains = %v", got)
	}
	g.Nodes = append(g.Nodes, Node{Kind: Input, Units: 1, Var: 2, Leaf: Categorical{Categories: 4}})
	if got := Domains(g); !slices.Equal(got, []int{3, 0, 4}) {
		t.Errorf("with a leaf beside the root, Domains = %v", got)
	}
	if got := RootDomains(g); !slices.Equal(got, []int{3, 0, -1}) {
		t.Errorf("with a leaf beside the root, RootDomains = %v", got)
	}
}

func TestInitParams(t *testing.T) {
	g := sampleGraph()
	for i := range g.Nodes {
		id := NodeID(i)
		if !g.OwnsParams(id) {
			continue
		}
		start := func(seed uint64, id NodeID) []float32 {
			p := make([]float32, g.NumParams(id))
			if err := InitParams(g, id, seed, nil, p); err != nil {
				t.Fatal(err)
			}
			if err := CheckParams(g, id, p); err != nil {
				t.Fatal(err)
			}
			return p
		}
		a := start(1, id)
		if !slices.Equal(a, start(1, id)) {
			t.Errorf("node %d: equal seeds give different parameters", id)
		}
		if slices.Equal(a, start(2, id)) {
			t.Errorf("node %d: different seeds give equal parameters", id)
		}
		if id == 5 {
			for k, v := range a {
				if (v > 0) != g.Nodes[5].Edges.Has(k) {
					t.Errorf("weight %d is %v; the mask says %v", k, v, g.Nodes[5].Edges.Has(k))
				}
			}
		}
	}
	dense := make([]float32, 32)
	if err := InitParams(g, 6, 3, nil, dense); err != nil {
		t.Fatal(err)
	}
	for u := range 4 {
		sum, low, high := 0.0, math.Inf(1), 0.0
		for _, v := range dense[u*8 : u*8+8] {
			sum, low, high = sum+float64(v), min(low, float64(v)), max(high, float64(v))
		}
		// Each weight is rounded by at most 2^-24 of itself.
		if !near(sum, 1, 0x1p-24) || !(high <= low*7.39) || !(high > low) {
			t.Errorf("unit %d sums to %v, from %v to %v", u, sum, low, high)
		}
	}
	for _, tc := range []struct {
		id NodeID
		n  int
	}{{6, 31}, {7, 32}, {1, 12}, {3, 1}, {-1, 0}, {9, 0}} {
		if err := InitParams(g, tc.id, 1, nil, make([]float32, tc.n)); err == nil {
			t.Errorf("InitParams(%d) with %d places is allowed", tc.id, tc.n)
		}
	}
}

func TestCheckParamsRefuses(t *testing.T) {
	g := sampleGraph()
	for _, tc := range []struct {
		name string
		id   NodeID
		at   int
		to   float32
	}{
		{"dense row", 6, 3, 0.9}, {"negative", 6, 0, -0.1}, {"NaN", 6, 9, float32(math.NaN())},
		{"infinite", 5, 12, float32(math.Inf(1))}, {"masked out", 5, 1, 0.0001}, {"block row", 5, 12, 0.9},
		{"probability", 0, 4, 0.9}, {"sigma", 2, 3, 0},
	} {
		p := make([]float32, g.NumParams(tc.id))
		if err := InitParams(g, tc.id, 1, nil, p); err != nil {
			t.Fatal(err)
		}
		p[tc.at] = tc.to
		if CheckParams(g, tc.id, p) == nil {
			t.Errorf("%s: parameters %v of node %d are allowed", tc.name, p, tc.id)
		}
	}
	if CheckParams(g, 6, make([]float64, 31)) == nil {
		t.Error("31 weights for 32 are allowed")
	}
	for _, id := range []NodeID{-1, NodeID(len(g.Nodes))} {
		if err := CheckParams(g, id, []float32{1}); !errors.Is(err, ErrGraph) {
			t.Errorf("parameters of node %d of %d: %v, want ErrGraph", id, len(g.Nodes), err)
		}
	}
	for _, p := range [][]float64{{1.5, -0.5}, {-0.5, 1.5}} { // which sum to 1
		if CheckParams(oneSum(1, 2), 1, p) == nil {
			t.Errorf("weights %v are allowed", p)
		}
	}
}

// TestFloorParams raises what is positive and below MinProb, of weights and tables alone.
func TestFloorParams(t *testing.T) {
	g := &Graph{NumVars: 2, Root: 3, Nodes: []Node{
		{Kind: Input, Units: 1, Var: 0, Leaf: Categorical{Categories: 4}}, {Kind: Input, Units: 2, Var: 1, Leaf: Gaussian{}},
		{Kind: Product, Units: 1, Children: []NodeID{0, 1}}, {Kind: Sum, Units: 1, Children: []NodeID{2}},
	}}
	tiny := []float64{0, MinProb / 2, MinProb, 0.5}
	for id, want := range map[NodeID][]float64{0: {0, MinProb, MinProb, 0.5}, 1: tiny, 3: {0, MinProb, MinProb, 0.5}} {
		p := slices.Clone(tiny)
		if FloorParams(g, id, p); !slices.Equal(p, want) {
			t.Errorf("node %d: %v, want %v", id, p, want)
		}
	}
}
