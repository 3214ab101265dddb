package kerneltest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// testOrdinary trains every structure, on uniform data and on data with
// structure: the exactness check fires nowhere, and every log-likelihood is finite.
func testOrdinary(t *testing.T, open Open, depth Depth) {
	ctx := context.Background()
	const vars, codes = 16, 16
	steps := 60
	if depth == Brief {
		steps = 12
	}
	if testing.Short() {
		steps = 9
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for _, s := range structured(t, 32, codes) {
		for _, data := range []struct {
			name string
			rows [][]float64
		}{
			{"uniform", reference.RandomRows(s.graph, rng, 192, 0.02)},
			{"correlated", correlatedRows(rng, vars, codes, 192)},
		} {
			t.Run(s.name+" "+data.name, func(t *testing.T) {
				batch := reference.Batch(reference.Schema(s.graph), data.rows)
				dev := open(t)
				defer dev.Close()
				m := Build(t, dev, s.graph, initial(t, s.graph), compile.DefaultOptions(), engine.Options{Rows: 64, Train: true})
				ll := make([]float64, 64)
				for step := range steps {
					lo := step % 3 * 64
					if err := m.Engine.Step(ctx, batch, lo, lo+64, tensor.Rule{Step: 0.4, Pseudocount: 0.1}, ll); err != nil {
						t.Fatal(err)
					}
					for r, l := range ll {
						if !(l < 0 && l > -1e3) {
							t.Fatalf("step %d row %d: log-likelihood %v", step, r, l)
						}
					}
				}
				if n := m.Engine.Recomputed(); n != 0 {
					t.Errorf("%d values were recomputed in log space; want none in ordinary training", n)
				}
			})
		}
	}
}

// testMixed takes a step with products of lower precision, from initial and from
// learnt parameters: the same log-likelihoods, and expected counts with their
// noise. Half of the rows are nothing like what was learnt; their flows depend on
// values that are far below others, and have more noise.
func testMixed(t *testing.T, open Open, depth Depth) {
	const n = 100
	steps := 20
	if depth == Brief {
		steps = 10
	}
	for _, s := range structured(t, 32, 4) {
		rng := rand.New(rand.NewPCG(12, 13))
		schema := reference.Schema(s.graph)
		known := reference.Batch(schema, correlatedRows(rng, 16, 4, n))
		mixture := reference.Batch(schema, append(correlatedRows(rng, 16, 4, n/2), reference.RandomRows(s.graph, rng, n/2, 0)...))
		start := initial(t, s.graph)
		t.Run(s.name, func(t *testing.T) { testMixedStep(t, open, s.graph, start, known, 2*0x1p-8) })
		t.Run(s.name+" learnt", func(t *testing.T) {
			learnt := stepped(t, open, s.graph, start, known, engine.Options{Rows: n, Train: true}, tensor.Rule{Step: 1, Pseudocount: 1e-6}, steps)
			from := make(reference.Params, len(start))
			for id, params := range learnt.params {
				for _, x := range params {
					from[id] = append(from[id], float64(x))
				}
			}
			testMixedStep(t, open, s.graph, from, mixture, 8*0x1p-8)
		})
	}
}

// learning is what steps leave.
type learning struct {
	ll        []float64 // before the last step
	params    [][]float32
	precision tensor.Precision
}

// stepped takes steps on a whole batch.
func stepped(t *testing.T, open Open, g *circuit.Graph, from reference.Params, batch *dataset.Batch, o engine.Options, rule tensor.Rule, steps int) learning {
	t.Helper()
	dev := open(t)
	defer dev.Close()
	m := Build(t, dev, g, from, compile.DefaultOptions(), o)
	ll := make([]float64, batch.Rows)
	for range steps {
		if err := m.Engine.Step(context.Background(), batch, 0, batch.Rows, rule, ll); err != nil {
			t.Fatal(err)
		}
	}
	return learning{ll, m.Read(t), m.Engine.Precision()}
}

// mixedNoise is the most that a log-likelihood may differ in mixed precision, in nats
// for each variable, on a device that has it in the forward pass.
const mixedNoise = 2e-4

// testMixedStep compares the parameters that a step leaves. The noise of an
// expected count is half of bound, over all levels; a parameter is a count over a
// sum of counts.
func testMixedStep(t *testing.T, open Open, g *circuit.Graph, from reference.Params, batch *dataset.Batch, bound float64) {
	rule := tensor.Rule{Step: 1, Pseudocount: 0.5}
	want := stepped(t, open, g, from, batch, engine.Options{Rows: batch.Rows, Train: true}, rule, 1)
	got := stepped(t, open, g, from, batch, engine.Options{Rows: batch.Rows, Train: true, Mixed: true}, rule, 1)
	tol := 0.0 // the same bits
	if got.precision.Values {
		tol = mixedNoise * float64(len(batch.Columns))
	}
	for r := range want.ll {
		if !near(got.ll[r], want.ll[r], tol) {
			t.Errorf("row %d: log-likelihood %v, mixed %v; want a difference of %v at most", r, want.ll[r], got.ll[r], tol)
		}
	}
	if !got.precision.Flows { // the device has float32 alone
		sameBits(t, "fp32", "mixed", want.params, got.params)
		return
	}
	differ := false
	for id := range want.params {
		for i, x := range want.params[id] {
			y := got.params[id][i]
			differ = differ || x != y
			if !near(float64(y), float64(x), bound*float64(x)+1e-7) {
				t.Fatalf("node %d parameter %d: %v in fp32, %v mixed; want a relative difference of %v at most", id, i, x, y, bound)
			}
		}
	}
	if !differ {
		t.Error("mixed precision changed nothing; the device does not use it")
	}
}

// longRun is many small steps of a small circuit by the oracle.
type longRun struct {
	graph         *circuit.Graph
	start, end    reference.Params
	rows          [][]float64
	before, after float64 // log-likelihood of all rows
	err           error
}

const (
	longSteps = 10000
	longBatch = 4
	longStep  = 0.001
	// A step rounds a weight three times, by 2^-24 of it at most, and forgets a
	// thousandth of what was before: that is the worst all roundings can add up to.
	longDrift = 3 * 0x1p-24 / longStep
)

// long is computed once for all devices: the oracle takes seconds.
var long = sync.OnceValue(func() *longRun {
	l := &longRun{}
	l.err = l.run()
	return l
})

func (l *longRun) run() error {
	tree, err := structures.GridTree(1, 4, 1)
	if err != nil {
		return err
	}
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }
	if l.graph, err = structures.HCLT(tree, structures.HCLTOptions{Latents: 3, Leaf: leaf}); err != nil {
		return err
	}
	if l.start, err = reference.Init(l.graph, 5, nil); err != nil {
		return err
	}
	l.rows = correlatedRows(rand.New(rand.NewPCG(14, 15)), 4, 3, 32)
	total := func(p reference.Params) (float64, error) {
		ev, err := reference.New(l.graph, p)
		if err != nil {
			return 0, err
		}
		f, err := ev.Flows(l.rows)
		if err != nil {
			return 0, err
		}
		return f.LogLikelihood, nil
	}
	if l.before, err = total(l.start); err != nil {
		return err
	}
	p := l.start
	for step := range longSteps {
		ev, err := reference.New(l.graph, p)
		if err != nil {
			return err
		}
		lo := longRows(step)
		f, err := ev.Flows(l.rows[lo : lo+longBatch])
		if err != nil {
			return err
		}
		p = ev.EM(f, reference.Step{Size: longStep, Pseudocount: 0.01})
	}
	l.end = p
	l.after, err = total(p)
	return err
}

