package spn_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// TestLinearBound has probabilities near 1 that are all rounded in one direction: the bound counts each of them, although their logarithms add
// up to little.
func TestLinearBound(t *testing.T) {
	const vars = 100
	g := &circuit.Graph{NumVars: vars}
	var params reference.Params
	product := circuit.Node{Kind: circuit.Product, Units: 1}
	for v := range vars {
		p := 1 - 0x1p-25*(0.99-0.001*float64(v)) // rounded to 1
		g.Nodes = append(g.Nodes, circuit.Node{Units: 1, Var: v, Leaf: circuit.Bernoulli{}})
		params = append(params, []float64{1 - p, p})
		product.Children = append(product.Children, circuit.NodeID(v))
	}
	g.Nodes, params = append(g.Nodes, product), append(params, nil)
	g.Root = circuit.NodeID(vars)
	row := make([]float64, vars)
	for v := range row {
		row[v] = 1
	}
	for _, space := range []spn.Space{spn.Linear, spn.Log} {
		o := spn.Options{Space: space, Type: simt.F32}
		check(t, string(space), g, params, o, [][]float64{row})
		p, err := spn.Compile(g, params.Read64, o)
		if err != nil {
			t.Fatal(err)
		}
		eachRow(t, p, g, params, [][]float64{row}, func(_ int, got, want float64) {
			off := math.Abs(got - want)
			if lost := 0.9 * vars * 0x1p-25; space == spn.Linear && off < lost/2 {
				t.Errorf("off by %v, want about %v: the test says little", off, lost)
			}
			if bound := p.Bound.Of(want); off > bound || bound > 100*0x1p-24*vars {
				t.Errorf("%v: off by %v, and the bound is %v", p, off, bound)
			}
		})
	}
}

// TestGaussianBound has a Gaussian whose mean is as far from a number of float32 as it is subtracted in one part: the bound counts
// that, as what is lost so is more than the roundings.
func TestGaussianBound(t *testing.T) {
	const sd = 0.3989 // the logarithm of the density at the mean is about 0
	mean := 8 + 0.99*0x1p-20*sd
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Units: 1, Leaf: circuit.Gaussian{}}}}
	params := reference.Params{{mean, sd}}
	rows := [][]float64{{7.5}, {7.625}, {8.375}, {8.5}}
	check(t, "Gaussian", g, params, spn.Options{Space: spn.Log, Type: simt.F32}, rows)
	p, err := spn.Compile(g, params.Read64, spn.Options{Space: spn.Log, Type: simt.F32})
	if err != nil {
		t.Fatal(err)
	}
	eachRow(t, p, g, params, rows, func(r int, got, want float64) {
		rounded := (8*math.Ln2 + 12*math.Abs(want)) * 0x1p-24 // the bound if the mean were a number of float32
		if off := math.Abs(got - want); off <= rounded {
			t.Errorf("cell %v: off by %v, and roundings alone allow %v: the test says little", rows[r][0], off, rounded)
		}
	})
}
