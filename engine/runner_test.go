package engine_test

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// An Engine is the runner of circuits.
var _ engine.Runner = (*engine.Engine)(nil)

// TestSchema gives engines the schema of their rows: histograms over values read bins,
// numbers are scaled, and what does not fit the program is refused.
func TestSchema(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Var: 0, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Continuous, Edges: []float64{0, 1, 5}, Outside: 1e-3},
		{Kind: dataset.Continuous, Offset: 7, Scale: 100},
	}}
	params := reference.Params{{0.25, 0.75}, {0, 1}, nil}
	m := buildWith(t, g, params, engine.Options{Rows: 3, Schema: schema})
	if m.eng.Schema() != schema {
		t.Error("the engine has another schema")
	}
	if i := m.eng.Info(); i.Rows != 3 || i.Outputs != 1 || i.Device.Name != "cpu" {
		t.Errorf("info %+v", i)
	}
	nan := float32(math.NaN())
	b := &dataset.Batch{Rows: 7, Columns: []dataset.Cells{
		{Values: []float32{0, 0.999, 1, 5, 5.001, -1, nan}}, {Values: []float32{nan, nan, nan, nan, nan, nan, 0}},
	}}
	want := []float64{0.25, 0.25, 0.75 / 4, 0.75 / 4, 1e-3, 1e-3, 1 / math.Sqrt(2*math.Pi) / 100}
	ll := make([]float64, b.Rows)
	if err := engine.EvaluateBatch(t.Context(), m.eng, b, ll); err != nil {
		t.Fatal(err)
	}
	for r := range want {
		if !near(ll[r], math.Log(want[r]), 1e-5) {
			t.Errorf("row %d has log-likelihood %v, want %v", r, ll[r], math.Log(want[r]))
		}
	}
	for _, columns := range []int{0, 1, 3} {
		bad := &dataset.Schema{Columns: make([]dataset.Column, columns)}
		if _, err := engine.New(t.Context(), nil, m.eng.Program(), engine.Options{Rows: 3, Schema: bad}); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("a schema of %d columns: %v", columns, err)
		}
	}
}