// longRows is the first row of a step's batch.
func longRows(step int) int { return step * longBatch % 32 }

// testLong takes 10,000 steps of size 0.001, each smaller than what float32
// resolves of many parameters, and compares the end with float64.
func testLong(t *testing.T, open Open, _ Depth) {
	if testing.Short() {
		t.Skip("ten thousand steps; run without -short")
	}
	l := long()
	if l.err != nil {
		t.Fatal(l.err)
	}
	ctx := context.Background()
	dev := open(t)
	defer dev.Close()
	batch := reference.Batch(reference.Schema(l.graph), l.rows)
	m := Build(t, dev, l.graph, l.start, compile.DefaultOptions(), engine.Options{Rows: 32, Train: true})
	ll := make([]float64, len(l.rows))
	rule := tensor.Rule{Step: longStep, Pseudocount: 0.01}
	for step := range longSteps {
		lo := longRows(step)
		if err := m.Engine.Step(ctx, batch, lo, lo+longBatch, rule, ll); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Engine.LogLikelihood(ctx, batch, ll); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, x := range ll {
		sum += x
	}
	got := m.Read(t)
	for id := range l.end {
		for i, w := range l.end[id] {
			if x := float64(got[id][i]); !near(x, w, longDrift) {
				t.Errorf("node %d parameter %d is %v after %d steps, in float64 %v", id, i, x, longSteps, w)
			}
		}
	}
	if !(l.after > l.before+32) { // a nat a row
		t.Errorf("the steps took the log-likelihood from %v to %v; they have learnt nothing", l.before, l.after)
	}
	// A row multiplies at most eight parameters.
	if !near(sum, l.after, float64(8*len(l.rows))*longDrift) {
		t.Errorf("log-likelihood %v after %d steps, in float64 %v", sum, longSteps, l.after)
	}
}
