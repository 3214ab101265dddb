package kerneltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// Same runs the same work on several devices, which must agree in every bit:
// log-likelihoods, draws, flows, parameters after steps of each kind, posteriors,
// completions by maxima, and the number of values recomputed in log space.
func Same(t *testing.T, depth Depth, opens ...Open) {
	run := func(name string, g *circuit.Graph, p reference.Params, rows [][]float64, mixed bool) {
		t.Run(name, func(t *testing.T) {
			var first *outcome
			for i, open := range opens {
				o := work(t, open, g, p, rows, compile.DefaultOptions(), mixed)
				if i == 0 {
					first = o
					continue
				}
				first.compare(t, o, i)
			}
		})
	}
	n := 150
	if depth == Brief {
		n = 100
	}
	for _, s := range structured(t, 40, 4) {
		rows := correlatedRows(rand.New(rand.NewPCG(20, 21)), 16, 4, n)
		run(s.name, s.graph, initial(t, s.graph), rows, false)
		run(s.name+" mixed", s.graph, initial(t, s.graph), rows, true)
	}
	for _, tc := range extremeCases {
		if tc.name == "star" && testing.Short() {
			continue // one task of 783 barriers
		}
		g, p := tc.make()
		run(tc.name, g, p, allRows(g), false)
	}
	seeds := uint64(8)
	if testing.Short() || depth == Brief {
		seeds = 4
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 22))
		o := reference.RandomOptions{Vars: 6}
		if singleUnits(seed) {
			o.MaxUnits = 1
		}
		g := reference.Random(rng, o)
		run(fmt.Sprintf("random seed=%d", seed), g, initial(t, g), reference.RandomRows(g, rng, 150, 0.1), false)
	}
}

// outcome is what a device made of the work.
type outcome struct {
	ll         []float64
	samples    [][]float64
	flows      []int64
	params     [][]float32
	recomputed int64
	posteriors []float32
	maxima     []completion
}

func work(t *testing.T, open Open, g *circuit.Graph, p reference.Params, rows [][]float64, co compile.Options, mixed bool) *outcome {
	t.Helper()
	dev := open(t)
	defer dev.Close()
	ctx := context.Background()
	n := len(rows)
	batch := reference.Batch(reference.Schema(g), rows)
	m := Build(t, dev, g, p, co, engine.Options{Rows: n, Train: true, Mixed: mixed})
	o := &outcome{ll: make([]float64, 5*n), flows: make([]int64, m.Result.Program.FlowLen())}
	rule := tensor.Rule{Step: 0.7, Pseudocount: 0.05}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for k := range 2 {
		check(m.Engine.Step(ctx, batch, 0, n, rule, o.ll[k*n:]))
	}
	check(m.Engine.Accumulate(ctx, batch, n/3, n, o.ll[2*n:]))
	check(m.Engine.Accumulate(ctx, batch, 0, n/3, o.ll[3*n:]))
	check(m.Engine.ReadFlows(ctx, 0, o.flows))
	check(m.Engine.Apply(ctx, rule))
	check(m.Engine.LogLikelihood(ctx, batch, o.ll[4*n:]))
	given := reference.Batch(reference.Schema(g), gaps(rand.New(rand.NewPCG(23, 24)), rows, 0.5))
	check(m.Engine.Sample(ctx, given, 1, 0))
	o.samples = reference.Rows(given)
	o.params, o.recomputed = m.Read(t), m.Engine.Recomputed()
	if mixed {
		return o
	}
	some := gaps(rand.New(rand.NewPCG(25, 26)), rows, 0.5)
	l := newLaunch(t, dev, &randomCase{graph: g, params: p, size: co.BlockSize}, some, layers.Module{Queries: true})
	o.posteriors, _ = l.posteriors(t, n, slices.DeleteFunc(allColumns(l.prog), func(c int32) bool {
		return l.prog.Columns[c].Codes >= mostNarrow // testSameCodes compares programs that differ in this column
	}))
	o.maxima = l.maximise(t, some)
	return o
}

func (a *outcome) compare(t *testing.T, b *outcome, device int) {
	t.Helper()
	for i := range a.ll {
		if math.Float64bits(a.ll[i]) != math.Float64bits(b.ll[i]) {
			t.Fatalf("device %d: log-likelihood %d is %v, want %v", device, i, b.ll[i], a.ll[i])
		}
	}
	for r := range a.samples {
		for v, x := range a.samples[r] {
			if math.Float64bits(x) != math.Float64bits(b.samples[r][v]) {
				t.Fatalf("device %d: variable %d of sample %d is %v, want %v", device, v, r, b.samples[r][v], x)
			}
		}
	}
	if len(a.posteriors) != len(b.posteriors) {
		t.Fatalf("device %d: %d elements of posteriors, want %d", device, len(b.posteriors), len(a.posteriors))
	}
	for i := range a.posteriors {
		if math.Float32bits(a.posteriors[i]) != math.Float32bits(b.posteriors[i]) {
			t.Fatalf("device %d: element %d of the posteriors is %v, want %v", device, i, b.posteriors[i], a.posteriors[i])
		}
	}
	for r := range a.maxima {
		a.maxima[r].same(t, r, b.maxima[r])
	}
	for i := range a.flows {
		if a.flows[i] != b.flows[i] {
			t.Fatalf("device %d: flow %d is %v, want %v", device, i, b.flows[i], a.flows[i])
		}
	}
	sameBits(t, "first device", fmt.Sprintf("device %d", device), a.params, b.params)
	if a.recomputed != b.recomputed {
		t.Errorf("device %d recomputed %d values in log space, the first %d", device, b.recomputed, a.recomputed)
	}
}
