package spn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// gaussians returns a mixture of products of Gaussians. Most means of a variable are near each other. Some are far from the
// others, some have deviations so small that rounding the mean to float32 matters, and some deviations are too wide or too
// narrow for a quadratic form. The last variable has histograms.
func gaussians(rng *rand.Rand, components, vars int) (*circuit.Graph, reference.Params) {
	g := graph{Graph: circuit.Graph{NumVars: vars}}
	sum, weights := circuit.Node{Kind: circuit.Sum}, []float64(nil)
	for range components {
		product := circuit.Node{Kind: circuit.Product}
		for v := range vars {
			p := []float64{float64(7*v) + rng.NormFloat64(), 0.5 + rng.Float64()}
			switch rng.IntN(12) {
			case 0:
				p = []float64{14.7 + rng.Float64(), 0.008}
			case 1:
				p = []float64{1e4 * rng.NormFloat64(), []float64{1e-3, 1, 1e5}[rng.IntN(3)]}
			case 2:
				p[1] = []float64{1e-10, 0x1p40}[rng.IntN(2)]
			}
			if v == vars-1 {
				product.Children = append(product.Children, g.add(circuit.Node{Var: v, Leaf: circuit.RealHistogram{Breaks: []float64{-1, 0, 2}, Floor: 1e-9}}, []float64{0.25 + rng.Float64()/4, 0.25}))
				continue
			}
			product.Children = append(product.Children, g.add(circuit.Node{Var: v, Leaf: circuit.Gaussian{}}, p))
		}
		sum.Children = append(sum.Children, g.add(product, nil))
		weights = append(weights, 1/float64(components))
	}
	g.Root = g.add(sum, weights)
	return &g.Graph, g.params
}

// TestMixture compiles mixtures of Gaussians, whose quadratic forms are computed together, for rows near means, far away and with
// missing cells.
func TestMixture(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 21))
		g, params := gaussians(rng, 2+rng.IntN(14), 2+rng.IntN(5))
		rows := [][]float64{reference.MissingRow(g.NumVars)}
		for r := range 60 {
			row := reference.MissingRow(g.NumVars)
			product := &g.Nodes[g.Nodes[g.Root].Children[rng.IntN(len(g.Nodes[g.Root].Children))]]
			for v, leaf := range product.Children {
				p := params[leaf]
				if r%2 == 0 || rng.IntN(2) == 0 {
					row[v] = float64(float32(p[0] + p[1]*rng.NormFloat64()))
				}
				if r%5 == 4 && rng.IntN(3) == 0 {
					row[v] = []float64{1e9, -1e9, 0x1p50, 0x1p62, -0x1p62, 0x1p-140}[rng.IntN(6)]
				}
			}
			rows = append(rows, row)
		}
		for _, o := range []spn.Options{
			{Space: spn.Log, Type: simt.F32}, {Space: spn.Log, Type: simt.F32, Joint: 16}, {Space: spn.Log, Type: simt.F64, Joint: 16},
			{Space: spn.Scaled, Type: simt.F32, Joint: 16}, {Space: spn.Auto, Type: simt.F32, Joint: 16},
		} {
			check(t, fmt.Sprintf("seed %d", seed), g, params, o, rows)
		}
	}
}

// TestMixtureBranches: what missing cells take away is divided among branches that are short enough for machine code, with the
// same bits.
func TestMixtureBranches(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 23))
	g, params := gaussians(rng, 30, 4)
	rows := [][]float64{reference.MissingRow(g.NumVars), {0.5, math.NaN(), 14, 1}, {0.5, 7, 14, 1}, {math.NaN(), 7, 14, math.NaN()}}
	for _, o := range []spn.Options{{Space: spn.Log, Type: simt.F64}, {Space: spn.Log, Type: simt.F32, Joint: 16}} {
		branches := func() (n int, lls []float64) {
			p, err := spn.Compile(g, params.Read64, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, in := range p.Module.Body {
				if in.Op == simt.If {
					n++
				}
			}
			wellFormed(t, p.LoSPN(cutAt(60)))
			eachRow(t, p, g, params, rows, func(_ int, got, _ float64) { lls = append(lls, got) })
			return n, lls
		}
		n, want := branches()
		restore := spn.SetBranchTerms(10)
		many, got := branches()
		restore()
		if n != 1 || many < 5 || !slices.Equal(got, want) {
			t.Errorf("%+v: %d branches in place of %d, %v, want %v", o, many, n, got, want)
		}
	}
}

// TestMixtureError holds code in float32 of a mixture without extreme leaves to a few units of the largest term, with half of the
// cells missing too.
func TestMixtureError(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 22))
	g, params := gaussians(rng, 40, 26)
	for i := range g.Nodes {
		if _, ok := g.Nodes[i].Leaf.(circuit.Gaussian); ok {
			if p := params[i]; p[1] > 2 || p[1] < 0.008 {
				p[0], p[1] = 3*rng.NormFloat64(), 0.5
			}
		}
	}
	p, err := spn.Compile(g, params.Read64, spn.Options{Type: simt.F32, Joint: 16})
	if err != nil {
		t.Fatal(err)
	}
	if p.Space != spn.Log || p.Exact != nil {
		t.Fatalf("%v: want log space without rows that are computed again", p)
	}
	var rows [][]float64
	for r := range 64 {
		row := reference.MissingRow(g.NumVars)
		product := &g.Nodes[g.Nodes[g.Root].Children[r%40]]
		for v, leaf := range product.Children {
			q := params[leaf]
			if r%2 == 0 || rng.IntN(2) == 0 {
				row[v] = float64(float32(q[0] + q[1]*rng.NormFloat64()))
			}
		}
		rows = append(rows, row)
	}
	eachRow(t, p, g, params, rows, func(r int, got, want float64) {
		if diff := math.Abs(got - want); !(diff <= 1e-5*math.Max(30, math.Abs(want))) {
			t.Errorf("row %d: %v, want %v; the difference is %g", r, got, want, diff)
		}
	})
}

