package run_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

func withAnemone(t *testing.T) run.TrainOptions {
	o := small(t, "hclt")
	o.EM.Phases = []em.Phase{{
		Rule: em.Anemone, Epochs: 4, BatchRows: 64, Momentum: 0.9, Pseudocount: 1e-6,
		StepSize: em.Schedule{{Shape: em.Cosine, Length: 1, From: 0.4, To: 0.05}},
	}}
	return o
}

// TestTrainAnemone stops runs amid an epoch and wants the model of an unbroken
// one, which must have learned.
func TestTrainAnemone(t *testing.T) {
	whole := withAnemone(t)
	first := 0.0
	whole.EM.OnEpoch = func(m em.Metrics) {
		if m.Epoch == 1 {
			first = m.TrainLL
		}
	}
	r, err := run.Train(t.Context(), whole)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.TrainLL > first+0.1) {
		t.Errorf("train_ll went from %v to %v; it has learned nothing", first, r.TrainLL)
	}
	want := read(t, filepath.Join(whole.Dir, run.ModelFile))
	for _, stop := range []int{1, 7, 19} {
		o := withAnemone(t)
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		o.EM.OnStep = func(em.Progress) {
			if steps++; steps == stop {
				cancel()
			}
		}
		_, err := run.Train(ctx, o)
		cancel()
		if !errors.Is(err, em.ErrStopped) {
			t.Fatalf("stop %d: %v", stop, err)
		}
		o.EM.OnStep, o.Resume = nil, true
		if _, err := run.Train(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := read(t, filepath.Join(o.Dir, run.ModelFile)); !bytes.Equal(got, want) {
			t.Errorf("stopped after %d steps, the run ends with another model", stop)
		}
	}
}

// TestAnemoneMemory wants integer and averaged flows in the plan of that rule
// alone.
func TestAnemoneMemory(t *testing.T) {
	o := withAnemone(t)
	b, err := run.Build(t.Context(), o.Structure, o.Train, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	flows := func(o run.TrainOptions) int64 {
		m, err := b.Memory(run.TrainLoad(o, b.Train.Rows()))
		if err != nil {
			t.Fatal(err)
		}
		return m.Flows
	}
	with := flows(o)
	o.EM.Phases[0].Rule = em.MiniBatch
	p := b.Program
	if got, want := with-flows(o), 8*p.FlowLen()+4*(p.AverageLen()+p.VisitLen()); got != want {
		t.Errorf("the rule takes %d bytes more, want %d", got, want)
	}
}

// TestAnemoneOfOtherRows resumes a run with rows that reach farther, and wants the first steps to be as good as those before: averaged
// statistics are in units of the largest number of the rows that they are of.
func TestAnemoneOfOtherRows(t *testing.T) {
	s := run.DefaultStructure()
	s.Latents = 2
	test := normalRows(t, "test.csv", 2, 300, 2, 0, 1)
	rows := normalRows(t, "rows.csv", 1, 300, 2, 0, 1)
	o := run.TrainOptions{
		Structure: s, Train: run.Files(rows), Test: run.Files(test), Dir: t.TempDir(), Options: run.Options{Device: "cpu", Threads: 1},
		EM: em.Options{Seed: 1, Phases: []em.Phase{{
			Rule: em.Anemone, Epochs: 30, BatchRows: 100, Momentum: 0.9, Pseudocount: 1e-6, StepSize: em.Schedule{{Shape: em.Constant, Length: 1, From: 0.05}},
		}}},
	}
	before, err := run.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	farther := filepath.Join(t.TempDir(), "farther.csv")
	if err := os.WriteFile(farther, append(read(t, rows), "200,200\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Train, o.Resume, o.AllowChanges, o.EM.Phases[0].Epochs = run.Files(farther), true, true, 31
	after, err := run.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !(after.TestLL > before.TestLL-1.5) {
		t.Errorf("from %v to %v nats per test row by a row that is farther away", before.TestLL, after.TestLL)
	}
}
