package tensor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestPrecision wants products of lower precision from blocks of 16 units on, where
// the module asks for them.
func TestPrecision(t *testing.T) {
	t.Parallel()
	dev := emulated(emulator.Options{})(t)
	defer dev.Close()
	g := reference.Random(rand.New(rand.NewPCG(1, 2)), reference.RandomOptions{Vars: 2})
	for _, block := range []int{8, 16} {
		o := compile.DefaultOptions()
		o.BlockSize = block
		r, err := compile.Compile(g, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []layers.Module{{}, {Train: true}, {Mixed: true}, {Train: true, Mixed: true}} {
			m.Program, m.Rows = r.Program, 4
			p, err := kernels.LoadAs[tensor.Program](t.Context(), dev, m)
			if err != nil {
				t.Fatal(err)
			}
			mixed := m.Mixed && block >= 16
			if got, want := p.Precision(), (tensor.Precision{Values: mixed, Flows: mixed && m.Train}); got != want {
				t.Errorf("blocks of %d, train %v, mixed %v: precision %+v, want %+v", block, m.Train, m.Mixed, got, want)
			}
			p.Free()
			if got := p.Precision(); got != (tensor.Precision{}) {
				t.Errorf("after Free: precision %v", got)
			}
		}
	}
}
