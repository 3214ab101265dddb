package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// TestStepRows checks that flows of more rows than there is room for are refused.
func TestStepRows(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 2}, TiedTo: circuit.None},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}, TiedTo: circuit.None},
	}}
	m := buildWith(t, g, reference.Params{{0.5, 0.5}, {1}}, engine.Options{Rows: 2048, Train: true})
	rows := make([][]float64, 2048)
	for i := range rows {
		rows[i] = []float64{float64(i % 2)}
	}
	b := m.batch(rows)
	ll := make([]float64, len(rows))
	ctx := context.Background()
	for range 2048 {
		if err := m.eng.Accumulate(ctx, b, 0, 2048, ll); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.eng.Accumulate(ctx, b, 0, 1, ll); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("Accumulate beyond 2^22 rows: %v, want ErrDevice", err)
	}
	if err := m.eng.Apply(ctx, kernels.Rule{Step: 1}); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.Accumulate(ctx, b, 0, 1, ll); err != nil {
		t.Errorf("Accumulate after Apply: %v", err)
	}
}
