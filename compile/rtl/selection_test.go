package rtl_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/rtl"
)

// chowLiu is a random tree over columns of a number of codes, as a deterministic circuit: for a
// column and a code of its parent, a sum over the column's codes of an indicator times the sums of
// the columns below it.
func chowLiu(rng *rand.Rand, columns, codes int) (*circuit.Graph, reference.Params) {
	g := &circuit.Graph{NumVars: columns}
	var params reference.Params
	add := func(n circuit.Node, p []float64) circuit.NodeID {
		n.Units = 1
		g.Nodes, params = append(g.Nodes, n), append(params, p)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	parent := make([]int, columns)
	for v := range parent {
		parent[v] = -1
		if v > 0 {
			parent[v] = rng.IntN(v)
		}
	}
	sums := make([][]circuit.NodeID, columns) // for each code of the parent
	for v := columns - 1; v >= 0; v-- {
		products := make([]circuit.NodeID, codes)
		for x := range products {
			n := circuit.Node{Kind: circuit.Product}
			n.Children = append(n.Children, add(circuit.Node{Kind: circuit.Input, Var: v, Leaf: circuit.Indicator{Value: x, Domain: codes}}, nil))
			for c := v + 1; c < columns; c++ {
				if parent[c] == v {
					n.Children = append(n.Children, sums[c][x])
				}
			}
			products[x] = add(n, nil)
		}
		given := codes
		if v == 0 {
			given = 1
		}
		for range given {
			p, total := make([]float64, codes), 0.0
			for x := range p {
				p[x] = 0.05 + rng.Float64()
				total += p[x]
			}
			for x := range p {
				p[x] /= total
			}
			sums[v] = append(sums[v], add(circuit.Node{Kind: circuit.Sum, Children: products}, p))
		}
	}
	g.Root = sums[0][0]
	return g, params
}

// TestChowLiu wants a Chow-Liu tree over n columns to take at most n-1 multipliers and no adder,
// and right likelihoods; with valid bits its sums are sums.
func TestChowLiu(t *testing.T) {
	for _, c := range []struct{ columns, codes, bits int }{{2, 2, 4}, {9, 2, 6}, {40, 2, 6}, {12, 4, 4}, {8, 5, 6}, {7, 6, 5}, {5, 9, 4}} {
		rng := rand.New(rand.NewPCG(uint64(c.columns), uint64(c.codes)))
		g, params := chowLiu(rng, c.columns, c.codes)
		o := rtl.DefaultOptions()
		o.TableBits, o.Device = c.bits, "xc7vx690"
		d, err := rtl.Compile(g, params.Read64, o)
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%+v: %d multipliers, %d adders, %d selections", c, d.Count(rtl.Mul), d.Count(rtl.Sum), d.Count(rtl.Select))
		t.Log(what)
		if fits := 2*codeBits(c.codes) <= c.bits; fits && (d.Count(rtl.Mul) > c.columns-1 || d.Count(rtl.Sum) > 0 || d.Count(rtl.Select) > 0) {
			t.Errorf("%s; want at most %d multipliers and tables", what, c.columns-1)
		} else if !fits && (d.Count(rtl.Select) == 0 || d.Count(rtl.Sum) > 0) {
			t.Errorf("%s; want selections", what)
		}
		agree(t, what, d, g, params, reference.RandomRows(g, rng, 50, 0))

		o.Marginals = true
		if c.columns > 20 {
			continue
		}
		if d, err = rtl.Compile(g, params.Read64, o); err != nil {
			t.Fatal(err)
		}
		if d.Count(rtl.Select) > 0 {
			t.Errorf("%s: selections with valid bits", what)
		}
		agree(t, what+", marginals", d, g, params, reference.RandomRows(g, rng, 50, 0.4))
	}
}

// codeBits is the width of codes 0..n-1.
func codeBits(n int) (bits int) {
	for 1<<bits < n {
		bits++
	}
	return bits
}
