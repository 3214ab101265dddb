package pce_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/forest"
)

// TestTuneForest: the choice is a schedule that predicts as the forest does, one in fifty schedules is timed, or all, and
// what cannot be is refused.
func TestTuneForest(t *testing.T) {
	f := smallForest()
	rows := make([]float64, 3*40)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		rows[i] = rng.NormFloat64()
	}
	opts := pce.Options{Threads: 1, KernelPath: "generic"}
	for _, o := range []pce.TuneOptions{{Batch: 70}, {Batch: 1, Exhaustive: true, Represent: []string{"sparse", "sliced"}}, {Batch: 70, Exhaustive: true, Budget: time.Nanosecond}} {
		r, err := pce.TuneForest(t.Context(), f, rows, opts, o)
		if err != nil {
			t.Fatal(err)
		}
		whole := o.Exhaustive && o.Budget == 0
		timed := 0
		for i := range r.Points {
			if r.Points[i].Seconds > 0 {
				timed++
			}
		}
		if r.Timed > max(len(tune.Representations()), len(r.Points)/tune.Share) || r.Batch != o.Batch || r.Path != "generic" || r.Complete != whole || whole != (timed == len(r.Points)) || r.Chosen().Seconds <= 0 || r.Fastest().Seconds <= 0 {
			t.Errorf("%+v: %d of %d timed, %d by the search, complete %v", o, timed, len(r.Points), r.Timed, r.Complete)
		}
		if len(o.Represent) > 0 && r.Chosen().Params.Represent != "sparse" && r.Chosen().Params.Represent != "sliced" {
			t.Errorf("%+v chosen of %v", r.Chosen(), o.Represent)
		}
	}
	for want, o := range map[string]pce.TuneOptions{"batch": {Batch: -1}, "want 1 to": {Batch: 1 << 30}, "representation": {Represent: []string{"dense"}}, "budget": {Budget: -1}} {
		if _, err := pce.TuneForest(t.Context(), f, rows, opts, o); !errors.Is(err, pce.ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, bad := range [][]float64{nil, rows[:4]} {
		if _, err := pce.TuneForest(t.Context(), f, bad, opts, pce.TuneOptions{}); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("%d cells: %v", len(bad), err)
		}
	}
	if _, err := pce.TuneForest(t.Context(), f, rows, pce.Options{KernelPath: "mmx"}, pce.TuneOptions{}); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("kernels that are not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pce.TuneForest(ctx, f, rows, opts, pce.TuneOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	loss, err := pce.CompareSchedules(t.Context(), f, rows, opts, 70, "represent sparse\n", "represent sliced\n")
	if err != nil || loss < -0.99 || math.IsNaN(loss) {
		t.Errorf("%v: loss %v", err, loss)
	}
	if loss, err = pce.CompareSchedules(t.Context(), f, rows, opts, 70, "pad\n", "pad\n"); err != nil || loss != 0 {
		t.Errorf("%v: a schedule loses %v to itself", err, loss)
	}
	if _, err := pce.CompareSchedules(t.Context(), f, rows, opts, 70, "pad\n", "padd\n"); !errors.Is(err, schedule.ErrSchedule) {
		t.Errorf("a bad schedule: %v", err)
	}
}

// variedForest has ten complete trees of depth 1 to 4, so that every parameter of the template has a meaning.
func variedForest(rng *rand.Rand) *forest.Forest {
	f := &forest.Forest{Features: 3, Outputs: 2, Base: []float64{0.5, -1}}
	for i := range 10 {
		inner := 1<<(1+i%4) - 1
		tr := forest.Tree{Weight: 1}
		for k := range int32(2*inner + 1) {
			n := forest.Node{First: k, Last: k + 1, ID: k}
			if int(k) < inner {
				n = forest.Node{Test: forest.Less, Feature: int32(rng.IntN(3)), Threshold: rng.NormFloat64(), MissingYes: rng.IntN(2) == 0, Yes: 2*k + 1, No: 2*k + 2}
			}
			tr.Nodes = append(tr.Nodes, n)
			tr.Values = append(tr.Values, forest.Value{Output: int32(i % 2), Value: float64(float32(rng.NormFloat64()))})
		}
		f.Trees = append(f.Trees, tr)
	}
	return f
}

// TestTemplate: every point of the template has code for a forest and gives the bits of the plain evaluator.
func TestTemplate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f := variedForest(rng)
	const n = 130
	rows, want := make([]float32, 3*n), make([]float64, 2*n)
	wide := make([]float64, len(rows))
	for i := range rows {
		if rows[i] = float32(rng.NormFloat64()); rng.IntN(6) == 0 {
			rows[i] = float32(math.NaN())
		}
		wide[i] = float64(rows[i])
	}
	if err := forest.Evaluate(f, forest.Prediction, rows, want); err != nil {
		t.Fatal(err)
	}
	shape := tune.Survey(f, wide, 16)
	space := tune.Space(shape, n)
	if len(space) < 400 {
		t.Fatalf("%d points", len(space))
	}
	for i, p := range space {
		if testing.Short() && i%5 != 0 {
			continue
		}
		opts := pce.Options{Threads: 1 + i%2}
		if i%3 == 0 {
			opts.KernelPath = "generic"
		}
		m, err := pce.NewScheduledForest(f, p.Schedule(shape.Depth).Text(), nil, opts)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		got := make([]float32, len(want))
		if err := m.Predict(t.Context(), rows, got); err != nil {
			t.Fatal(err)
		}
		for k := range got {
			if float64(got[k]) != want[k] {
				t.Fatalf("%+v: number %d is %v, want %v", p, k, got[k], want[k])
			}
		}
		m.Close()
	}
}

// TestGuessSchedule: without a time, the model names a schedule that the forest has code for, or says why there is none.
func TestGuessSchedule(t *testing.T) {
	f := smallForest()
	text, err := pce.GuessSchedule(f, pce.Options{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	m, err := pce.NewScheduledForest(f, text, nil, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	linear := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}, Linear: &forest.Linear{Weights: []float64{1}, Bias: []float64{0}}}
	if err := linear.Check(); err != nil {
		t.Fatal(err)
	}
	for _, batch := range []int{0, -1} {
		if text, err := pce.GuessSchedule(f, pce.Options{}, batch); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("calls of %d rows: %q, %v; want ErrOptions", batch, text, err)
		}
	}
	if _, err := pce.GuessSchedule(linear, pce.Options{}, 100); !errors.Is(err, tune.ErrTune) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a linear model: %v", err)
	}
	if _, err := pce.TuneForest(t.Context(), linear, []float64{1}, pce.Options{}, pce.TuneOptions{}); !errors.Is(err, tune.ErrTune) {
		t.Errorf("a linear model: %v", err)
	}
}
