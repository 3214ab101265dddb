package tensor_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// wideSum is a sum of n products, equally likely, of a leaf of their own and a leaf that all
// share.
func wideSum(n int) (*circuit.Graph, reference.Params) {
	g, p := &circuit.Graph{NumVars: 2}, reference.Params{}
	leaf := func(v int, theta ...float64) circuit.NodeID {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Categorical{Categories: len(theta)}})
		p = append(p, theta)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	shared := leaf(1, 0.6, 0.4)
	top := circuit.Node{Kind: circuit.Sum, Units: 1}
	weights := make([]float64, n)
	for i := range n {
		own := leaf(0, 0.3, 0.7)
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{own, shared}})
		p = append(p, nil)
		top.Children = append(top.Children, circuit.NodeID(len(g.Nodes)-1))
		weights[i] = 1 / float64(n)
	}
	g.Nodes = append(g.Nodes, top)
	p = append(p, weights)
	g.Root = circuit.NodeID(len(g.Nodes) - 1)
	return g, p
}

// TestWideSums wants log-likelihoods and weights of a sum of 60,000 single units as exact as
// those of others. Roundings of equal terms have one sign, and must not add up.
func TestWideSums(t *testing.T) {
	g, p := wideSum(60000)
	missing := math.NaN()
	rows := [][]float64{{0, missing}, {1, missing}, {missing, missing}, {0, 0}, {1, 1}, {missing, 0}}
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, len(rows))
	for r, row := range rows {
		if want[r], err = ev.LogLikelihood(row); err != nil {
			t.Fatal(err)
		}
	}
	flows, err := ev.Flows(rows)
	if err != nil {
		t.Fatal(err)
	}
	after := ev.EM(flows, reference.Step{Size: 0.5, Pseudocount: 0.1})
	for _, set := range sets() {
		t.Run(set.Name, func(t *testing.T) {
			dev := opener(set, 2)(t)
			defer dev.Close()
			m := kerneltest.Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: len(rows), Train: true})
			ll := make([]float64, len(rows))
			if err := m.Engine.Step(t.Context(), reference.Batch(reference.Schema(g), rows), 0, len(rows), tensor.Rule{Step: 0.5, Pseudocount: 0.1}, ll); err != nil {
				t.Fatal(err)
			}
			for r, got := range ll {
				if !(math.Abs(got-want[r]) <= 1e-5) {
					t.Errorf("row %d has %v, want %v, off by %.2g", r, got, want[r], got-want[r])
				}
			}
			got := m.Read(t)
			for id, theta := range after {
				for i, w := range theta {
					if !(math.Abs(float64(got[id][i])/w-1) <= 1e-5) {
						t.Fatalf("parameter %d of node %d becomes %v, want %v", i, id, got[id][i], w)
					}
				}
			}
		})
	}
}

// TestLateTasks wants a program that trains single units to have no memory for the values of all rows side by side, several times all else,
// before draws need it: these are those of a program that has had it from the beginning, and what came late is given back.
func TestLateTasks(t *testing.T) {
	g, p := wideSum(400)
	rows := make([][]float64, 512)
	for r := range rows {
		rows[r] = []float64{math.NaN(), math.NaN()}
	}
	var drawn [2]*dataset.Batch
	var plans [2]cputensor.Memory
	for i, queries := range []bool{false, true} {
		dev, err := cputensor.Open(cpu.Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		m := kerneltest.Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: len(rows), Train: true, Queries: queries})
		if plans[i], err = cputensor.Plan(layers.Module{Program: m.Result.Program, Rows: len(rows), Train: true, Queries: queries}, cpu.Options{Threads: 2}); err != nil {
			t.Fatal(err)
		}
		before := dev.InUse()
		drawn[i] = reference.Batch(reference.Schema(g), rows)
		if err := m.Engine.Sample(t.Context(), drawn[i], 3, 0); err != nil {
			t.Fatal(err)
		}
		if more := dev.InUse() - before; (more > 0) == queries {
			t.Errorf("queries %v: draws take %d bytes more", queries, more)
		}
		if err := m.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		if n := dev.InUse(); n != 0 {
			t.Errorf("queries %v: %d bytes are in use after Close", queries, n)
		}
	}
	if late := plans[0]; late.Values != 0 || 4*late.Scratch > plans[1].Values+plans[1].Scratch {
		t.Errorf("a program that trains has %+v, one that answers queries, too, %+v", late, plans[1])
	}
	for v := range drawn[0].Columns {
		for r := range rows {
			if a, b := drawn[0].Columns[v].Codes.At(r), drawn[1].Columns[v].Codes.At(r); a != b {
				t.Fatalf("row %d, column %d: %d is drawn, want %d", r, v, a, b)
			}
		}
	}
}
