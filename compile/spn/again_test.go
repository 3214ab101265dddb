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
		if testing.Short() && test.terms > 4 {
			continue // large ones
		}
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

// TestAgainOfSquares has rows whose squared deviations float32 does not have, and float64 does: they are computed again, and
// others are not. Of a mixture the widest deviation counts.
func TestAgainOfSquares(t *testing.T) {
	for _, deviation := range []float64{0x1p-20, 1, 0x1p40} {
		rng := rand.New(rand.NewPCG(8, 3))
		one := graph{Graph: circuit.Graph{NumVars: 2}}
		x := one.add(circuit.Node{Var: 0, Leaf: circuit.Gaussian{}}, []float64{0.5, deviation})
		y := one.add(circuit.Node{Var: 1, Leaf: circuit.Bernoulli{}}, []float64{0.25, 0.75})
		one.Root = one.add(circuit.Node{Kind: circuit.Product, Children: []circuit.NodeID{x, y}}, nil)
		circuits := map[string]*graph{"a product": &one}
		g, params := gaussians(rng, 5, 2)
		for id, p := range params {
			if g.Nodes[id].Kind == circuit.Input {
				for i := 1; i < len(p); i += 2 {
					p[i-1], p[i] = p[i-1]*deviation, p[i]*deviation
				}
			}
		}
		circuits["a mixture"] = &graph{Graph: *g, params: params}
		for name, g := range circuits {
			var near, far [][]float64
			for _, z := range []float64{0, 1, -1e3, 1e10, -1e16} {
				near = append(near, []float64{float64(float32(z * deviation)), 1})
			}
			for _, z := range []float64{1e19, -2e19, 3e19, 1e22, -1e30, 3e38} {
				if z *= deviation; math.Abs(z) < math.MaxFloat32 {
					far = append(far, []float64{float64(float32(z)), 0})
				}
			}
			what := fmt.Sprintf("%s, deviations of %v", name, deviation)
			for _, space := range []spn.Space{spn.Log, spn.Scaled} {
				o := spn.Options{Space: space, Type: simt.F32}
				if again := check(t, what, &g.Graph, g.params, o, far); name == "a product" && again != len(far) {
					t.Errorf("%s, %s: %d rows again, want %d", what, space, again, len(far))
				}
				if again := check(t, what, &g.Graph, g.params, o, near); space == spn.Log && again > 0 {
					t.Errorf("%s: %d rows again, want none", what, again)
				}
			}
		}
	}
}
