package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
)

// testTables trains leaves that many rows of many variables share, and wants each
// distribution to add up to 1 still: a count that has grown large loses small
// flows, which must not be lost to the distribution.
func testTables(t *testing.T, open Open, _ Depth) {
	const length, rows, steps = 16, 512, 12
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 2} }
	g, err := structures.HMM(structures.HMMOptions{Length: length, Latents: 8, Tied: true, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(41, 42))
	batch := reference.Batch(reference.Schema(g), correlatedRows(rng, length, 2, rows))
	ctx := context.Background()
	dev := open(t)
	defer dev.Close()
	m := Build(t, dev, g, initial(t, g), compile.DefaultOptions(), engine.Options{Rows: rows, Train: true})
	ll := make([]float64, rows)
	for range steps {
		if err := m.Engine.Step(ctx, batch, 0, rows, kernels.Rule{Step: 1, Pseudocount: 0.01}, ll); err != nil {
			t.Fatal(err)
		}
	}
	worst := 0.0
	for id, params := range m.Read(t) {
		if g.Nodes[id].Kind != circuit.Input {
			continue
		}
		for u := 0; u+1 < len(params); u += 2 {
			worst = max(worst, math.Abs(float64(params[u])+float64(params[u+1])-1))
		}
	}
	// One division and one rounding of each of two masses.
	if !(worst <= 0x1p-22) {
		t.Errorf("a distribution is off 1 by %g after %d steps of %d rows", worst, steps, rows)
	}
}
