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
	"github.com/pce-engine/pce/kernels/tensor"
)

// testTables trains leaves that many rows of many variables share, and wants each
// distribution to add up to 1 still: a count that has grown large loses small
// flows, which must not be lost to the distribution. A vocabulary has tables whose counts
// several threads share; a last step of two kinds has the same bits.
func testTables(t *testing.T, open Open, _ Depth) {
	for _, c := range []struct {
		name                       string
		codes, length, rows, steps int
		kinds                      int // of last steps
		tol                        float64
	}{
		// One division and one rounding of each of two masses.
		{"two codes", 2, 16, 512, 12, 1, 0x1p-22},
		// A few hundred masses count, and what they are divided by is a sum of them.
		{"vocabulary", 5000, 3, 130, 2, 2, 0x1p-20},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: c.codes} }
			g, err := structures.HMM(structures.HMMOptions{Length: c.length, Latents: 8, Tied: true, Leaf: leaf})
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(41, 42))
			batch := reference.Batch(reference.Schema(g), correlatedRows(rng, c.length, c.codes, c.rows))
			ctx := context.Background()
			dev := open(t)
			defer dev.Close()
			ll := make([]float64, c.rows)
			var after [][]float32
			for i := range c.kinds {
				m := Build(t, dev, g, initial(t, g), compile.DefaultOptions(), engine.Options{Rows: c.rows, Train: true})
				rule := tensor.Rule{Step: 1, Pseudocount: 0.01}
				for range c.steps {
					if err := m.Engine.Step(ctx, batch, 0, c.rows, rule, ll); err != nil {
						t.Fatal(err)
					}
				}
				if i == 0 {
					err = m.Engine.Step(ctx, batch, 0, c.rows, rule, ll)
				} else if err = m.Engine.Accumulate(ctx, batch, 0, c.rows, ll); err == nil {
					err = m.Engine.Apply(ctx, rule)
				}
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					after = m.Read(t)
				}
				sameBits(t, "fused", "by flows", after, m.Read(t))
			}
			worst := 0.0
			for id, params := range after {
				if g.Nodes[id].Kind != circuit.Input {
					continue
				}
				for u := 0; u+c.codes <= len(params); u += c.codes {
					total := 0.0
					for _, p := range params[u : u+c.codes] {
						total += float64(p)
					}
					worst = max(worst, math.Abs(total-1))
				}
			}
			if !(worst <= c.tol) {
				t.Errorf("a distribution is off 1 by %g after %d steps of %d rows", worst, c.steps+1, c.rows)
			}
		})
	}
}
