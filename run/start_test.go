package run_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// unread is a source of real numbers whose rows cannot be read.
type unread struct{ dataset.Source }

var errUnread = errors.New("the disk is away")

func (unread) Rows() int { return 8 }

func (unread) Gather(context.Context, *dataset.Batch, []int) error { return errUnread }

// TestStartUnread builds a circuit whose leaves start from what the rows look like, of rows that cannot be read: that is an error, and
// no start from nothing.
func TestStartUnread(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Name: "x", Kind: dataset.Continuous}, {Name: "y", Kind: dataset.Continuous}}}
	rows, err := dataset.NewTable(schema, 8)
	if err != nil {
		t.Fatal(err)
	}
	s := run.DefaultStructure()
	s.Kind, s.Latents, s.RATSPN.Depth = "rat-spn", 2, 1
	b, err := run.Build(t.Context(), s, func(context.Context, *dataset.Schema) (dataset.Source, error) {
		return unread{rows}, nil
	}, compile.Options{})
	if !errors.Is(err, errUnread) {
		t.Errorf("Build = %v, %v; want %v", b, err, errUnread)
	}
}

// TestStageOfStart trains a learned circuit by steps that do harm, so that its start is kept: the end of training tells the
// start's figure, which no epoch came to.
func TestStageOfStart(t *testing.T) {
	o := small(t, "learnspn")
	o.EM.Phases = []em.Phase{{Rule: em.MiniBatch, Epochs: 2, BatchRows: 4, StepSize: em.Schedule{{Shape: em.Constant, Length: 1, From: 1}}}}
	best, told := math.Inf(-1), math.NaN()
	o.EM.OnEpoch = func(m em.Metrics) { best = max(best, m.ValidLL) }
	o.OnStage = func(s run.Stage) {
		if s.Name == run.StageTrain && s.Done {
			told = s.ValidLL
		}
	}
	r, err := run.Train(t.Context(), o)
	if err != nil || r.BestEpoch != 0 {
		t.Fatalf("%+v, %v: the steps do no harm", r, err)
	}
	if told != r.ValidLL || !(told > best) {
		t.Errorf("training ends with %v, and the model has %v; the best epoch had %v", told, r.ValidLL, best)
	}
}

// TestKeepStart trains a model from a file by steps that do harm: the model's parameters are kept where that is asked for.
func TestKeepStart(t *testing.T) {
	first := small(t, "hclt")
	model, err := run.Train(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{false, true} {
		o := small(t, "file")
		o.Structure.File, o.EM.KeepStart = filepath.Join(first.Dir, run.ModelFile), keep
		o.EM.Phases = []em.Phase{{Rule: em.MiniBatch, Epochs: 2, BatchRows: 4, StepSize: em.Schedule{{Shape: em.Constant, Length: 1, From: 1}}}}
		r, err := run.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if kept := r.BestEpoch == 0 && r.ValidLL == model.ValidLL; kept != keep || run.TrainLoad(o, 300).Best != keep {
			t.Errorf("with KeepStart %t: epoch %d with %v, the start had %v; room for the best: %t", keep, r.BestEpoch, r.ValidLL, model.ValidLL, run.TrainLoad(o, 300).Best)
		}
	}
}

// TestStartOfLogistics trains discretised logistic leaves on codes of which one is far from all others, and wants these to be described
// after a few steps: leaves start among them.
func TestStartOfLogistics(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var in strings.Builder
	in.WriteString("x,y\n")
	for i := range 1000 {
		x := 5 + rng.NormFloat64()
		if rng.IntN(2) == 0 {
			x = 20 + 2*rng.NormFloat64()
		}
		fmt.Fprintf(&in, "%d,%d\n", max(0, int(math.Round(x))), i%2)
	}
	in.WriteString("20000,1\n")
	path := filepath.Join(t.TempDir(), "codes.csv")
	if err := os.WriteFile(path, []byte(in.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := dataset.Open(t.Context(), path, dataset.Options{Types: map[string]dataset.Type{"x": {Kind: dataset.Discrete}}})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		s := run.DefaultStructure()
		s.Latents, s.Init, s.Leaves = 4, seed, map[string]run.Leaf{"x": {Type: "discretised-logistic"}}
		res, err := run.Train(t.Context(), run.TrainOptions{
			Structure: s, Train: run.Table(rows), Dir: t.TempDir(), Options: run.Options{Device: "cpu", Threads: 1},
			EM: em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 12, Pseudocount: 0.1}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if !(res.TrainLL > -3.4) {
			t.Errorf("seed %d: %v nats per row", seed, res.TrainLL)
		}
	}
}
