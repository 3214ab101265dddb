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

// uniform is a mixture of two products of leaves, of which each code but the first has the probability 2^-bits, and of Gaussians. Without
// these the products are equal, and one operation.
func uniform(vars, gaussians, bits int) (*circuit.Graph, reference.Params) {
	g := graph{Graph: circuit.Graph{NumVars: vars + gaussians}}
	table := make([]float64, 4)
	table[0] = 1 - math.Ldexp(3, -bits)
	for k := range table[1:] {
		table[k+1] = math.Ldexp(1, -bits)
	}
	sum := circuit.Node{Kind: circuit.Sum}
	for k := range 2 {
		product := circuit.Node{Kind: circuit.Product}
		for v := range g.NumVars {
			n, p := circuit.Node{Var: v, Leaf: circuit.Categorical{Categories: len(table)}}, table
			if v >= vars {
				n, p = circuit.Node{Var: v, Leaf: circuit.Gaussian{}}, []float64{float64(k), 1}
			}
			product.Children = append(product.Children, g.add(n, p))
		}
		sum.Children = append(sum.Children, g.add(product, nil))
	}
	g.Root = g.add(sum, []float64{0.5, 0.5})
	return &g.Graph, g.params
}

// TestLift has circuits whose least likelihoods are in range only because values are lifted, on both sides of where they are, and
// holds rows of all sizes to the evaluator.
func TestLift(t *testing.T) {
	for _, test := range []struct {
		typ                   simt.Type
		vars, gaussians, bits int
		proven                bool
	}{
		{simt.F32, 30, 0, 4, true},  // 2^-121, with the weight
		{simt.F32, 59, 0, 4, true},  // 2^-237, and 120 up
		{simt.F32, 60, 0, 4, false}, // one variable more
		{simt.F32, 1, 0, 121, true}, // all for one variable
		{simt.F32, 7, 0, 30, true},  // powers that are not the same for all
		{simt.F32, 20, 1, 4, false}, // a density may be 0
		{simt.F64, 99, 0, 20, true},
		{simt.F64, 100, 0, 20, false},
	} {
		what := fmt.Sprintf("%d variables of 2^-%d, %d Gaussians", test.vars, test.bits, test.gaussians)
		g, params := uniform(test.vars, test.gaussians, test.bits)
		rng := rand.New(rand.NewPCG(5, uint64(test.vars)))
		rows := [][]float64{reference.MissingRow(g.NumVars), make([]float64, g.NumVars)}
		for n := range 40 { // more and more unlikely
			row := make([]float64, g.NumVars)
			for v := range row {
				if row[v] = float64(1 + rng.IntN(3)); rng.IntN(40) > n || v >= test.vars {
					row[v] = 0
				}
				if rng.IntN(10) == 0 {
					row[v] = math.NaN()
				}
			}
			rows = append(rows, row)
		}
		last := make([]float64, g.NumVars)
		for v := range last {
			last[v] = 3
		}
		rows = append(rows, last)
		for _, joint := range []int{0, 16} {
			o := spn.Options{Space: spn.Linear, Type: test.typ, Joint: joint}
			again := check(t, what, g, params, o, rows)
			p, err := spn.Compile(g, params.Read64, o)
			if err != nil {
				t.Fatal(err)
			}
			if p.Info.Proven != test.proven || (p.Exact == nil) != test.proven || test.proven && again > 0 {
				t.Errorf("%s, %v: proven %v, want %v; %d rows again", what, p, p.Info.Proven, test.proven, again)
			}
		}
	}
}

// TestLiftTails: probabilities of formulas below the least number of float64, and below the least normal one, where few variables are lifted so
// far that their products are in range.
func TestLiftTails(t *testing.T) {
	const trials = 250 // 100^-250 is 2^-1661
	for _, vars := range []int{1, 2, 3, 10} {
		g := graph{Graph: circuit.Graph{NumVars: vars}}
		sum := circuit.Node{Kind: circuit.Sum}
		for k := range 2 {
			product := circuit.Node{Kind: circuit.Product}
			for v := range vars {
				product.Children = append(product.Children, g.add(circuit.Node{Var: v, Leaf: circuit.Binomial{Trials: trials}}, []float64{0.01 * float64(k+1)}))
			}
			sum.Children = append(sum.Children, g.add(product, nil))
		}
		g.Root = g.add(sum, []float64{0.5, 0.5})
		var rows [][]float64
		for x := range trials + 1 {
			row := make([]float64, vars)
			row[x%vars] = float64(x)
			rows = append(rows, row)
		}
		for _, o := range options {
			check(t, fmt.Sprintf("%d variables", vars), &g.Graph, g.params, o, rows)
		}
	}
}
