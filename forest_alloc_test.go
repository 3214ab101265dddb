//go:build !race

package pce_test

import (
	"context"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/forest"
)

// TestAllocPredict: a call of few rows allocates nothing, and neither does one of a
// whole block. (The race detector empties pools at random.)
func TestAllocPredict(t *testing.T) {
	ctx := context.Background()
	m, err := pce.NewForest(smallForest(), pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, n := range []int{1, 20, 512} {
		rows, out := make([]float32, 3*n), make([]float32, n*m.Forest().Width(forest.Prediction))
		if count := testing.AllocsPerRun(200, func() {
			if err := m.Predict(ctx, rows, out); err != nil {
				t.Fatal(err)
			}
		}); count != 0 {
			t.Errorf("%d rows: %v allocations a call", n, count)
		}
	}
}
