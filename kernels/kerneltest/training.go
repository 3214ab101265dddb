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
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
)

// testOrdinary trains every structure, on uniform data and on data with
// structure: the exactness check fires nowhere, and every log-likelihood is finite.
func testOrdinary(t *testing.T, open Open) {
	ctx := context.Background()
	const vars, codes = 16, 16
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
				for step := range 60 {
					lo := step % 3 * 64
					if err := m.Engine.Step(ctx, batch, lo, lo+64, kernels.Rule{Step: 0.4, Pseudocount: 0.1}, ll); err != nil {
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

// testMixed takes a step with products of lower precision: the same
// log-likelihoods, and expected counts with their noise.
func testMixed(t *testing.T, open Open) {
	ctx := context.Background()
	rule := kernels.Rule{Step: 1, Pseudocount: 0.5}
	for _, s := range structured(t, 32, 4) {
		t.Run(s.name, func(t *testing.T) {
			dev := open(t)
			defer dev.Close()
			rows := correlatedRows(rand.New(rand.NewPCG(12, 13)), 16, 4, 100)
			batch := reference.Batch(reference.Schema(s.graph), rows)
			var ll [2][]float64
			var params [2][][]float32
			for i, mixed := range []bool{false, true} {
				m := Build(t, dev, s.graph, initial(t, s.graph), compile.DefaultOptions(), engine.Options{Rows: 100, Train: true, Mixed: mixed})
				ll[i] = make([]float64, len(rows))
				if err := m.Engine.Step(ctx, batch, 0, len(rows), rule, ll[i]); err != nil {
					t.Fatal(err)
				}
				params[i] = m.Read(t)
			}
			for r := range rows {
				if ll[0][r] != ll[1][r] {
					t.Errorf("row %d: log-likelihood %v, mixed %v; want the same bits", r, ll[0][r], ll[1][r])
				}
			}
			if !dev.Info().BF16 { // the device has float32 alone
				sameBits(t, "fp32", "mixed", params[0], params[1])
				return
			}
			// The noise of an expected count is below 2^-8 of it, over all levels; a
			// parameter is a count over a sum of counts.
			const bound = 2 * 0x1p-8
			differ := false
			for id := range params[0] {
				for i, x := range params[0][id] {
					y := params[1][id][i]
					differ = differ || x != y
					if !near(float64(y), float64(x), bound*float64(x)+1e-7) {
						t.Fatalf("node %d parameter %d: %v in fp32, %v mixed; want a relative difference of %v at most", id, i, x, y, bound)
					}
				}
			}
			if !differ {
				t.Error("mixed precision changed nothing; the device does not use it")
			}
		})
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
func testLong(t *testing.T, open Open) {
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
	rule := kernels.Rule{Step: longStep, Pseudocount: 0.01}
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
