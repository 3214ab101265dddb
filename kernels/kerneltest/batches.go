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
	step := 1
	if depth == Brief {
		step = 3 // 1, 4, 7, ... 130
	}
	if testing.Short() {
		step = 43
	}
	for size := 1; size <= len(rows); size += step {
		if err := m.Engine.WriteFlows(ctx, 0, zero); err != nil {
			t.Fatal(err)
		}
		for lo := 0; lo < len(rows); lo += size {
			hi := min(lo+size, len(rows))
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
