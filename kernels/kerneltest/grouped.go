package kerneltest

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// irregular is a circuit whose layer of sums has seven distinct numbers of child
// blocks at block size 4: sum i of seven reads i+1 of the seven blocks of units.
func irregular() *circuit.Graph {
	g := &circuit.Graph{NumVars: 2}
	add := func(n circuit.Node) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	a := add(circuit.Node{Kind: circuit.Input, Units: 28, Var: 0, Leaf: circuit.Categorical{Categories: 5}})
	b := add(circuit.Node{Kind: circuit.Input, Units: 28, Var: 1, Leaf: circuit.Categorical{Categories: 3}})
	p := add(circuit.Node{Kind: circuit.Product, Units: 28, Children: []circuit.NodeID{a, b}})
	e := &circuit.Edges{Rows: 4, Cols: 4}
	for r := range int32(7) {
		for c := range r + 1 {
			e.Pairs = append(e.Pairs, [2]int32{r, (r + 3*c) % 7})
		}
	}
	sortPairs(e.Pairs)
	s := add(circuit.Node{Kind: circuit.Sum, Units: 28, Children: []circuit.NodeID{p}, Edges: e})
	g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{s}})
	return g
}

func sortPairs(pairs [][2]int32) {
	for i := range pairs {
		for k := i; k > 0 && (pairs[k][0] < pairs[k-1][0] || pairs[k][0] == pairs[k-1][0] && pairs[k][1] < pairs[k-1][1]); k-- {
			pairs[k], pairs[k-1] = pairs[k-1], pairs[k]
		}
	}
}

// testGrouped runs a layer of many distinct child counts in one to eight groups:
// grouping and block size change no result.
func testGrouped(t *testing.T, open Open, _ Depth) {
	g := irregular()
	p := initial(t, g)
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(18, 19)), 40, 0.1)
	rule := tensor.Rule{Step: 0.5, Pseudocount: 0.1}
	ll, want, err := oracle(g, p, rows, rule)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	batch := reference.Batch(reference.Schema(g), rows)
	most := 0
	for _, size := range []int{1, 4, 8} {
		for groups := 1; groups <= 8; groups++ {
			dev := open(t)
			defer dev.Close()
			m := Build(t, dev, g, p, compile.Options{MaxGroups: groups, BlockSize: size}, engine.Options{Rows: 40, Train: true})
			if l := m.Result.Report.Layers[0]; size == 4 {
				if len(l.ChildCounts) != 7 || len(l.Groups) > groups {
					t.Fatalf("the layer has child counts %v in groups %v of at most %d; want seven counts", l.ChildCounts, l.Groups, groups)
				}
				most = max(most, len(l.Groups))
			}
			got := make([]float64, len(rows))
			if err := m.Engine.Step(ctx, batch, 0, len(rows), rule, got); err != nil {
				t.Fatal(err)
			}
			compareLL(t, rows, got, ll)
			compareParams(t, "grouped", g, m.Read(t), want)
		}
	}
	if most != 7 {
		t.Errorf("seven distinct child counts made at most %d groups, want 7", most)
	}
}
