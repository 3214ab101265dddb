package engine_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/engine"
)

// TestPosteriorRoom wants the room that posteriors take on the host to be made once: a search for completions asks for them hundreds of
// times, and each room was garbage then.
func TestPosteriorRoom(t *testing.T) {
	const vars, codes, rows = 8, 4000, 64
	g, err := structures.HMM(structures.HMMOptions{Length: vars, Latents: 2, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: codes} }})
	if err != nil {
		t.Fatal(err)
	}
	m := build(t, g, engine.Options{Rows: rows, Queries: true})
	list := reference.RandomRows(g, rand.New(rand.NewPCG(3, 4)), rows, 0.5)
	list[0][0], list[1][1] = math.NaN(), math.NaN()
	ask := func() uint64 {
		var before, after runtime.MemStats
		b := m.batch(list)
		ll, bound := make([]float64, rows), make([]float64, rows)
		runtime.ReadMemStats(&before)
		if err := m.eng.MPE(t.Context(), b, engine.MPEOptions{Beam: 2, Sweeps: 2}, ll, bound); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	ask()
	if got := ask(); got > 4*vars*codes*rows {
		t.Errorf("a second call allocates %d bytes; the posteriors of all rows have %d", got, 4*vars*codes*rows)
	}
}