// TestMixtureCenters has means in groups that are far apart. Those of a group share the distance from one center, if they are
// enough; the others have their own.
func TestMixtureCenters(t *testing.T) {
	for _, test := range []struct {
		groups []int // how many means there are in each
		own    int   // Gaussians whose distance is from their own mean
		shared int   // centers
	}{
		{[]int{7, 6, 5}, 0, 3}, {[]int{5, 4}, 0, 2}, {[]int{5, 3}, 3, 1}, {[]int{4, 4, 1, 3, 6}, 4, 3}, {[]int{1, 1, 1}, 2, 1},
	} {
		g, params := grouped(test.groups)
		p, err := spn.Compile(g, params.Read64, spn.Options{Space: spn.Log, Type: simt.F32, Joint: 16})
		if err != nil {
			t.Fatal(err)
		}
		cells := map[simt.Value]bool{}
		distances := 0
		for _, in := range p.Module.Body {
			switch in.Op {
			case simt.Load:
				cells[in.Out] = true
			case simt.Sub:
				if cells[in.Args[0]] {
					distances++
				}
			}
		}
		if want := g.NumVars * (test.own + test.shared); distances != want {
			t.Errorf("groups of %v means: %d distances, want %d", test.groups, distances, want)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		rows := [][]float64{reference.MissingRow(g.NumVars)}
		for range 60 {
			row := reference.MissingRow(g.NumVars)
			for v := range row {
				if rng.IntN(3) > 0 {
					row[v] = float64(float32(100*float64(rng.IntN(len(test.groups)+1)) + 2*rng.NormFloat64()))
				}
			}
			rows = append(rows, row)
		}
		for _, space := range []spn.Space{spn.Log, spn.Scaled} {
			for _, typ := range []simt.Type{simt.F32, simt.F64} {
				check(t, fmt.Sprintf("groups of %v means", test.groups), g, params, spn.Options{Space: space, Type: typ, Joint: 16}, rows)
			}
		}
	}
}

// grouped returns a mixture of products of two Gaussians, whose means are in groups around multiples of 100.
func grouped(groups []int) (*circuit.Graph, reference.Params) {
	g := &circuit.Graph{NumVars: 2}
	var params reference.Params
	sum := circuit.Node{Kind: circuit.Sum, Units: 1}
	for k, n := range groups {
		for i := range n {
			for v := range 2 {
				g.Nodes = append(g.Nodes, circuit.Node{Units: 1, Var: v, Leaf: circuit.Gaussian{}})
				params = append(params, []float64{float64(100*k+i) + float64(v)/2, 2})
			}
			at := circuit.NodeID(len(g.Nodes))
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{at - 2, at - 1}})
			sum.Children, params = append(sum.Children, at), append(params, nil)
		}
	}
	g.Root = circuit.NodeID(len(g.Nodes))
	g.Nodes, params = append(g.Nodes, sum), append(params, slices.Repeat([]float64{1 / float64(len(sum.Children))}, len(sum.Children)))
	return g, params
}

// TestMixtureRange has cells whose squares are infinite in float32 where densities are not, and cells for which both are.
func TestMixtureRange(t *testing.T) {
	for _, leaves := range [][]float64{ // means and deviations of both variables' Gaussians, in each product
		{0, 1e5, 3e4, 2e5}, {0, 1e5, 1e7, 1e5}, {0, 1e5, 1e7, 4e5}, {0, 1, 1e5, 1}, {0, 0x1p40, -2e-9, 2e-9, 2e-9, 2e-9},
	} {
		g := &circuit.Graph{NumVars: 2}
		var params reference.Params
		sum := circuit.Node{Kind: circuit.Sum, Units: 1}
		for k := range len(leaves) / 2 {
			for v := range 2 {
				g.Nodes = append(g.Nodes, circuit.Node{Units: 1, Var: v, Leaf: circuit.Gaussian{}})
				params = append(params, leaves[2*k:][:2])
			}
			at := circuit.NodeID(len(g.Nodes))
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{at - 2, at - 1}})
			sum.Children, params = append(sum.Children, at), append(params, nil)
		}
		g.Root = circuit.NodeID(len(g.Nodes))
		g.Nodes, params = append(g.Nodes, sum), append(params, slices.Repeat([]float64{2 / float64(len(leaves))}, len(leaves)/2))
		p, err := spn.Compile(g, params.Read64, spn.Options{Space: spn.Log, Type: simt.F32, Joint: 16})
		if err != nil {
			t.Fatal(err)
		}
		var rows [][]float64
		for _, x := range []float64{0x1p40, 0x1p62, 0x1p66, 0x1p70, 0x1p78, 0x1p100, 0x1p127} {
			rows = append(rows, []float64{x, 0}, []float64{-x, math.NaN()}, []float64{x, -x})
		}
		eachRow(t, p, g, params, rows, func(r int, got, want float64) {
			if !(got == want || math.Abs(got-want) <= p.Bound.Of(want)) {
				t.Errorf("leaves %v, row %v: %v, want %v within %v", leaves, rows[r], got, want, p.Bound.Of(want))
			}
		})
	}
}
