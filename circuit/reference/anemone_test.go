package reference

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// TestVisitsAreFlowsWithoutEvidence: where every cell is missing, the flow
// through a unit is the chance to reach it.
func TestVisitsAreFlowsWithoutEvidence(t *testing.T) {
	for seed := range uint64(100) {
		g, ev, _ := random(t, seed, RandomOptions{})
		row := make([]float64, g.NumVars)
		for v := range row {
			row[v] = math.NaN()
		}
		f, err := ev.Flows([][]float64{row})
		if err != nil {
			t.Fatal(err)
		}
		want := make([][]float64, len(g.Nodes))
		for i := range want {
			want[i] = make([]float64, g.Nodes[i].Units)
		}
		total := 0.0
		for i := range f.Nodes {
			for u, x := range f.Nodes[i] {
				want[g.Owner(circuit.NodeID(i))][u] += x
				if g.Nodes[i].Kind == circuit.Input {
					total += x
				}
			}
		}
		for i, got := range ev.Visits() {
			for u, x := range got {
				// float32 parameters are normalised to 2^-24 a level, and flows are shares.
				if !near(x, want[i][u], 1e-5*max(1, want[i][u])) {
					t.Errorf("seed %d: node %d unit %d has %v visits, want %v", seed, i, u, x, want[i][u])
				}
			}
		}
		if !near(total, float64(g.NumVars), 1e-5*float64(g.NumVars)) {
			t.Errorf("seed %d: %v visits of inputs for %d variables", seed, total, g.NumVars)
		}
	}
}

// TestAnemoneByHand follows two updates of a coin that chooses between two
// certain values, and of one of them that is never chosen, worked out on paper.
func TestAnemoneByHand(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Indicator{Domain: 2, Value: 0}},
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Indicator{Domain: 2, Value: 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0, 1}},
	}, Root: 2}
	p := Params{nil, nil, {0.5, 0.5}}
	run := Anemone{Momentum: 0.5}
	// Rows 0 0 0 1: A = (1.5, 0.5), weight ½, F = (3, 1); G = 0.4/4·F + 0.6·θ =
	// (0.6, 0.4); θ = (G + 0.1) / 1.2.
	// Rows 1 1: A = (0.75, 1.25), weight ¾, F = (1, 5/3); G = 0.2·F + 0.6·θ.
	first := 0.7 / 1.2
	a, b := 0.2+0.6*first, 0.2*5/3+0.6*(1-first)
	for step, want := range []float64{first, (a + 0.1) / (a + b + 0.2)} {
		ev, err := New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		rows := [][][]float64{{{0}, {0}, {0}, {1}}, {{1}, {1}}}[step]
		f, err := ev.Flows(rows)
		if err != nil {
			t.Fatal(err)
		}
		p = run.Step(ev, f, len(rows), Step{Size: 0.4, Pseudocount: 0.2})
		if !near(p[2][0], want, 1e-15) || !near(p[2][0]+p[2][1], 1, 1e-15) {
			t.Errorf("update %d: %v, want %v first", step+1, p[2], want)
		}
	}
}

// TestAnemoneLeaves compares what inputs get from Leaf.MStep with the rule as it
// is written: an M-step on the blend of the statistics.
func TestAnemoneLeaves(t *testing.T) {
	for _, leaf := range []circuit.Leaf{circuit.Categorical{Categories: 3}, circuit.Gaussian{}, circuit.Binomial{Trials: 4}, circuit.Poisson{}} {
		g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{
			{Kind: circuit.Input, Units: 2, Leaf: leaf},
			{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
		}, Root: 1}
		p, err := Init(g, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := New(g, p)
		if err != nil {
			t.Fatal(err)
		}
		rows := [][]float64{{0}, {2}, {1}, {1}, {math.NaN()}}
		f, err := ev.Flows(rows)
		if err != nil {
			t.Fatal(err)
		}
		const size = 0.3
		run := Anemone{Momentum: 0.9}
		got := run.Step(ev, f, len(rows), Step{Size: size})
		for u := range 2 {
			old := leafParams(g, p, 0, u)
			want := append([]float64{}, old...)
			mean, variance := leaf.Moments(old)
			expected := []float64{mean, variance + mean*mean}
			if leaf.Codes() > 0 {
				expected = make([]float64, leaf.NumStats())
				t1 := make([]float64, leaf.NumStats())
				for c := range leaf.Codes() {
					leaf.Stats(float64(c), t1)
					for k, x := range t1 {
						expected[k] += math.Exp(leaf.LogProb(old, float64(c))) * x
					}
				}
			}
			visits := (1 - size) * p[1][u]
			sum := make([]float64, leaf.NumStats())
			for k := range sum {
				sum[k] = size/5*f.Stats[0][u*len(sum)+k] + visits*expected[k]
			}
			leaf.MStep(want, sum, size/5*f.Weights[0][u]+visits, 0, 1)
			for k, w := range want {
				if x := leafParams(g, got, 0, u)[k]; !near(x, w, 1e-6*max(1, math.Abs(w))) { // float32 starts
					t.Errorf("%s unit %d: parameter %d is %v, want %v", leaf.Name(), u, k, x, w)
				}
			}
		}
	}
}
