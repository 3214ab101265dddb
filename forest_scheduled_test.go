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

// TestInterpretedKernels: a forest whose walks have no machine code is interpreted, whatever else its code has, and has machine code in
// tiles of trees.
func TestInterpretedKernels(t *testing.T) {
	small, err := pce.NewScheduledForest(smallForest(), "represent sparse", nil, pce.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	if small.ForestPath() == "code interpreter" {
		t.Skip("SKIPPED: this machine has no machine code")
	}
	f := &forest.Forest{Features: 1, Outputs: 1, Alpha: 1, Base: []float64{0}}
	for i := range 5000 {
		tree := forest.Tree{Weight: 1, Values: []forest.Value{{Value: 1}}}
		depth := int32(1 + 11*(i%2)) // so that sortTrees has a kernel which adds the leaves
		for k := range depth {
			tree.Nodes = append(tree.Nodes, forest.Node{Test: forest.Less, Threshold: float64(k), Yes: 2*k + 1, No: 2*k + 2}, forest.Node{Last: 1, ID: 2*k + 1})
		}
		tree.Nodes = append(tree.Nodes, forest.Node{ID: 2 * depth})
		f.Trees = append(f.Trees, tree)
	}
	for text, want := range map[string]bool{"represent sparse\nsortTrees": true, "represent sparse\nsortTrees\ntile tree t0 t1 100\nreorder t0 batch t1": false} {
		m, err := pce.NewScheduledForest(f, text, nil, pce.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.ForestPath() == "code interpreter"; got != want {
			t.Errorf("%q runs by %s", text, m.ForestPath())
		}
		m.Close()
	}
}

// TestScheduledForestOnEmulator: code on a card predicts what the plain evaluator does, from several goroutines, and
// devices that are not there, and schedules that cards do not run, are refused.
func TestScheduledForestOnEmulator(t *testing.T) {
	f := smallForest()
	const text = "tile batch b0 b1 64\ngpuDimension b0 grid.x\ngpuDimension b1 block.x"
	m, err := pce.NewScheduledForest(f, text, nil, pce.Options{Device: "emulator", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.ForestPath(); got != "code ptx sm_90" {
		t.Errorf("it runs by %q", got)
	}
	done := make(chan error)
	for i := range 4 {
		go func() {
			rng := rand.New(rand.NewPCG(uint64(i), 9))
			rows := make([]float64, 3*(1+100*i))
			for k := range rows {
				rows[k] = float64(float32(rng.NormFloat64()))
			}
			what := []forest.What{forest.Margin, forest.Leaves}[i%2]
			n := len(rows) / 3 * f.Width(what)
			got, want := make([]float64, n), make([]float64, n)
			err := errors.Join(m.Evaluate(t.Context(), what, rows, got), forest.Evaluate(f, what, rows, want))
			for k := range got {
				if math.Float64bits(got[k]) != math.Float64bits(want[k]) && err == nil {
					err = errors.New("a score differs from the plain evaluator's")
				}
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ text, device, want string }{
		{text, "abacus", "no device"}, {text, "cpu", "gpuDimension is for cards"}, {text, "", "gpuDimension is for cards"},
		{"split batch a b 8", "emulator", "a launch has all rows"}, {"represent sliced", "emulator", "runs on the CPU"},
	} {
		if _, err := pce.NewScheduledForest(f, c.text, nil, pce.Options{Device: c.device}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q on %q: %v, want %q", c.text, c.device, err, c.want)
		}
	}
}

// TestScheduledForestThreads: what the host does for the rows of a card on several threads, sums started and finished
// with the link and narrowed, gives the plain evaluator's predictions, for no rows and on both sides of a thread's share.
func TestScheduledForestThreads(t *testing.T) {
	f := smallForest()
	const text = "tile batch b0 b1 64\ngpuDimension b0 grid.x\ngpuDimension b1 block.x"
	m, err := pce.NewScheduledForest(f, text, nil, pce.Options{Device: "emulator", Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rng := rand.New(rand.NewPCG(4, 9))
	width := f.Width(forest.Prediction)
	for _, n := range []int{0, 1, 4096, 4097, 3*4096 + 5} {
		rows, out := make([]float32, 3*n), make([]float32, n*width)
		for k := range rows {
			rows[k] = float32(rng.NormFloat64())
		}
		want := make([]float64, len(out))
		if err := errors.Join(m.Predict(t.Context(), rows, out), forest.Evaluate(f, forest.Prediction, rows, want)); err != nil {
			t.Fatal(err)
		}
		for k, x := range out {
			if x != float32(want[k]) {
				t.Fatalf("%d rows: number %d is %v, want %v", n, k, x, float32(want[k]))
			}
		}
	}
}

// TestForestBytesOfCode: the memory of a forest counts the tables of its code: of a chain as a complete tree these are nearly all.
func TestForestBytesOfCode(t *testing.T) {
	const depth = 12
	f := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}, Trees: []forest.Tree{{Weight: 1, Values: []forest.Value{{Value: 1}}}}}
	for d := range int32(depth) {
		f.Trees[0].Nodes = append(f.Trees[0].Nodes, forest.Node{Test: forest.Less, Threshold: float64(d), Yes: 2*d + 1, No: 2*d + 2}, forest.Node{Last: 1, ID: 2*d + 1})
	}
	f.Trees[0].Nodes = append(f.Trees[0].Nodes, forest.Node{Last: 1, ID: 2 * depth})
	plain, err := pce.NewForest(f, pce.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	coded, err := pce.NewScheduledForest(f, "represent array", nil, pce.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer coded.Close()
	// Of each of the tiles a feature and a threshold, as an element of 8 bytes and as one of 4.
	const least = (2<<depth - 1) * 2 * (8 + 4)
	if n := coded.ForestBytes() - plain.ForestBytes(); n < least || n > least+4096 {
		t.Errorf("code takes %d bytes in addition to %d, want %d", n, plain.ForestBytes(), least)
	}
}
