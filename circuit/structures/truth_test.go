package structures

import (
	"fmt"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

func binary(int) circuit.Leaf { return circuit.Categorical{Categories: 2} }

// tolerance for sums of a few thousand products of float32-rounded parameters:
// each row of weights is off by up to 1e-7 from 1, and a circuit is some ten
// sums deep.
const tolerance = 1e-5

// TestMass checks that small circuits of every structure, of odd sizes too, are
// valid and sum to 1 over all states.
func TestMass(t *testing.T) {
	tree := func(n, inner int) Tree {
		tree, err := RandomTreeInner(n, inner, 1)
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	rat := func(vars, depth, repetitions, pieces int) func() (*circuit.Graph, error) {
		return func() (*circuit.Graph, error) {
			return RATSPN(RATSPNOptions{Vars: vars, Latents: 3, Depth: depth, Repetitions: repetitions, Pieces: pieces, Seed: 1, Leaf: binary})
		}
	}
	pd := func(h, w, c, interval, latents, products int) func() (*circuit.Graph, error) {
		return func() (*circuit.Graph, error) {
			return PD(PDOptions{Shape: [3]int{h, w, c}, SplitInterval: interval, MaxProductBlocks: products, Latents: latents, Leaf: binary})
		}
	}
	hclt := func(tree Tree) func() (*circuit.Graph, error) {
		return func() (*circuit.Graph, error) { return HCLT(tree, HCLTOptions{Latents: 3, Leaf: binary}) }
	}
	hmm := func(length int, tied bool) func() (*circuit.Graph, error) {
		return func() (*circuit.Graph, error) {
			return HMM(HMMOptions{Length: length, Latents: 3, Tied: tied, Leaf: binary})
		}
	}
	for _, tc := range []struct {
		name  string
		build func() (*circuit.Graph, error)
	}{
		{"hclt/1", hclt(tree(1, 1))},
		{"hclt/2", hclt(tree(2, 1))},
		{"hclt/star", hclt(tree(9, 1))},
		{"hclt/10", hclt(tree(10, 6))},
		{"hmm/1", hmm(1, true)},
		{"hmm/tied", hmm(8, true)},
		{"hmm/untied", hmm(8, false)},
		{"rat/1", rat(1, 3, 2, 2)},
		{"rat/2", rat(2, 3, 2, 2)},
		{"rat/fewer variables than leaf regions", rat(10, 5, 2, 2)},
		{"rat/three pieces", rat(11, 2, 3, 3)},
		{"rat/more pieces than variables", rat(3, 2, 1, 5)},
		{"pd/one cell", pd(2, 3, 1, 4, 3, 8)},
		{"pd/one pixel", pd(1, 1, 1, 1, 3, 8)},
		{"pd/row", pd(1, 9, 1, 2, 3, 8)},
		{"pd/ragged", pd(3, 3, 1, 2, 4, 8)},
		{"pd/colour", pd(2, 2, 3, 1, 2, 1)},
		{"pd/sparse", pd(2, 4, 1, 1, 64, 2)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.name == "pd/sparse" {
				t.Skip("64 latents take a second; run without -short")
			}
			g, err := tc.build()
			if err != nil {
				t.Fatal(err)
			}
			if err := circuit.Validate(g); err != nil {
				t.Fatal(err)
			}
			props := circuit.Properties(g)
			if !props.Smooth || !props.Decomposable || !props.TotalScope {
				t.Errorf("properties %+v", props)
			}
			ev := evaluator(t, g)
			mass, err := ev.Mass(reference.MissingRow(g.NumVars))
			if err != nil || !(math.Abs(mass-1) <= tolerance) {
				t.Errorf("mass %v, %v", mass, err)
			}
		})
	}
}

func evaluator(t *testing.T, g *circuit.Graph) *reference.Evaluator {
	t.Helper()
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(g, params)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// TestHMMForward compares a homogeneous model with the forward recursion of the
// textbook over matrices read from the graph.
func TestHMMForward(t *testing.T) {
	const length, states = 6, 3
	g, err := HMM(HMMOptions{Length: length, Latents: states, Tied: true, Leaf: binary})
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	var emission, transition []float64
	for id, n := range g.Nodes {
		if n.Kind == circuit.Input && params[id] != nil {
			emission = params[id] // [state, symbol]
		}
		if n.Kind == circuit.Sum && n.Units == states && params[id] != nil {
			transition = params[id] // [from, to]
		}
	}
	first := params[g.Root]
	ev := evaluator(t, g)
	states2, err := reference.States(g, reference.MissingRow(length))
	if err != nil {
		t.Fatal(err)
	}
	for x := range states2 {
		alpha := make([]float64, states)
		for s := range alpha {
			alpha[s] = first[s] * emission[s*2+int(x[0])]
		}
		for step := 1; step < length; step++ {
			next := make([]float64, states)
			for to := range next {
				for from := range alpha {
					next[to] += alpha[from] * transition[from*states+to] * emission[to*2+int(x[step])]
				}
			}
			alpha = next
		}
		want := math.Log(alpha[0] + alpha[1] + alpha[2])
		if got, err := ev.LogLikelihood(x); err != nil || !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
			t.Fatalf("row %v: log-likelihood %v, %v; want %v", x, got, err, want)
		}
	}
}

// TestHCLTLatents compares an HCLT with the sum over all states of the latents
// of its inner variables.
func TestHCLTLatents(t *testing.T) {
	tree := Tree{Parent: []int{3, 3, 1, -1, 1, 2, 3}} // inner: 1, 2, 3
	g, err := HCLT(tree, HCLTOptions{Latents: 2, Leaf: binary})
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	emission := map[int][]float64{}   // variable → [state, symbol]
	transition := map[int][]float64{} // variable → [parent's state, state]
	for id, n := range g.Nodes {
		switch n.Kind {
		case circuit.Input:
			emission[n.Var] = params[id]
		case circuit.Sum:
			// The first factor of the product below is the variable's input.
			product := g.Nodes[n.Children[0]]
			transition[g.Nodes[product.Children[0]].Var] = params[id]
		}
	}
	if fmt.Sprint(len(emission), len(transition)) != "7 3" {
		t.Fatalf("%d emissions and %d transitions, want 7 and 3", len(emission), len(transition))
	}
	ev := evaluator(t, g)
	rows, err := reference.States(g, reference.MissingRow(7))
	if err != nil {
		t.Fatal(err)
	}
	for x := range rows {
		var want float64
		for bits := range 8 {
			z := map[int]int{1: bits & 1, 2: bits >> 1 & 1, 3: bits >> 2}
			p := transition[3][z[3]] * transition[1][z[3]*2+z[1]] * transition[2][z[1]*2+z[2]]
			for v, e := range emission {
				state, inner := z[v]
				if !inner {
					state = z[tree.Parent[v]]
				}
				p *= e[state*2+int(x[v])]
			}
			want += p
		}
		if got, err := ev.LogLikelihood(x); err != nil || !(math.Abs(got-math.Log(want)) <= 1e-12*math.Abs(got)) {
			t.Fatalf("row %v: log-likelihood %v, %v; want %v", x, got, err, math.Log(want))
		}
	}
}
