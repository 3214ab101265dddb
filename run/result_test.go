package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// meanOf returns the mean log-likelihood of rows under a saved model.
func meanOf(t *testing.T, dir string, rows run.Rows) float64 {
	t.Helper()
	m, err := pce.Open(t.Context(), filepath.Join(dir, run.ModelFile), run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	src, err := rows(t.Context(), m.Schema())
	if err != nil {
		t.Fatal(err)
	}
	all := make([]int, src.Rows())
	for i := range all {
		all[i] = i
	}
	var b dataset.Batch
	if err := src.Gather(t.Context(), &b, all); err != nil {
		t.Fatal(err)
	}
	ll, err := m.LogLikelihoodBatch(t.Context(), &b)
	if err != nil {
		t.Fatal(err)
	}
	var tally em.Tally
	tally.Add(ll...)
	e := tally.Evaluation()
	return e.Mean()
}

// TestResultIsOfTheSavedModel trains past the best epoch and wants every
// log-likelihood of the result to be the saved model's, which are not those of the
// last epoch and not running means.
func TestResultIsOfTheSavedModel(t *testing.T) {
	for name, patience := range map[string]int{"the best epoch": 2, "the last epoch": 0} {
		t.Run(name, func(t *testing.T) {
			o := small(t, "hclt")
			o.Structure.Latents = 16 // overfits
			o.EM.Phases = []em.Phase{{Rule: em.MiniBatch, Epochs: 12, BatchRows: 64, Pseudocount: 0.01, StepSize: em.Schedule{{Shape: em.Constant, Length: 1, From: 0.9, To: 0.9}}}}
			o.EM.Patience = patience
			var epochs []em.Metrics
			o.EM.OnEpoch = func(m em.Metrics) { epochs = append(epochs, m) }
			r, err := run.Train(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if want := map[int]int{2: r.Epochs - 2, 0: 12}[patience]; r.BestEpoch != want || r.Epochs != len(epochs) {
				t.Fatalf("epoch %d of %d was kept, want %d", r.BestEpoch, r.Epochs, want)
			}
			for split, got := range map[string]struct {
				ll   float64
				rows run.Rows
			}{"train": {r.TrainLL, o.Train}, "valid": {r.ValidLL, o.Valid}, "test": {r.TestLL, o.Test}} {
				if want := meanOf(t, o.Dir, got.rows); got.ll != want {
					t.Errorf("%s_ll %v, the saved model has %v", split, got.ll, want)
				}
			}
			if got := epochs[r.BestEpoch-1].ValidLL; got != r.ValidLL {
				t.Errorf("valid_ll %v, epoch %d had %v", r.ValidLL, r.BestEpoch, got)
			}
			if running := epochs[r.BestEpoch-1].TrainLL; running == r.TrainLL {
				t.Errorf("train_ll %v is the running mean", running)
			}
			text := read(t, filepath.Join(o.Dir, run.ResultFile))
			line, err := json.Marshal(r)
			if err != nil || !bytes.Equal(bytes.TrimSpace(text), line) {
				t.Errorf("%s is %s, the result %s (%v)", run.ResultFile, text, line, err)
			}
			var keys struct {
				BestEpoch int     `json:"best_epoch"`
				TestLL    float64 `json:"test_ll"`
				Version   struct{ Version, Go string }
			}
			if err := json.Unmarshal(text, &keys); err != nil || keys.BestEpoch != r.BestEpoch || keys.TestLL != r.TestLL || keys.Version.Go == "" || keys.Version.Version == "" {
				t.Errorf("%s says %+v, %v", run.ResultFile, keys, err)
			}
		})
	}
}

// TestResultBelongsToTheModel resumes finished runs, and wants no result beside a
// model that it is not of, and the same one where nothing was left to train.
func TestResultBelongsToTheModel(t *testing.T) {
	o := small(t, "hclt")
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	figures := func() (train, test float64) {
		var r struct {
			TrainLL float64 `json:"train_ll"`
			TestLL  float64 `json:"test_ll"`
		}
		if err := json.Unmarshal(read(t, filepath.Join(o.Dir, run.ResultFile)), &r); err != nil {
			t.Fatal(err)
		}
		return r.TrainLL, r.TestLL
	}
	train, test := figures()
	o.Resume = true
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if a, b := figures(); a != train || b != test {
		t.Errorf("resumed without epochs left, the result went from %v and %v to %v and %v", train, test, a, b)
	}
	// A run whose evaluation fails has saved its model already.
	o.Test = func(ctx context.Context, s *dataset.Schema) (dataset.Source, error) {
		src, err := images(t, 3, 50)(ctx, s)
		return &broken{src}, err
	}
	if _, err := run.Train(t.Context(), o); !errors.Is(err, errBroken) {
		t.Fatalf("%v, want the error of the test rows", err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, run.ResultFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the result of another model was kept: %v", err)
	}
	fresh := small(t, "hclt")
	fresh.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(fresh.Dir, run.ResultFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(t.Context(), fresh); !errors.Is(err, run.ErrRun) {
		t.Errorf("a directory with a result: %v, want ErrRun", err)
	}
}

var errBroken = errors.New("broken")

// broken is a source whose rows cannot be read.
type broken struct{ dataset.Source }

func (broken) Gather(context.Context, *dataset.Batch, []int) error { return errBroken }

func TestWarnings(t *testing.T) {
	discrete := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Discrete}, {Kind: dataset.Discrete}}}
	mixed := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Discrete}, {Kind: dataset.Continuous}}}
	// usual returns rows around -50 with one of another log-likelihood, the third.
	usual := func(rows int, ll ...float64) []float64 {
		out := make([]float64, rows)
		for i := range out {
			out[i] = -50 + 8*math.Sin(float64(i))
		}
		copy(out[2:], ll)
		return out
	}
	for _, tc := range []struct {
		name   string
		ll     []float64
		schema *dataset.Schema
		want   []string // what each warning says
	}{
		{"nothing", nil, discrete, nil},
		{"usual rows", usual(3000), discrete, nil},
		{"one row", []float64{-1e9}, discrete, nil},
		{"certain rows, rounded", []float64{1e-7, 0, 1.9e-5}, discrete, nil},
		{"certain rows of weights with few digits", []float64{-1, 0, 3.9e-3}, discrete, nil},
		{"past them", []float64{-1, 0, 4.1e-3}, discrete, []string{"test row 3 has log-likelihood 0.0041"}},
		{"a positive mean", []float64{-1, 2.1e-5, 8}, discrete, []string{"test row 3 has log-likelihood 8, the mean of 3 is 2.33334: the probability of a discrete row is at most 1"}},
		{"a positive row", usual(3000, 0.5), discrete, []string{"test row 3 has log-likelihood 0.5"}},
		{"densities", []float64{-1, 2, 8}, mixed, nil},
		{"impossible rows", usual(3000, math.Inf(-1), -4, math.Inf(-1)), mixed, []string{"mean of 3000 test rows is -Inf, since 2 of them have probability 0, the first is test row 3"}},
		{"an infinite density", usual(30, math.Inf(1)), mixed, []string{"mean of 30 test rows is +Inf, since test row 3"}},
		{"a lone outlier", usual(3000, -1e6), discrete, []string{"test row 3 has log-likelihood -1e+06 and moves the mean of 3000 rows from -49.9979 to -383.315"}},
		{"outliers", usual(3000, -1e6, -1e6, -1e6, -1.5e6), discrete, []string{"test row 6 has log-likelihood -1.5e+06"}},
		{"the largest outlier", usual(3000, -4.9e9), mixed, []string{"test row 3 has log-likelihood -4.9e+09"}},
		{"a high outlier", usual(3000, 1.5e7), mixed, []string{"test row 3 has log-likelihood 1.5e+07"}},
		{"an outlier of few rows", usual(10, -1e4), discrete, []string{"test row 3 has"}},
		{"far, and of no weight", usual(100000, -5000), discrete, nil},
		{"not far", usual(20, -300), discrete, nil},
		{"at the bound of distance", append(make([]float64, 9), -9.9), mixed, nil},
		{"past it", append(make([]float64, 9), -10.1), mixed, []string{"test row 10 has"}},
		{"at the bound of weight", append(make([]float64, 1999), -19.9), mixed, nil},
		{"past it", append(make([]float64, 1999), -20.1), mixed, []string{"test row 2000 has"}},
	} {
		var tally em.Tally
		tally.Add(tc.ll...)
		got := run.Warnings("test", tally.Evaluation(), tc.schema)
		ok := len(got) == len(tc.want)
		for i := range min(len(got), len(tc.want)) {
			ok = ok && strings.Contains(got[i], tc.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestResultValue: a result within a value of a program's own is the JSON of a pointer to it, with null for what is unknown.
func TestResultValue(t *testing.T) {
	r := run.Result{TrainLL: -1, ValidLL: math.NaN(), TestLL: math.Inf(-1)}
	want, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(map[string]any{"run": r})
	if err != nil || string(got) != `{"run":`+string(want)+`}` {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
