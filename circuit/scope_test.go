package circuit

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// chainGraph is a hidden Markov model of n steps with one-unit nodes: two states,
// each with an input of its own in every step.
func chainGraph(n int) *Graph {
	g := &Graph{NumVars: n}
	add := func(kind Kind, v int, children ...NodeID) NodeID {
		node := Node{Kind: kind, Units: 1, Children: children}
		if kind == Input {
			node.Var, node.Leaf = v, Bernoulli{}
		}
		g.Nodes = append(g.Nodes, node)
		return NodeID(len(g.Nodes) - 1)
	}
	a, b := add(Input, 0), add(Input, 0)
	for v := 1; v < n; v++ {
		c, d := add(Sum, 0, a, b), add(Sum, 0, a, b)
		a, b = add(Product, 0, c, add(Input, v)), add(Product, 0, d, add(Input, v))
	}
	g.Root = add(Sum, 0, a, b)
	return g
}

// TestLongChain checks circuits whose scopes, stored as sets, would take memory
// that is quadratic in their length: 1.4 GB.
func TestLongChain(t *testing.T) {
	if testing.Short() {
		t.Skip("a chain of 150,000 sums; without -short")
	}
	const n = 150_000
	g := chainGraph(n)
	if err := Validate(g); err != nil {
		t.Fatal(err)
	}
	if p := Properties(g); !p.Smooth || !p.Decomposable || !p.TotalScope || !p.StructuredDecomposable || p.Deterministic {
		t.Errorf("%+v", p)
	}
	if _, err := ScopesOf(g); !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), "take more than 256 MiB") {
		t.Errorf("explicit scopes: %v, want ErrGraph and the bound on them", err)
	}
	ends := g.Nodes[g.Root].Children // products of a sum and an input of the last variable
	g.Nodes[ends[1]].Children[1] = 0 // an input of the first one
	if err := Validate(g); !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), "is not smooth: child") {
		t.Errorf("a sum of different scopes: %v", err)
	}
	g.Nodes[ends[0]].Children[1] = 0
	if err := Validate(g); !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), "which product is not decomposable") {
		t.Errorf("products whose children share a variable: %v", err)
	}
}

// TestSketchAgrees breaks small graphs at random: the sketch exists exactly where
// explicit scopes show no fault, and then numbers scopes as these do.
func TestSketchAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	valid, broken := 0, 0
	for range 4000 {
		g := &Graph{NumVars: 1 + rng.IntN(5)}
		for len(g.Nodes) < 14 {
			n := Node{Kind: Kind(rng.IntN(3)), Units: 1, Var: rng.IntN(g.NumVars), Leaf: Bernoulli{}}
			if len(g.Nodes) < 3 {
				n.Kind = Input
			}
			if n.Kind != Input {
				n.Var, n.Leaf = 0, nil
				for range 1 + rng.IntN(2) {
					n.Children = append(n.Children, NodeID(rng.IntN(len(g.Nodes))))
				}
			}
			g.Nodes = append(g.Nodes, n)
			if _, faults, err := computeScopes(g, true, maxScopeWords); err != nil || faults.child != None {
				if rng.IntN(8) > 0 { // seldom keep what is broken
					g.Nodes = g.Nodes[:len(g.Nodes)-1]
				}
			}
		}
		g.Root = NodeID(rng.IntN(len(g.Nodes)))
		s, faults, err := computeScopes(g, false, maxScopeWords)
		if err != nil {
			t.Fatal(err)
		}
		fine := faults.unsmooth == None && faults.undecomposable == None
		sketch, _, _ := sketchScopes(g)
		if !fine {
			broken++
			if sketch != nil {
				t.Fatalf("a sketch of a graph with %+v: %+v", faults, g)
			}
			continue
		}
		valid++
		if sketch == nil {
			t.Fatalf("no sketch of a valid graph: %+v", g)
		}
		number, distinct := sketch.numbers()
		if distinct != s.Distinct() {
			t.Fatalf("%d distinct scopes, want %d", distinct, s.Distinct())
		}
		for i := range number {
			for k := range number {
				if (number[i] == number[k]) != (s.nodes[i] == s.nodes[k]) {
					t.Fatalf("nodes %d and %d: scopes %v and %v, numbers %d and %d", i, k, s.Of(NodeID(i)), s.Of(NodeID(k)), number[i], number[k])
				}
			}
		}
	}
	if valid < 1000 || broken < 500 {
		t.Errorf("%d valid and %d broken graphs were tested", valid, broken)
	}
}

// TestSketchOfManyRoots has nodes that the root cannot reach and that share what
// is below them: beyond walkSteps for each node the sketch gives up, and
// explicit scopes find the same.
func TestSketchOfManyRoots(t *testing.T) {
	for _, roots := range []int{1, 8, 9, 40} {
		g := chainGraph(500)
		for range roots - 1 {
			g.Nodes = append(g.Nodes, Node{Kind: Sum, Units: 1, Children: []NodeID{g.Root}})
		}
		sketch, _, _ := sketchScopes(g)
		if (sketch != nil) != (roots <= 8) {
			t.Errorf("%d roots: sketch %v, want one for up to 8", roots, sketch != nil)
		}
		if err := Validate(g); err != nil {
			t.Errorf("%d roots: %v", roots, err)
		}
		if p := Properties(g); !p.Decomposable || !p.StructuredDecomposable || !p.TotalScope {
			t.Errorf("%d roots: %+v", roots, p)
		}
	}
}

// TestScopesTakeTooMuch computes scopes that take as many words as they may, and
// refuses the same graph where they may take one word less.
func TestScopesTakeTooMuch(t *testing.T) {
	g := chainGraph(200)
	s, _, err := computeScopes(g, false, maxScopeWords)
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, set := range s.sets {
		words += len(set.words)
	}
	if _, _, err := computeScopes(g, false, words); err != nil {
		t.Errorf("%d words of at most %d: %v", words, words, err)
	}
	if _, _, err := computeScopes(g, false, words-1); !errors.Is(err, ErrGraph) || !strings.Contains(err.Error(), "distinct scopes over 200 variables take more than 0 MiB") {
		t.Errorf("%d words of at most %d: %v", words, words-1, err)
	}
}

// TestVarOfProducts validates a graph whose product has a variable, which only inputs have.
func TestVarOfProducts(t *testing.T) {
	g := &Graph{NumVars: 2, Root: 2, Nodes: []Node{
		{Kind: Input, Units: 1, Var: 0, Leaf: Bernoulli{}},
		{Kind: Input, Units: 1, Var: 1, Leaf: Bernoulli{}},
		{Kind: Product, Units: 1, Var: 1 << 60, Children: []NodeID{0, 1}},
	}}
	if err := Validate(g); err != nil {
		t.Error(err)
	}
}
