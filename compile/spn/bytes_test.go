package spn_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// mixture is a circuit over two variables, of which the second one has the leaf; the first one is a coin.
func mixture(l circuit.Leaf, params ...[]float64) (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 2}, reference.Params{}
	add := func(n circuit.Node, own []float64) circuit.NodeID {
		n.Units = 1
		g.Nodes, p = append(g.Nodes, n), append(p, own)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	sum := circuit.Node{Kind: circuit.Sum}
	for i, own := range params {
		coin := add(circuit.Node{Leaf: circuit.Categorical{Categories: 2}}, []float64{0.25 * float64(i+1), 1 - 0.25*float64(i+1)})
		leaf := add(circuit.Node{Var: 1, Leaf: l}, own)
		sum.Children = append(sum.Children, add(circuit.Node{Kind: circuit.Product, Children: []circuit.NodeID{coin, leaf}}, nil))
	}
	weights := make([]float64, len(params))
	for i := range weights {
		weights[i] = 1 / float64(len(params))
	}
	g.Root = add(sum, weights)
	return g, p
}

// byteOf is the byte that CompileFor says a number has, by a search.
func byteOf(x float64) float64 {
	if x != x {
		return x
	}
	for b := range spn.Outside {
		if float64(b) <= x && x < float64(b+1) {
			return float64(b)
		}
	}
	return spn.Outside
}

// TestFitBytes: CompileFor takes bytes where no leaf tells the numbers of a byte apart, on both sides of each limit, and its modules
// have for them what the evaluator has for the numbers.
func TestFitBytes(t *testing.T) {
	bins := func(n int) []float64 {
		p := make([]float64, n)
		for i := range p {
			p[i] = float64(1+i*i%7) / 8
		}
		return p
	}
	shares := func(n int) []float64 {
		p, total := bins(n), 0.0
		for _, x := range p {
			total += x
		}
		for i := range p {
			p[i] /= total
		}
		return p
	}
	every := func(n int) []float64 {
		breaks := make([]float64, n)
		for i := range breaks {
			breaks[i] = float64(i)
		}
		return breaks
	}
	const floor = 0x1p-52
	numbers := []float64{
		math.NaN(), 0, math.Copysign(0, -1), 0.5, 1, 1.999, 2, 3, 7, 8.25, 99.5, 100, 100.5, 252, 252.9, 253, 253.5, 254, 254.5, 255, 256, 300, 65535, 1e9, 1e30,
		-0.5, -1, -3, -254, -255, -256, -1e30,
	}
	for _, c := range []struct {
		leaf  circuit.Leaf
		bytes bool
	}{
		{circuit.RealHistogram{Breaks: []float64{0, 254}, Floor: floor}, true},
		{circuit.RealHistogram{Breaks: []float64{0, 1, 3, 100, 254}, Floor: floor}, true},
		{circuit.RealHistogram{Breaks: []float64{0, 1, 3, 100, 253}}, true},
		{circuit.RealHistogram{Breaks: []float64{3, 7}, Floor: floor}, true},
		{circuit.RealHistogram{Breaks: every(255), Floor: floor}, true},
		{circuit.RealHistogram{Breaks: every(256), Floor: floor}, false},
		{circuit.RealHistogram{Breaks: []float64{0, 1, 3, 100, 255}, Floor: floor}, false},
		{circuit.RealHistogram{Breaks: []float64{-1, 3}, Floor: floor}, false},
		{circuit.RealHistogram{Breaks: []float64{0, 2.5}, Floor: floor}, false},
		{circuit.Bernoulli{}, true},
		{circuit.Categorical{Categories: 254}, true},
		{circuit.Categorical{Categories: 255}, true},
		{circuit.Categorical{Categories: 256}, false},
		{circuit.Gaussian{}, false},
	} {
		n := c.leaf.NumParams()
		own := shares(n)
		if c.leaf.Codes() == 0 {
			own = bins(n)
		}
		g, params := mixture(c.leaf, own, slices.Concat(own[n/2:], own[:n/2]))
		for _, space := range []spn.Space{spn.Auto, spn.Log} {
			for _, typ := range []string{"f32", "f64"} {
				what := fmt.Sprintf("%s of %d, %s, %s", c.leaf.Name(), n, space, typ)
				p, err := spn.CompileFor(g, params.Read64, spn.Choice{Space: space, Type: typ})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if in := p.Module.Inputs[0]; (in.Type == simt.U8) != c.bytes || in.Layout != simt.Columns {
					t.Errorf("%s: the module reads %v by %v, want bytes to be %v", what, in.Type, in.Layout, c.bytes)
				}
				if p.Exact != nil && p.Exact.Module.Inputs[0] != p.Module.Inputs[0] {
					t.Errorf("%s: rows are computed again from %+v, at first from %+v", what, p.Exact.Module.Inputs[0], p.Module.Inputs[0])
				}
				var rows, cells [][]float64
				for _, x := range numbers {
					if x = float64(float32(x)); !c.bytes && math.Abs(x) > 1e4 {
						continue // far from a Gaussian's mean
					}
					if codes := c.leaf.Codes(); codes > 0 && x == x && (x < 0 || x != math.Trunc(x) || x >= float64(codes)) {
						continue
					}
					for coin := range 2 {
						row := []float64{float64(coin), x}
						rows, cells = append(rows, row), append(cells, row)
						if c.bytes && c.leaf.Codes() == 0 {
							cells[len(cells)-1] = []float64{float64(coin), byteOf(x)}
						}
					}
				}
				got, _ := run(t, p, cells)
				e, err := reference.New(g, params)
				if err != nil {
					t.Fatal(err)
				}
				for i, row := range rows {
					want, err := e.LogLikelihood(row)
					if err != nil {
						t.Fatal(err)
					}
					if !(math.Abs(got[i]-want) <= p.Bound.Of(want)) && got[i] != want {
						t.Errorf("%s: %v has %v, want %v within %g", what, row, got[i], want, p.Bound.Of(want))
					}
				}
			}
		}
	}
}
