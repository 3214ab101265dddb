package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
)

// testBatches checks that a row's log-likelihood and the flows of a batch do not
// depend on how the rows are cut, at every batch size.
func testBatches(t *testing.T, open Open, depth Depth) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(5, 6))
	g := reference.Random(rng, reference.RandomOptions{Vars: 5, MaxUnits: 20, MaxNodes: 25})
	p, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := reference.RandomRows(g, rng, 130, 0.1)
	batch := reference.Batch(reference.Schema(g), rows)
	dev := open(t)
	defer dev.Close()
	m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 130, Train: true})
	all := make([]float64, len(rows))
	if err := m.Engine.LogLikelihood(ctx, batch, all); err != nil {
		t.Fatal(err)
	}
	ll := make([]float64, len(rows))
	total := make([]int64, m.Result.Program.FlowLen())
	if err := m.Engine.Accumulate(ctx, batch, 0, len(rows), ll); err != nil {
		t.Fatal(err)
	}
	if err := m.Engine.ReadFlows(ctx, 0, total); err != nil {
		t.Fatal(err)
	}
	part, zero := make([]int64, len(total)), make([]int64, len(total))
	// A brief suite takes sizes on both sides of where kernels take rows together, and
	// cuts the first rows alone: many launches of a row each say nothing new.
	sizes, cut := []int{1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 130}, 24
	if depth == Full {
		sizes, cut = nil, len(rows)
		for size := range rows {
			sizes = append(sizes, size+1)
		}
	}
	if testing.Short() {
		sizes, cut = []int{1, 33, 64, 130}, 4
	}
	for _, size := range sizes {
		if err := m.Engine.WriteFlows(ctx, 0, zero); err != nil {
			t.Fatal(err)
		}
		for lo, hi := 0, 0; lo < len(rows); lo = hi {
			if hi = min(lo+size, len(rows)); lo >= cut {
				hi = len(rows)
			}
			if err := m.Engine.Accumulate(ctx, batch, lo, hi, ll[lo:hi]); err != nil {
				t.Fatal(err)
			}
		}
		for r := range ll {
			if ll[r] != all[r] {
				t.Fatalf("batches of %d: row %d has log-likelihood %v, want %v", size, r, ll[r], all[r])
			}
		}
		if err := m.Engine.ReadFlows(ctx, 0, part); err != nil {
			t.Fatal(err)
		}
		for i, f := range part {
			// Half a grid step a shard, and float32 sums in another order.
			a, b := float64(f)*m.Engine.Grid(), float64(total[i])*m.Engine.Grid()
			if !near(a, b, 1e-5*math.Abs(b)+float64(len(rows))*m.Engine.Grid()) {
				t.Fatalf("batches of %d: flow %d is %v, want %v", size, i, a, b)
			}
		}
	}
}
