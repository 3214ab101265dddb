package tensor_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestAnemoneArguments wants updates by Anemone that cannot be done to be refused
// and to leave the parameters as they were.
func TestAnemoneArguments(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 3, Latents: 2, Leaf: func(int) circuit.Leaf { return circuit.Gaussian{} }})
	if err != nil {
		t.Fatal(err)
	}
	start, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cputensor.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	m := kerneltest.Build(t, dev, g, start, compile.DefaultOptions(), engine.Options{Rows: 4, Train: true})
	batch := reference.Batch(reference.Schema(g), [][]float64{{0, 1, 2}, {1, 1, 0}})
	ll := make([]float64, 2)
	before := m.Read(t)
	if err := m.Engine.Step(ctx, batch, 0, 2, tensor.Rule{Step: 0.4, Anemone: &tensor.Anemone{Rows: 2}}, ll); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("fused: %v, want ErrDevice", err)
	}
	if err := m.Engine.Accumulate(ctx, batch, 0, 2, ll); err != nil {
		t.Fatal(err)
	}
	for _, a := range []tensor.Anemone{
		{Rows: 0},
		{Rows: 2, Momentum: 1},
		{Rows: 2, Momentum: 1 - 1e-12}, // 1 in float32
		{Rows: 2, Momentum: -0.1},
		{Rows: 2, Momentum: math.NaN()},
		{Rows: 2, Weight: math.NaN()},
	} {
		err := m.Engine.Apply(ctx, tensor.Rule{Step: 0.4, Anemone: &a})
		if !errors.Is(err, kernels.ErrDevice) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want ErrDevice in one line", a, err)
		}
	}
	after := m.Read(t)
	for id := range before {
		for i, x := range before[id] {
			if after[id][i] != x {
				t.Fatalf("node %d parameter %d moved from %v to %v", id, i, x, after[id][i])
			}
		}
	}
	if err := m.Engine.Apply(ctx, tensor.Rule{Step: 0.4, Anemone: &tensor.Anemone{Rows: 2}}); err != nil {
		t.Fatal(err)
	}
	flows := make([]int64, m.Result.Program.FlowLen())
	if err := m.Engine.ReadFlows(ctx, 0, flows); err != nil {
		t.Fatal(err)
	}
	for i, f := range flows {
		if f != 0 {
			t.Fatalf("flow %d is %d after the update, want 0", i, f)
		}
	}
}
