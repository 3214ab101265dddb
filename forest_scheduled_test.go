package pce_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
)

// TestScheduledForest: code under a schedule predicts what the plain evaluator does, in both precisions of rows, finds the
// leaves that it does, and refuses bad schedules and calls after Close.
func TestScheduledForest(t *testing.T) {
	f := smallForest()
	rng := rand.New(rand.NewPCG(7, 8))
	for _, text := range []string{"", "tile batch b0 b1 64\nparallel b0\nsortTrees", "represent sliced"} {
		m, err := pce.NewScheduledForest(f, text, nil, pce.Options{Threads: 2, KernelPath: "generic"})
		if err != nil {
			t.Fatal(err)
		}
		if want := "code interpreter"; strings.Contains(text, "sliced") == (m.ForestPath() == want) {
			t.Errorf("%q runs by %s", text, m.ForestPath())
		}
		for _, n := range []int{0, 1, 513, 2000} {
			rows, wide := make([]float32, 3*n), make([]float64, 3*n)
			for i := range rows {
				if rows[i] = float32(rng.NormFloat64()); rng.IntN(5) == 0 {
					rows[i] = float32(math.NaN())
				}
				wide[i] = float64(rows[i])
			}
			got, margins := make([]float32, 2*n), make([]float64, 2*n)
			want, wantMargins := make([]float64, 2*n), make([]float64, 2*n)
			if err := errors.Join(m.Predict(t.Context(), rows, got), m.Evaluate(t.Context(), forest.Margin, wide, margins),
				forest.Evaluate(f, forest.Prediction, rows, want), forest.Evaluate(f, forest.Margin, rows, wantMargins)); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if float64(got[i]) != want[i] || margins[i] != wantMargins[i] {
					t.Fatalf("%q, number %d of %d rows: %v and %v, want %v and %v", text, i, n, got[i], margins[i], want[i], wantMargins[i])
				}
			}
		}
		rows := []float64{0.1, -2, math.NaN(), 3, 0, 1}
		leaves, want := make([]float64, 2*f.Width(forest.Leaves)), make([]float64, 2*f.Width(forest.Leaves))
		if err := errors.Join(m.Evaluate(t.Context(), forest.Leaves, rows, leaves), forest.Evaluate(f, forest.Leaves, rows, want)); err != nil || !slices.Equal(leaves, want) {
			t.Errorf("%q: %v: leaves %v, want %v", text, err, leaves, want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Predict(t.Context(), make([]float32, 3), make([]float32, 2)); !errors.Is(err, pce.ErrClosed) {
			t.Errorf("a closed model: %v", err)
		}
	}
	if _, err := pce.NewScheduledForest(f, "unroll rows", nil, pce.Options{}); !errors.Is(err, schedule.ErrSchedule) {
		t.Errorf("a bad schedule: %v", err)
	}
	if _, err := pce.NewScheduledForest(f, "", nil, pce.Options{KernelPath: "mmx"}); err == nil {
		t.Error("kernels that are not there were found")
	}
}
