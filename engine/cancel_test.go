package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// ending is a context that is cancelled once it has been asked a number of times.
type ending struct {
	context.Context
	left atomic.Int64
}

func (c *ending) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelledAnywhere cancels each query at every place where it looks: it says so, or its answer is whole.
func TestCancelledAnywhere(t *testing.T) {
	g := mixedGraph()
	m := build(t, g, engine.Options{Rows: 2, Queries: true})
	const rows = 5
	given := reference.RandomRows(g, rand.New(rand.NewPCG(5, 6)), rows, 0.6)
	variables := []int{0, 1}
	mpe := engine.MPEOptions{Candidates: 1, Beam: 2, Sweeps: 2}
	for name, ask := range map[string]func(ctx context.Context, b *dataset.Batch, out []float64) error{
		"loglik": func(ctx context.Context, b *dataset.Batch, out []float64) error {
			return m.eng.LogLikelihood(ctx, b, out)
		},
		"sample": func(ctx context.Context, b *dataset.Batch, _ []float64) error { return m.eng.Sample(ctx, b, 1, 0) },
		"mpe": func(ctx context.Context, b *dataset.Batch, out []float64) error {
			return m.eng.MPE(ctx, b, mpe, out[:rows], out[rows:])
		},
		"conditional": func(ctx context.Context, b *dataset.Batch, out []float64) error {
			return m.eng.Conditional(ctx, b, variables, out)
		},
		"moments": func(ctx context.Context, b *dataset.Batch, out []float64) error { return m.eng.Moments(ctx, b, out) },
		"covariance": func(ctx context.Context, b *dataset.Batch, out []float64) error {
			return m.eng.Covariance(ctx, b, variables, out)
		},
		"quantiles": func(ctx context.Context, b *dataset.Batch, out []float64) error {
			return m.eng.Quantiles(ctx, b, variables, []float64{0.5}, out)
		},
		"classify": func(ctx context.Context, b *dataset.Batch, out []float64) error {
			return m.eng.Classify(ctx, b, 0, out)
		},
	} {
		run := func(left int64) (answer []float64, err error) {
			ctx := &ending{Context: t.Context()}
			ctx.left.Store(left)
			b := m.batch(given)
			answer = make([]float64, 1000)
			err = ask(ctx, b, answer)
			for v := range b.Columns {
				for r := range rows {
					if c := &b.Columns[v]; c.Discrete() {
						answer = append(answer, float64(c.Codes.At(r)))
					} else {
						answer = append(answer, float64(c.Values[r]))
					}
				}
			}
			return answer, err
		}
		want, err := run(math.MaxInt64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		looks := int64(0)
		for ; ; looks++ {
			got, err := run(looks)
			if errors.Is(err, context.Canceled) && looks < 10000 {
				continue
			}
			if err != nil {
				t.Fatalf("%s after %d looks: %v", name, looks, err)
			}
			for i := range want {
				if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
					t.Fatalf("%s: cancelled after %d looks, it has %v where %v is right", name, looks, got[i], want[i])
				}
			}
			break
		}
		if looks == 0 {
			t.Errorf("%s does not look whether it is cancelled", name)
		}
	}
}
