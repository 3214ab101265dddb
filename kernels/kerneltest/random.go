package kerneltest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// randomCase is a random circuit with parameters, rows, and what the oracle says
// of them.
type randomCase struct {
	graph  *circuit.Graph
	params reference.Params
	rows   [][]float64
	ll     []float64
	rule   tensor.Rule
	after  reference.Params // after one step of rule
	size   int              // of blocks
	err    error
}

var blockSizes = []int{0, 1, 2, 4, 8, 16, 32}

// randomCases keeps the oracle's answers, which take most of the suite's time,
// for the next device.
var randomCases = struct {
	sync.Mutex // guards list
	list       []*randomCase
}{}

// cases calls do for n random circuits as subtests.
func cases(t *testing.T, n int, do func(t *testing.T, c *randomCase)) {
	randomCases.Lock()
	for seed := len(randomCases.list); seed < n; seed++ {
		randomCases.list = append(randomCases.list, newCase(uint64(seed)))
	}
	list := randomCases.list[:n]
	randomCases.Unlock()
	for seed, c := range list {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			if c.err != nil {
				t.Fatal(c.err)
			}
			do(t, c)
		})
	}
}

// singleUnits says which random circuits have nodes of one unit alone.
func singleUnits(seed uint64) bool { return seed%4 == 3 }

func newCase(seed uint64) *randomCase {
	rng := rand.New(rand.NewPCG(seed, 77))
	var o reference.RandomOptions
	if singleUnits(seed) {
		o.MaxUnits = 1
	}
	c := &randomCase{graph: reference.Random(rng, o)}
	if c.params, c.err = reference.Init(c.graph, seed, nil); c.err != nil {
		return c
	}
	c.rows = reference.RandomRows(c.graph, rng, 70, 0.2)
	if c.size = blockSizes[rng.IntN(len(blockSizes))]; singleUnits(seed) {
		c.size = 1
	}
	c.rule = tensor.Rule{Step: 0.1 + 0.9*rng.Float64(), Pseudocount: 0.1}
	if rng.IntN(3) == 0 {
		c.rule.Step = 1
	}
	c.ll, c.after, c.err = oracle(c.graph, c.params, c.rows, c.rule)
	return c
}

func (c *randomCase) options() compile.Options {
	co := compile.DefaultOptions()
	co.BlockSize = c.size
	return co
}

// compareLL checks log-likelihoods against the oracle's, within the bound that
// the design states for float32 mantissas.
func compareLL(t testing.TB, rows [][]float64, got, want []float64) {
	t.Helper()
	for r := range want {
		if !near(got[r], want[r], 1e-5*max(1, math.Abs(want[r]))) {
			t.Errorf("row %d: log-likelihood %v, want %v (%v)", r, got[r], want[r], rows[r])
		}
	}
}

// count returns n circuits for the whole suite and fewer otherwise.
func (d Depth) count(n int) int {
	switch {
	case testing.Short():
		return n / 10
	case d == Full:
		return n
	}
	return n / 5
}

// testLogLikelihood compares log-likelihoods, missing cells included, at every
// block size, in launches smaller than the batch.
func testLogLikelihood(t *testing.T, open Open, depth Depth) {
	cases(t, depth.count(60), func(t *testing.T, c *randomCase) {
		dev := open(t)
		defer dev.Close()
		m := Build(t, dev, c.graph, c.params, c.options(), engine.Options{Rows: 64})
		ll := make([]float64, len(c.rows))
		if err := m.Engine.LogLikelihood(context.Background(), reference.Batch(reference.Schema(c.graph), c.rows), ll); err != nil {
			t.Fatal(err)
		}
		compareLL(t, c.rows, ll, c.ll)
	})
}

// testStep compares the parameters after one training step, fused and by shards.
func testStep(t *testing.T, open Open, depth Depth) {
	cases(t, depth.count(60), func(t *testing.T, c *randomCase) {
		batch := reference.Batch(reference.Schema(c.graph), c.rows)
		ctx := context.Background()
		dev := open(t)
		defer dev.Close()
		ll := make([]float64, len(c.rows))
		m := Build(t, dev, c.graph, c.params, c.options(), engine.Options{Rows: 128, Train: true})
		accumulate := func(lo, hi int) error { return m.Engine.Accumulate(ctx, batch, lo, hi, ll[lo:hi]) }
		var got [][][]float32
		for _, mode := range []struct {
			name string
			run  func() error
		}{
			{"fused", func() error { return m.Engine.Step(ctx, batch, 0, len(c.rows), c.rule, ll) }},
			{"one shard", func() error { return accumulate(0, 70) }},
			{"shards", func() error {
				for _, s := range [][2]int{{40, 70}, {0, 7}, {7, 40}} {
					if err := accumulate(s[0], s[1]); err != nil {
						return err
					}
				}
				return nil
			}},
		} {
			if err := m.Write(ctx); err != nil {
				t.Fatal(err)
			}
			if err := mode.run(); err != nil {
				t.Fatal(err)
			}
			if len(got) > 0 {
				if err := m.Engine.Apply(ctx, c.rule); err != nil {
					t.Fatal(err)
				}
			}
			compareLL(t, c.rows, ll, c.ll)
			got = append(got, m.Read(t))
			compareParams(t, mode.name, c.graph, got[len(got)-1], c.after)
		}
		sameBits(t, "fused", "by one shard", got[0], got[1])
	})
}

// sameBits wants equal parameters.
func sameBits(t testing.TB, a, b string, x, y [][]float32) {
	t.Helper()
	for id := range x {
		for i := range x[id] {
			if math.Float32bits(x[id][i]) != math.Float32bits(y[id][i]) {
				t.Fatalf("node %d parameter %d: %s %v, %s %v; want the same bits", id, i, a, x[id][i], b, y[id][i])
			}
		}
	}
}
