package pce_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/run"
)

// smallForest has two trees of three features and two outputs.
func smallForest() *forest.Forest {
	split := func(feature int32, threshold float64) []forest.Node {
		return []forest.Node{{Test: forest.Less, Feature: feature, Threshold: threshold, MissingYes: true, Yes: 1, No: 2}, {First: 0, Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}}
	}
	return &forest.Forest{
		Target: "multi:softprob", Features: 3, Names: []string{"a", "b", "c"}, Outputs: 2, Classes: 2, Base: []float64{0.5, 0.5}, Link: forest.Softmax, Alpha: 1,
		Trees: []forest.Tree{
			{Weight: 1, Nodes: split(0, 0.5), Values: []forest.Value{{Value: -1}, {Value: 1.5}}},
			{Weight: 1, Nodes: split(2, -0.25), Values: []forest.Value{{Output: 1, Value: 0.25}, {Output: 1, Value: -3}}},
		},
	}
}

// forestFile writes a forest under a name that says nothing.
func forestFile(t *testing.T, f *forest.Forest) string {
	t.Helper()
	var b bytes.Buffer
	if err := xgboost.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPredict: any number of rows and threads gives what Evaluate gives row by row.
func TestPredict(t *testing.T) {
	ctx := context.Background()
	f := smallForest()
	path := forestFile(t, f)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, threads := range []int{0, 1, 3} {
		m, err := pce.Open(ctx, path, pce.Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 511, 512, 513, 3000} {
			rows, got := make([]float32, 3*n), make([]float32, 2*n)
			for i := range rows {
				if rows[i] = float32(rng.NormFloat64()); rng.IntN(5) == 0 {
					rows[i] = float32(math.NaN())
				}
			}
			if err := m.Predict(ctx, rows, got); err != nil {
				t.Fatal(err)
			}
			want := make([]float64, 2)
			for r := range n {
				if err := forest.Evaluate(f, forest.Prediction, rows[3*r:3*r+3], want); err != nil {
					t.Fatal(err)
				}
				if float64(got[2*r]) != want[0] || float64(got[2*r+1]) != want[1] {
					t.Fatalf("%d threads, row %d of %d: %v, want %v", threads, r, n, got[2*r:2*r+2], want)
				}
			}
			b := dataset.NewBatch(m.Schema(), n)
			for c := range b.Columns {
				for r := range n {
					b.Columns[c].Values[r] = rows[3*r+c]
				}
			}
			again := make([]float32, 2*n)
			if err := m.PredictBatch(ctx, b, again); err != nil || !slices.Equal(got, again) {
				t.Errorf("%d rows as a batch: %v", n, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := m.Predict(ctx, nil, nil); !errors.Is(err, pce.ErrClosed) {
			t.Errorf("a closed model: %v", err)
		}
	}
}

func TestPredictConcurrently(t *testing.T) {
	ctx := context.Background()
	m, err := pce.NewForest(smallForest(), pce.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rows, want := make([]float32, 3*2000), make([]float32, 2*2000)
	for i := range rows {
		rows[i] = float32(i%7) / 3
	}
	if err := m.Predict(ctx, rows, want); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			got := make([]float32, len(want))
			if err := m.Predict(ctx, rows, got); err != nil || !slices.Equal(got, want) {
				t.Errorf("a call beside others differs: %v", err)
			}
		})
	}
	all.Wait()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := m.Predict(cancelled, rows, make([]float32, len(want))); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

// TestForestIsNoCircuit: each kind of model refuses what the other answers, in one
// line.
func TestForestIsNoCircuit(t *testing.T) {
	ctx := context.Background()
	m, err := pce.NewForest(smallForest(), pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Graph() != nil || m.Queries() != nil || m.MPEExact() || m.Forest() == nil || len(m.Schema().Columns) != 3 || m.Schema().Columns[1].Name != "b" {
		t.Error("a forest looks like a circuit")
	}
	row := [][]float64{{0, 0, math.NaN()}}
	_, e1 := m.LogLikelihood(ctx, row)
	_, e2 := m.Sample(ctx, 3, 1)
	_, e3 := m.Conditional(ctx, row, 0)
	_, _, e4 := m.Moments(ctx, row)
	_, _, e5 := m.MPE(ctx, row, pce.DefaultMPE)
	_, e6 := m.Info()
	_, e7 := m.Entropy(ctx, 10, 1)
	_, e8 := m.Divergence(ctx, m, 10, 1)
	_, e9 := m.Device(ctx)
	_, e10 := m.LogLikelihoodGiven(ctx, row, 1)
	_, e11 := m.Classify(ctx, row, 0)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, m.Save(ctx, filepath.Join(t.TempDir(), "x"))} {
		if !errors.Is(err, pce.ErrKind) || strings.Contains(err.Error(), "\n") {
			t.Errorf("question %d of a forest: %v", i+1, err)
		}
	}
	path := filepath.Join(t.TempDir(), "circuit")
	if err := os.WriteFile(path, []byte("circuit 1\na = input x0 bernoulli 0.25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := pce.Open(ctx, path, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Predict(ctx, []float32{1}, []float32{0}); !errors.Is(err, pce.ErrKind) || c.Forest() != nil {
		t.Errorf("a prediction of a circuit: %v", err)
	}
	if err := c.PredictBatch(ctx, dataset.NewBatch(c.Schema(), 1), []float32{0}); !errors.Is(err, pce.ErrKind) {
		t.Errorf("a prediction of a circuit for a batch: %v", err)
	}
	two := &dataset.Batch{Rows: 3, Columns: make([]dataset.Cells, 2)} // as many cells as two rows have
	for i := range two.Columns {
		two.Columns[i].Values = make([]float32, 3)
	}
	if err := m.PredictBatch(ctx, two, make([]float32, 2*m.Forest().Width(forest.Prediction))); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("2 columns for 3 features: %v", err)
	}
	for _, what := range []forest.What{forest.Class + 1, 99} {
		if err := m.Evaluate(ctx, what, make([]float64, 3), make([]float64, m.Forest().Width(what))); !errors.Is(err, forest.ErrRequest) {
			t.Errorf("result %d: %v", what, err)
		}
	}
	if err := m.Predict(ctx, make([]float32, 4), make([]float32, 2)); !errors.Is(err, forest.ErrRequest) {
		t.Errorf("4 cells for 3 features: %v", err)
	}
	if err := m.Predict(ctx, make([]float32, 3000), make([]float32, 2)); !errors.Is(err, forest.ErrRequest) {
		t.Errorf("too few results: %v", err)
	}
	for _, threads := range []int{-1, run.MaxThreads + 1} {
		if _, err := pce.NewForest(smallForest(), pce.Options{Threads: threads}); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("%d threads: %v", threads, err)
		}
	}
	bad := smallForest()
	bad.Trees[0].Nodes[0].No = 0
	if _, err := pce.NewForest(bad, pce.Options{}); !errors.Is(err, forest.ErrForest) {
		t.Errorf("a forest with a cycle: %v", err)
	}
	os.WriteFile(path, []byte("neither"), 0o644)
	if _, err := pce.Open(ctx, path, pce.Options{}); err == nil || !strings.Contains(err.Error(), "tried circuits: native, text, spflow, spnc, juice; and forests: xgboost-json") {
		t.Errorf("neither kind of model: %v", err)
	}
}

// TestForestBase: a base that float32 does not have begins the sums of a float32 forest as the float32 next to it, on every path and
// without trees.
func TestForestBase(t *testing.T) {
	const half = 1.0 / (1 << 24) // of the step from 1 to the next float32
	for _, trees := range []int{0, 1} {
		f := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{1 + half}}
		for range trees {
			f.Trees = append(f.Trees, forest.Tree{Weight: 1, Nodes: []forest.Node{{Last: 1}}, Values: []forest.Value{{Value: half}}})
		}
		var out [1]float64
		if err := forest.Evaluate(f, forest.Margin, []float64{0}, out[:]); err != nil || out[0] != 1 {
			t.Errorf("%d trees: the plain evaluator says %v, want 1, %v", trees, out[0], err)
		}
		for _, text := range []string{"represent sliced", "represent sparse"} {
			m, err := pce.NewScheduledForest(f, text, nil, pce.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Evaluate(t.Context(), forest.Margin, []float64{0}, out[:]); err != nil || out[0] != 1 {
				t.Errorf("%d trees, %s: %v, want 1, %v", trees, text, out[0], err)
			}
			m.Close()
		}
	}
}
