package units_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/units"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestUnits takes random circuits apart and puts their units together again: the value is the
// same.
func TestUnits(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 17))
		m := formattest.Random64(t, rng)
		c, err := units.Of(m)
		if err != nil {
			t.Fatal(err)
		}
		order := c.Order()
		place := map[units.Unit]int{}
		nodes := make([]units.Node, len(order))
		for i, x := range order {
			place[x] = i
			n := &nodes[i]
			if n.Kind = c.Graph.Nodes[x.Node].Kind; n.Kind == circuit.Input {
				n.Leaf, n.Params, n.Var = c.Leaf(x)
				continue
			}
			children, weights := c.Children(x)
			n.Weights = weights
			for _, child := range children {
				n.Children = append(n.Children, place[child])
			}
		}
		back, err := units.Assemble(nodes, len(nodes)-1, m.Graph.NumVars)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		p, err := reference.Load64(m.Graph, m.Params64)
		if err != nil {
			t.Fatal(err)
		}
		q, err := reference.Load64(back.Graph, back.Params64)
		if err != nil {
			t.Fatal(err)
		}
		was, err1 := reference.New(m.Graph, p)
		is, err2 := reference.New(back.Graph, q)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for _, row := range reference.RandomRows(m.Graph, rng, 20, 0.2) {
			a, err1 := was.LogLikelihood(row)
			b, err2 := is.LogLikelihood(row)
			if err := errors.Join(err1, err2); err != nil || !(a == b || a-b < 1e-9 && b-a < 1e-9) {
				t.Fatalf("seed %d, row %v: %v and %v, %v", seed, row, a, b, err)
			}
		}
	}
}

// TestUnused reads parameters that the root needs, those of a node that others are tied to included, and may not have others.
func TestUnused(t *testing.T) {
	coin := circuit.Node{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}}
	tied := coin
	tied.Tie = circuit.TieTo(1)
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{coin, coin, tied}, Root: 2}
	c, err := units.Of(format.NewModel(g, nil, format.Params{Float64: func(id circuit.NodeID, dst []float64) error {
		if id != 1 {
			return format.ErrNoParams
		}
		dst[0], dst[1] = 0.25, 0.75
		return nil
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, p, _ := c.Leaf(c.Root()); !slices.Equal(p, []float64{0.25, 0.75}) {
		t.Errorf("the root has %v, want what it is tied to", p)
	}
}

// TestAssembleRefuses: errors name the node.
func TestAssembleRefuses(t *testing.T) {
	leaf := func(v int) units.Node {
		return units.Node{Leaf: circuit.Gaussian{}, Params: []float64{0, 1}, Var: v}
	}
	times := func(children ...int) units.Node { return units.Node{Kind: circuit.Product, Children: children} }
	plus := func(weights []float64, children ...int) units.Node {
		return units.Node{Kind: circuit.Sum, Weights: weights, Children: children}
	}
	for name, tc := range map[string]struct {
		nodes []units.Node
		at    int // -1: of no node
		want  string
	}{
		"a cycle":          {[]units.Node{times(1, 2), times(0), leaf(0)}, 1, "descendant of itself"},
		"not reached":      {[]units.Node{times(2), leaf(1), leaf(0)}, 1, "not reached"},
		"a bad leaf":       {[]units.Node{times(1), {Leaf: circuit.Gaussian{}, Params: []float64{0, -1}}}, 1, "gaussian"},
		"a bad family":     {[]units.Node{times(1), {Leaf: circuit.Categorical{}}}, 1, "categorical"},
		"a weight less":    {[]units.Node{plus([]float64{1}, 1, 2), leaf(0), leaf(0)}, 0, "1 weights for 2 children"},
		"weights of 0.9":   {[]units.Node{plus([]float64{0.5, 0.4}, 1, 2), leaf(0), leaf(0)}, 0, "0.9"},
		"not smooth":       {[]units.Node{plus([]float64{0.5, 0.5}, 1, 2), leaf(0), leaf(1)}, -1, ""},
		"not over one":     {[]units.Node{times(1, 2), leaf(0), leaf(0)}, -1, ""},
		"no such column":   {[]units.Node{times(1), leaf(4)}, -1, ""},
		"another's column": {[]units.Node{times(1), leaf(-1)}, -1, ""},
	} {
		_, err := units.Assemble(tc.nodes, 0, 2)
		var fault *units.NodeError
		switch {
		case err == nil || !strings.Contains(err.Error(), tc.want) || bytes.ContainsRune([]byte(err.Error()), '\n'):
			t.Errorf("%s: error is %v, want %q", name, err, tc.want)
		case errors.As(err, &fault) != (tc.at >= 0) || fault != nil && fault.Node != tc.at:
			t.Errorf("%s: %v, want node %d", name, err, tc.at)
		}
	}
}
