package engine_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
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
	for range 2047 {
		if err := m.eng.Accumulate(ctx, b, 0, 2048, ll); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.eng.Accumulate(ctx, b, 0, 2048, ll); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("Accumulate beyond 2^22 rows: %v, want ErrDevice", err)
	}
	if err := m.eng.ApplyOwners(ctx, kernels.Rule{Step: 1}, 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.Accumulate(ctx, b, 0, 1, ll); err != nil {
		t.Errorf("Accumulate after ApplyOwners: %v", err)
	}
}

// TestDomain checks that a value outside its leaf's domain is refused.
func TestDomain(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Poisson{}, TiedTo: circuit.None},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}, TiedTo: circuit.None},
	}}
	m := buildWith(t, g, reference.Params{{2}, {1}}, engine.Options{Rows: 8})
	ctx := context.Background()
	ll := make([]float64, 2)
	for _, bad := range []float64{-1, 0.5} {
		err := m.eng.LogLikelihood(ctx, m.batch([][]float64{{3}, {bad}}), ll)
		if !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), "row 1, variable 0") {
			t.Errorf("a count of %v: %v, want ErrFormat that names row 1", bad, err)
		}
	}
	if err := m.eng.LogLikelihood(ctx, m.batch([][]float64{{3}, {0}}), ll); err != nil {
		t.Error(err)
	}
}

// TestLimits wants training, and nothing else, to treat values beyond a limit as
// missing, and log-likelihoods to be those of scaled numbers.
func TestLimits(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{}, TiedTo: circuit.None},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}, TiedTo: circuit.None},
	}}
	const logScale = 2.5
	m := buildWith(t, g, reference.Params{{0, 1}, {1}}, engine.Options{Rows: 4, Train: true, Limits: []float64{4}, LogScales: []float64{logScale}})
	b := &dataset.Batch{Rows: 4, Columns: []dataset.Cells{{Values: []float32{4, -4, 4.0000005, -5}}}}
	density := func(x float64) float64 { return -x*x/2 - 0.5*math.Log(2*math.Pi) - logScale }
	step, all := make([]float64, 4), make([]float64, 4)
	if err := m.eng.Accumulate(t.Context(), b, 0, 4, step); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.LogLikelihood(t.Context(), b, all); err != nil {
		t.Fatal(err)
	}
	for r, v := range b.Columns[0].Values {
		want := density(float64(v))
		if !near(all[r], want, 1e-5) {
			t.Errorf("%v has log-likelihood %v, want %v", v, all[r], want)
		}
		if r > 1 {
			want = 0
		}
		if !near(step[r], want, 1e-5) {
			t.Errorf("%v has log-likelihood %v in training, want %v", v, step[r], want)
		}
	}
}
