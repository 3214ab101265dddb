package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// testMass adds up the probabilities of all states of 16 binary variables, before
// and after training.
func testMass(t *testing.T, open Open, depth Depth) {
	if testing.Short() {
		t.Skip("evaluates 65,536 states many times; run without -short")
	}
	// A brief suite marginalises every fourth variable, which leaves the mass.
	const vars = 16
	free := vars
	if depth == Brief {
		free = vars * 3 / 4
	}
	states := make([][]float64, 1<<free)
	for s := range states {
		rest := s
		for v := range vars {
			if free < vars && v%4 == 3 {
				states[s] = append(states[s], math.NaN())
				continue
			}
			states[s] = append(states[s], float64(rest&1))
			rest >>= 1
		}
	}
	ctx := context.Background()
	ll := make([]float64, len(states))
	rows := correlatedRows(rand.New(rand.NewPCG(7, 8)), vars, 2, 256)
	for _, s := range structured(t, 8, 2) {
		t.Run(s.name, func(t *testing.T) {
			dev := open(t)
			defer dev.Close()
			all := reference.Batch(reference.Schema(s.graph), states)
			batch := reference.Batch(reference.Schema(s.graph), rows)
			m := Build(t, dev, s.graph, initial(t, s.graph), compile.DefaultOptions(), engine.Options{Rows: 512, Train: true})
			mass := func(what string) {
				if err := m.Engine.LogLikelihood(ctx, all, ll); err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for _, l := range ll {
					sum += math.Exp(l)
				}
				if !near(sum, 1, 1e-5) {
					t.Errorf("%s: the probabilities of all states add up to %v, want 1", what, sum)
				}
			}
			if depth == Full {
				mass("untrained")
			}
			first := 0.0
			for step := range 30 {
				lo := step % 4 * 64
				if err := m.Engine.Step(ctx, batch, lo, lo+64, tensor.Rule{Step: 0.3, Pseudocount: 0.1}, ll[:64]); err != nil {
					t.Fatal(err)
				}
				if step < 4 {
					for _, l := range ll[:64] {
						first += l
					}
				}
			}
			last := 0.0
			if err := m.Engine.LogLikelihood(ctx, batch, ll[:256]); err != nil {
				t.Fatal(err)
			}
			for _, l := range ll[:256] {
				last += l
			}
			if !(last > first+1) {
				t.Errorf("training took the log-likelihood from %v to %v; it has learnt nothing", first, last)
			}
			mass("trained")
		})
	}
}
