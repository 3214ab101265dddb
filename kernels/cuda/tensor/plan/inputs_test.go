package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/layers"
)

// TestBreaksAreNotTrained: histograms with breaks of their own have kernels for queries alone.
func TestBreaksAreNotTrained(t *testing.T) {
	tree, err := structures.GridTree(2, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(int) circuit.Leaf { return circuit.RealHistogram{Breaks: []float64{0, 1, 2.5}} }
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 2, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plan.NewTables(layers.Module{Program: r.Program, Rows: 8, Queries: true}); err != nil {
		t.Errorf("queries: %v", err)
	}
	_, err = plan.NewTables(layers.Module{Program: r.Program, Rows: 8, Train: true})
	if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), "real-histogram") {
		t.Errorf("training: %v, want an error that names the leaf", err)
	}
}
