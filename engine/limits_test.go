package engine_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestStepRows checks that flows of more rows than there is room for are refused.
func TestStepRows(t *testing.T) {
	if testing.Short() {
		t.Skip("a step of as many rows as flows have room for; without -short")
	}
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
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
	if err := m.eng.Apply(ctx, tensor.Rule{Step: 1}); err != nil {
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
	if err := m.eng.ApplyOwners(ctx, tensor.Rule{Step: 1}, 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.Accumulate(ctx, b, 0, 1, ll); err != nil {
		t.Errorf("Accumulate after ApplyOwners: %v", err)
	}
}

// TestDomain checks that a value outside its leaf's domain is refused.
func TestDomain(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Poisson{}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
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
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	const logScale = 2.5
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Scale: math.Exp(logScale)}}}
	m := buildWith(t, g, reference.Params{{0, 1}, {1}}, engine.Options{Rows: 4, Train: true, Limits: []float64{4}, Schema: schema})
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

// TestLastCodes takes the first and the last code of a domain and a missing cell,
// as codes and as values, each for what it is.
func TestLastCodes(t *testing.T) {
	p := []float64{0.1, 0.2, 0.3, 0.4}
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 4}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	m := buildWith(t, g, reference.Params{p, {1}}, engine.Options{Rows: 8})
	want := []float64{math.Log(0.1), math.Log(0.4), 0}
	for name, cells := range map[string]dataset.Cells{
		"codes":  {Codes: dataset.Codes{Narrow: []uint16{0, 3, math.MaxUint16}}},
		"wide":   {Codes: dataset.Codes{Wide: []uint32{0, 3, math.MaxUint32}}},
		"values": {Values: []float32{0, 3, float32(math.NaN())}},
	} {
		ll := make([]float64, 3)
		if err := m.eng.LogLikelihood(context.Background(), &dataset.Batch{Rows: 3, Columns: []dataset.Cells{cells}}, ll); err != nil {
			t.Fatal(err)
		}
		for i := range ll {
			if !(math.Abs(ll[i]-want[i]) <= 1e-6) {
				t.Errorf("%s: row %d has %v, want %v", name, i, ll[i], want[i])
			}
		}
	}
}

// TestRowsOfLaunches opens engines for the fewest and the most rows of a launch.
func TestRowsOfLaunches(t *testing.T) {
	g := mixedGraph()
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for rows, ok := range map[int]bool{-1: false, 1: true, 2048: true, 2049: false} {
		dev, err := cputensor.Open(cpu.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(context.Background(), dev, r.Program, engine.Options{Rows: rows, OwnsDevice: true})
		if (err == nil) != ok || err != nil && !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%d rows: %v, want an engine: %v", rows, err, ok)
		}
		if err == nil {
			e.Close()
		}
	}
}

// TestStatScales trains a Gaussian on values up to the range that it was told, at
// both ends of what a scale must hold: squares of large numbers overflow the
// integers of flows where their scale is too small, and small numbers vanish on
// the grid where it is too large.
func TestStatScales(t *testing.T) {
	for _, size := range []float64{1e-3, 1, 3e5} {
		g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
			{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{MinSigma: 1e-9}},
			{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
		}}
		m := buildWith(t, g, reference.Params{{0, size}, {1}}, engine.Options{Rows: 64, Train: true, Ranges: []float64{size}})
		rows := make([][]float64, 64)
		for i := range rows {
			rows[i] = []float64{size * float64(2*(i%4)-3) / 3}
		}
		ll := make([]float64, len(rows))
		ctx := context.Background()
		if err := m.eng.Accumulate(ctx, m.batch(rows), 0, len(rows), ll); err != nil {
			t.Fatal(err)
		}
		flows := make([]int64, m.eng.Program().FlowLen())
		if err := m.eng.ReadFlows(ctx, 0, flows); err != nil {
			t.Fatal(err)
		}
		at := m.eng.Program().Inputs[0].Params + int64(m.eng.Program().Width(m.eng.Program().Inputs[0].Vector))
		// The squares add up to 64·(5/9)·size²; their scale is the power of two at or above size², at least 1.
		scale := math.Exp2(math.Ceil(2 * math.Log2(max(1, size))))
		got, want := float64(flows[at])*m.eng.Grid()*scale, 64*5./9*size*size
		if !(math.Abs(got-want) <= 1e-5*want) {
			t.Errorf("values up to %v: the squares add up to %v, want %v", size, got, want)
		}
		if err := m.eng.Apply(ctx, tensor.Rule{Step: 1}); err != nil {
			t.Fatal(err)
		}
		width := m.eng.Program().Width(m.eng.Program().Inputs[0].Vector)
		sigma := make([]float32, 1)
		if err := m.eng.ReadParams(ctx, m.eng.Program().Inputs[0].Params+int64(width), sigma); err != nil {
			t.Fatal(err)
		}
		if want := math.Sqrt(5./9) * size; !(math.Abs(float64(sigma[0])-want) <= 1e-4*want) {
			t.Errorf("values up to %v: sigma is %v, want %v", size, sigma[0], want)
		}
	}
}
