package spn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// mixtures is a product of mixtures of categories, one for each variable, of which the last code has a probability of about 2^-30.
func mixtures(rng *rand.Rand, vars, terms, categories int) (*circuit.Graph, reference.Params) {
	g := graph{Graph: circuit.Graph{NumVars: 2 * vars}}
	var all []circuit.NodeID
	for v := range vars {
		var list []circuit.NodeID
		weights, rest := make([]float64, terms), 1.0
		for k := range terms {
			var pair []circuit.NodeID
			for i := range 2 {
				table, left := make([]float64, categories), 1.0
				table[categories-1] = 0x1p-30 * (1 + rng.Float64())
				left -= table[categories-1]
				for c := range categories - 1 {
					table[c] = left / float64(categories-1)
				}
				pair = append(pair, g.add(circuit.Node{Var: 2*v + i, Leaf: circuit.Categorical{Categories: categories}}, table))
			}
			list = append(list, g.add(circuit.Node{Kind: circuit.Product, Children: pair}, nil))
			if weights[k] = rest / 2; k == terms-1 {
				weights[k] = rest
			}
			rest -= weights[k]
		}
		all = append(all, g.add(circuit.Node{Kind: circuit.Sum, Children: list}, weights))
	}
	g.Root = g.add(circuit.Node{Kind: circuit.Product, Children: all}, nil)
	return &g.Graph, g.params
}

// TestAgainOfLinear has circuits of which float64 does not hold some rows. Those of a large one are computed on the host if the circuit itself
// hardly has such rows, those of others by code in log space.
func TestAgainOfLinear(t *testing.T) {
	for _, test := range []struct {
		vars, terms, categories int
		host                    bool
	}{
		{60, 4, 3, false},    // small
		{60, 32, 3, true},    // large, and its rows have some -80 nats
		{60, 32, 200, false}, // large, and its rows some -630 nats
	} {
		what := fmt.Sprintf("%d variables of %d categories, %d terms", 2*test.vars, test.categories, test.terms)
		rng := rand.New(rand.NewPCG(6, uint64(test.terms)))
		g, params := mixtures(rng, test.vars, test.terms, test.categories)
		rows := [][]float64{reference.MissingRow(g.NumVars)}
		for _, rare := range []int{0, 1, 20, 34, 35, 36, 60, 120} {
			row := make([]float64, g.NumVars)
			for v := range row {
				if v < rare {
					row[v] = float64(test.categories - 1)
				}
			}
			rows = append(rows, row)
		}
		for _, typ := range []simt.Type{simt.F64, simt.F32} {
			if typ == simt.F32 && test.categories > 3 {
				continue // long code once more
			}
			o := spn.Options{Space: spn.Linear, Type: typ}
			again := check(t, what, g, params, o, rows)
			p, err := spn.Compile(g, params.Read64, o)
			if err != nil {
				t.Fatal(err)
			}
			if again == 0 || p.Info.Proven {
				t.Errorf("%s, %v: %d rows again", what, p, again)
			}
			for p.Type == simt.F32 {
				p = p.Exact
			}
			if host := p.Exact == nil; host != test.host || math.IsInf(p.Least, -1) {
				t.Errorf("%s, %v: again on the host is %v, want %v", what, p, host, test.host)
			}
		}
	}
}
