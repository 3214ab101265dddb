package tensor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestPaddingOfFamilies wants the same step from one thread and from eight, which share the columns of a
// leaf. Few units in large blocks leave some of these shares padding alone.
func TestPaddingOfFamilies(t *testing.T) {
	tree, err := structures.GridTree(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, units := range []int{1, 9, 16, 17, 33, 65} {
		t.Run(fmt.Sprintf("units=%d", units), func(t *testing.T) {
			leaf := func(int) circuit.Leaf { return circuit.Binomial{Trials: 5} }
			g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: units, Leaf: leaf})
			if err != nil {
				t.Fatal(err)
			}
			start, err := reference.Init(g, 3, nil)
			if err != nil {
				t.Fatal(err)
			}
			rows := reference.RandomRows(g, rand.New(rand.NewPCG(1, uint64(units))), 40, 0.2)
			co := compile.DefaultOptions()
			co.BlockSize = 32
			var steps [][][]float32
			for _, threads := range []int{1, 8} {
				d := opener(micro.All()[0], threads)(t)
				defer d.Close()
				m := kerneltest.Build(t, d, g, start, co, engine.Options{Rows: len(rows), Train: true})
				b := reference.Batch(reference.Schema(g), rows)
				if err := m.Engine.Step(context.Background(), b, 0, len(rows), tensor.Rule{Step: 0.6, Pseudocount: 0.1}, make([]float64, len(rows))); err != nil {
					t.Fatal(err)
				}
				steps = append(steps, m.Read(t))
			}
			if !reflect.DeepEqual(steps[0], steps[1]) {
				t.Error("eight threads end a step with other parameters than one")
			}
		})
	}
}
