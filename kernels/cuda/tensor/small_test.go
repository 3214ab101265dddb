package tensor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/kerneltest"
)

// openOn opens a device on a card, until the test ends.
func openOn(t testing.TB, card cuda.Driver) *cuda.Device {
	t.Helper()
	dev, err := executor.Open("emulator", func() (cuda.Driver, error) { return card, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// small is a random circuit with parameters and rows.
type small struct {
	graph  *circuit.Graph
	params reference.Params
	batch  *dataset.Batch
}

func newSmall(t testing.TB, vars, rows int) *small {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 6))
	g := reference.Random(rng, reference.RandomOptions{Vars: vars})
	p, err := reference.Init(g, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &small{g, p, reference.Batch(reference.Schema(g), reference.RandomRows(g, rng, rows, 0.1))}
}

// build loads the circuit for training on a device.
func (s *small) build(t testing.TB, dev kernels.Device) *kerneltest.Model {
	t.Helper()
	return kerneltest.Build(t, dev, s.graph, s.params, compile.DefaultOptions(), engine.Options{Rows: s.batch.Rows, Train: true})
}
