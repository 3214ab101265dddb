package cuda_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cuda/plan"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestResident evaluates rows on a card with room for the operands of sums in shared
// memory and on one without, and wants the same bits.
func TestResident(t *testing.T) {
	s := &sketch{units: 129}
	var list []circuit.NodeID
	for range 4 {
		list = append(list, s.input(circuit.Categorical{Categories: 3}))
	}
	first, other := s.sum(s.product(list[0], list[1])), s.sum(s.product(list[0], list[1]))
	g := s.root(s.product(s.sum(s.product(first, list[2]), s.product(other, list[2])), list[3]))
	start, err := reference.Init(g, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 70
	batch := reference.Batch(reference.Schema(g), reference.RandomRows(g, rand.New(rand.NewPCG(3, 4)), n, 0.2))
	var want []float64
	for _, shared := range []int{163 << 10, 48 << 10} {
		dev := emulated(emulator.Options{SharedMemory: shared})(t)
		defer dev.Close()
		m := kerneltest.Build(t, dev, g, start, compile.DefaultOptions(), engine.Options{Rows: n})
		tables, err := plan.NewTables(layers.Module{Program: m.Result.Program, Rows: n})
		if err != nil {
			t.Fatal(err)
		}
		tables.Shared = shared
		uses := slices.ContainsFunc(plan.NewSchedule(tables, false).Forward, func(w plan.Work) bool {
			return w.Kernel == tensor.KernelForwardResident && w.Shared > 0
		})
		if uses != (shared > 48<<10) {
			t.Errorf("with %d bytes of shared memory, operands stay there: %v", shared, uses)
		}
		ll := make([]float64, n)
		if err := m.Engine.LogLikelihood(context.Background(), batch, ll); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = ll
		}
		if !slices.Equal(ll, want) {
			t.Error("other log-likelihoods without the shared memory")
		}
	}
}
