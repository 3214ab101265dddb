package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
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
	m := buildWith(t, g, reference.Params{{0, 1}, {1}}, engine.Options{Rows: 4, Train: true, Limits: []engine.Range{{Min: -4, Max: 4}}, Schema: schema})
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

// TestNarrowCells takes narrow codes for a domain that 16 bits do not hold: the largest number marks a missing cell there, too.
func TestNarrowCells(t *testing.T) {
	p := make([]float64, 70_000)
	for i := range p {
		p[i] = 1 / float64(len(p))
	}
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: len(p)}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	m := buildWith(t, g, reference.Params{p, {1}}, engine.Options{Rows: 8})
	ll := make([]float64, 3)
	b := &dataset.Batch{Rows: 3, Columns: []dataset.Cells{{Codes: dataset.Codes{Narrow: []uint16{0, math.MaxUint16 - 1, math.MaxUint16}}}}}
	if err := m.eng.LogLikelihood(t.Context(), b, ll); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{math.Log(p[0]), math.Log(p[0]), 0} {
		if !near(ll[i], want, 1e-5) {
			t.Errorf("row %d has %v, want %v", i, ll[i], want)
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
	for _, size := range []float64{1e-12, 1e-3, 1, 3e5} {
		g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
			{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{MinSigma: 1e-15}},
			{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
		}}
		m := buildWith(t, g, reference.Params{{0, size}, {1}}, engine.Options{Rows: 64, Train: true, Ranges: []engine.Range{{Min: -size, Max: size}}})
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
		// The squares add up to 64·(5/9)·size²; their scale is the power of two at or above size².
		scale := math.Exp2(math.Ceil(2 * math.Log2(size)))
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

// TestStatScalesOfOwners trains leaves whose statistics differ in size from those of others
// that have a column or parameters in common with them, and compares them with float64.
func TestStatScalesOfOwners(t *testing.T) {
	const wide = 3e5
	input := func(v int, l circuit.Leaf) circuit.Node {
		return circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: l}
	}
	sum := func(children ...circuit.NodeID) circuit.Node {
		return circuit.Node{Kind: circuit.Sum, Units: 1, Children: children}
	}
	shared := input(1, circuit.Gaussian{})
	shared.Tie = circuit.TieTo(0)
	for _, c := range []struct {
		name   string
		graph  circuit.Graph
		params reference.Params
		row    func(i float64) []float64
	}{
		{
			"the owner's column is narrow",
			circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{input(0, circuit.Gaussian{}), shared, {Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}}, sum(2)}},
			reference.Params{{0, wide}, {}, {}, {1}},
			func(i float64) []float64 { return []float64{i / 10, wide * (i - 3)} },
		},
		{
			"families of one column",
			circuit.Graph{NumVars: 1, Root: 3, Nodes: []circuit.Node{input(0, circuit.LogNormal{}), input(0, circuit.Gaussian{}), input(0, circuit.LogNormal{}), sum(0, 1, 2)}},
			reference.Params{{math.Log(wide), 0.1}, {wide, wide / 10}, {math.Log(wide), 0.2}, {0.25, 0.5, 0.25}},
			func(i float64) []float64 { return []float64{wide * (1 + i/10)} },
		},
	} {
		var rows [][]float64
		ranges := slices.Repeat([]engine.Range{{Min: math.Inf(1), Max: math.Inf(-1)}}, c.graph.NumVars)
		for i := range 70 {
			row := c.row(float64(i % 7))
			for v := range row {
				row[v] = float64(float32(row[v]))
				ranges[v] = engine.Range{Min: min(ranges[v].Min, row[v]), Max: max(ranges[v].Max, row[v])}
			}
			rows = append(rows, row)
		}
		m := buildWith(t, &c.graph, c.params, engine.Options{Rows: len(rows), Train: true, Ranges: ranges})
		ctx := context.Background()
		if err := m.eng.Accumulate(ctx, m.batch(rows), 0, len(rows), make([]float64, len(rows))); err != nil {
			t.Fatal(err)
		}
		if err := m.eng.Apply(ctx, tensor.Rule{Step: 1}); err != nil {
			t.Fatal(err)
		}
		flows, err := m.ref.Flows(rows)
		if err != nil {
			t.Fatal(err)
		}
		want := m.ref.EM(flows, reference.Step{Size: 1})
		for i := range m.prog.Map.Len() {
			at, n := m.prog.Map.Region(i)
			id := m.prog.Map.Node(i)
			region, got := make([]float32, n), make([]float32, len(want[id]))
			if err := m.eng.ReadParams(ctx, at, region); err != nil {
				t.Fatal(err)
			}
			if err := m.prog.Map.Unpack(i, region, got); err != nil {
				t.Fatal(err)
			}
			for k, w := range want[id] {
				if tol := 1e-4 * max(math.Abs(w), math.Abs(want[id][len(got)-1])); !(math.Abs(float64(got[k])-w) <= tol) {
					t.Errorf("%s: parameter %d of node %d is %v, want %v", c.name, k, id, got[k], w)
				}
			}
		}
	}
}

// TestStatsOverflow trains on cells beyond the range that the engine was told, whose squares
// have no place in flows: at once, in one shard, and in the sum of several.
func TestStatsOverflow(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	const rows = 64
	for _, c := range []struct {
		size   float64 // its square is that of a shard's mean
		shards int     // the first that fails, 0 for a step
	}{{1e3, 0}, {1e3, 1}, {300, 2}} {
		m := buildWith(t, g, reference.Params{{0, c.size}, {1}}, engine.Options{Rows: rows, Train: true, Ranges: []engine.Range{{}}})
		b, ll := m.batch(slices.Repeat([][]float64{{c.size}}, rows)), make([]float64, rows)
		step := func() error { return m.eng.Accumulate(context.Background(), b, 0, rows, ll) }
		if c.shards == 0 {
			step = func() error { return m.eng.Step(context.Background(), b, 0, rows, tensor.Rule{Step: 1}, ll) }
		}
		for i := 1; i <= max(1, c.shards); i++ {
			if err := step(); (err == nil) != (i < c.shards) || err != nil && !errors.Is(err, kernels.ErrDevice) {
				t.Errorf("shard %d of values of %v: %v", i, c.size, err)
			}
		}
	}
}
