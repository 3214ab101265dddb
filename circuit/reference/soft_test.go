package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// TestQueriesSoftEnumeration compares what is known of cells with the sum over all rows that it
// allows, each weighed by its likelihood.
func TestQueriesSoftEnumeration(t *testing.T) {
	possible, softCells := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 31))
		g := Random(rng, RandomOptions{Discrete: true, MaxCodes: 4, Vars: 1 + int(seed%5), MaxUnits: 6, MaxNodes: 20})
		p, err := Init(g, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		ev = normalised(t, ev)
		rows := RandomRows(g, rng, 4, 0.4)
		soft := RandomSoft(g, rng, rows, 0.5)
		for r, row := range rows {
			states, err := SoftStates(g, row, soft[r])
			if err != nil {
				t.Fatal(err)
			}
			want := 0.0
			for state, likelihood := range states {
				ll, err := ev.LogLikelihood(state)
				if err != nil {
					t.Fatal(err)
				}
				want += likelihood * math.Exp(ll)
			}
			for _, e := range soft[r] {
				if e != nil {
					softCells++
				}
			}
			got, err := ev.SoftLogLikelihood(row, soft[r])
			if err != nil {
				t.Fatal(err)
			}
			if want > 0 {
				possible++
			}
			if !(math.Abs(math.Exp(got)-want) <= 1e-9*want) && !(want == 0 && math.IsInf(got, -1)) {
				t.Errorf("seed %d, row %d: probability %v, the rows have %v", seed, r, math.Exp(got), want)
			}
		}
	}
	if possible < 100 || softCells < 150 {
		t.Errorf("%d possible rows and %d cells are too few", possible, softCells)
	}
}

// TestSoftRanges compares ranges of a continuous variable with an integral of the density.
func TestSoftRanges(t *testing.T) {
	for _, leaf := range []circuit.Leaf{circuit.Gaussian{}, circuit.LogNormal{}} {
		g := &circuit.Graph{NumVars: 2, Nodes: []circuit.Node{
			{Kind: circuit.Input, Units: 3, Var: 0, Leaf: leaf},
			{Kind: circuit.Input, Units: 3, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
			{Kind: circuit.Product, Units: 3, Children: []circuit.NodeID{0, 1}},
			{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
		}, Root: 3}
		p, err := Init(g, 5, nil)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		const low, high, steps = 0.25, 1.75, 4000
		want, row := 0.0, []float64{math.NaN(), 1}
		for i := range steps { // midpoints
			ll, err := ev.LogLikelihood([]float64{low + (high-low)*(float64(i)+0.5)/steps, 1})
			if err != nil {
				t.Fatal(err)
			}
			want += math.Exp(ll) * (high - low) / steps
		}
		got, err := ev.SoftLogLikelihood(row, []*dataset.Evidence{{Low: low, High: high}, nil})
		if err != nil || !(math.Abs(math.Exp(got)-want) <= 1e-6*want) {
			t.Errorf("%s: probability %v, the integral is %v, %v", leaf.Name(), math.Exp(got), want, err)
		}
	}
}
