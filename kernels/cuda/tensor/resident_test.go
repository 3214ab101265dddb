package tensor_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestResident trains on a card with room for the operands of sums in shared memory,
// where products of many factors are kept, and on one without, where they are formed
// again, and wants the same bits.
func TestResident(t *testing.T) {
	s := &sketch{units: 129}
	var list []circuit.NodeID
	for range 6 {
		list = append(list, s.input(circuit.Categorical{Categories: 3}))
	}
	many := []circuit.NodeID{list[0], list[1], list[4], list[5]} // factors: such a product is kept
	first, other := s.sum(s.product(many...)), s.sum(s.product(many...), s.product(many...))
	g := s.root(s.product(s.sum(s.product(first, list[2]), s.product(other, list[2])), list[3]))
	start, err := reference.Init(g, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 70
	batch := reference.Batch(reference.Schema(g), reference.RandomRows(g, rand.New(rand.NewPCG(3, 4)), n, 0.2))
	var want []float64
	var moved [][]float32
	for _, shared := range []int{163 << 10, 48 << 10} {
		dev := emulated(emulator.Options{SharedMemory: shared})(t)
		defer dev.Close()
		m := kerneltest.Build(t, dev, g, start, compile.DefaultOptions(), engine.Options{Rows: n, Train: true})
		tables, err := plan.NewTables(layers.Module{Program: m.Result.Program, Rows: n, Train: true})
		if err != nil {
			t.Fatal(err)
		}
		tables.Shared = shared
		s := plan.NewSchedule(tables, true)
		uses := slices.ContainsFunc(s.Forward, func(w plan.Work) bool {
			return w.Kernel == tensor.KernelForwardResident && w.Shared > 0
		})
		if uses != (shared > 48<<10) {
			t.Errorf("with %d bytes of shared memory, operands stay there: %v", shared, uses)
		}
		kept := slices.ContainsFunc(s.Tables.Elements, func(e tensor.Element) bool { return e.Formed != tensor.NotKept })
		if kept != uses {
			t.Errorf("with %d bytes of shared memory, products are kept: %v", shared, kept)
		}
		ll := make([]float64, n)
		for range 2 { // the second step from parameters that differ
			if err := m.Engine.Step(context.Background(), batch, 0, n, contract.Rule{Step: 0.7, Pseudocount: 0.05}, ll); err != nil {
				t.Fatal(err)
			}
		}
		params := m.Read(t)
		if want == nil {
			want, moved = ll, params
		}
		if !slices.Equal(ll, want) {
			t.Error("other log-likelihoods without the shared memory")
		}
		if !slices.EqualFunc(params, moved, slices.Equal) {
			t.Error("other parameters without the shared memory")
		}
	}
}
