package kerneltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// testWidths takes a step with nodes of 1 to 256 units, on and off the edges of
// blocks and tiles, and with each size of blocks for some of them.
func testWidths(t *testing.T, open Open, _ Depth) {
	widths := []int{1, 3, 7, 8, 15, 17, 31, 32, 33, 63, 64, 65, 100, 127, 129, 200, 256}
	if testing.Short() {
		widths = []int{1, 7, 33, 65, 129, 256}
	}
	for _, units := range widths {
		t.Run(fmt.Sprintf("units=%d", units), func(t *testing.T) { checkWidth(t, open, units, 0) })
	}
	for _, size := range []int{1, 2, 4, 8, 16, 32} {
		t.Run(fmt.Sprintf("blocks=%d", size), func(t *testing.T) { checkWidth(t, open, 37, size) })
	}
}

// checkWidth compares a step of a tree of four variables with the oracle's.
func checkWidth(t *testing.T, open Open, units, size int) {
	dev := open(t)
	defer dev.Close()
	tree, err := structures.GridTree(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: units, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	start := initial(t, g)
	rng := rand.New(rand.NewPCG(uint64(units), 31))
	rows := append(correlatedRows(rng, 4, 3, 30), reference.RandomRows(g, rng, 7, 0.3)...)
	rule := tensor.Rule{Step: 0.6, Pseudocount: 0.1}
	want, after, err := oracle(g, start, rows, rule)
	if err != nil {
		t.Fatal(err)
	}
	co := compile.DefaultOptions()
	co.BlockSize = size
	m := Build(t, dev, g, start, co, engine.Options{Rows: len(rows), Train: true})
	ll := make([]float64, len(rows))
	if err := m.Engine.Step(context.Background(), reference.Batch(reference.Schema(g), rows), 0, len(rows), rule, ll); err != nil {
		t.Fatal(err)
	}
	compareLL(t, rows, ll, want)
	compareParams(t, "step", g, m.Read(t), after)
}
