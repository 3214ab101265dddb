package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/run"
)

var errLost = errors.New("lost")

// elsewhere computes like another machine: its engine is made of the circuit's
// file, and it loses all after some steps. What its precision is it says once it has computed.
type elsewhere struct {
	*em.Local
	engine   *engine.Engine
	left     int
	computed bool
}

func (e *elsewhere) Step(ctx context.Context, rule tensor.Rule) (em.StepResult, error) {
	if e.left--; e.left == 0 {
		return em.StepResult{}, errLost
	}
	e.computed = true
	return e.Local.Step(ctx, rule)
}

func (e *elsewhere) LogLikelihood(ctx context.Context, src dataset.Source) (em.Evaluation, error) {
	e.computed = true
	return e.Local.LogLikelihood(ctx, src)
}

func (e *elsewhere) Device() string        { return "elsewhere" }
func (e *elsewhere) Kernels() kernels.Info { return e.engine.Info().Device }
func (e *elsewhere) Recomputed() int64     { return 0 }
func (e *elsewhere) Lost(err error) bool   { return errors.Is(err, errLost) }
func (e *elsewhere) Close() error          { e.Local.Close(); return e.engine.Close() }
func (e *elsewhere) PrecisionUsed() string {
	if e.computed {
		return "fp32"
	}
	return ""
}

// metricsOf returns the lines of metrics without the times.
func metricsOf(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	for line := range bytes.Lines(read(t, filepath.Join(dir, run.MetricsFile))) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "seconds")
		delete(m, "samples_per_second")
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(text, '\n'))
	}
	return out.String()
}

// TestTrainElsewhere computes a run elsewhere, loses it now and then, and wants
// the files of a run in this process. Resumed with nothing left to train, it says what has evaluated it.
func TestTrainElsewhere(t *testing.T) {
	here := small(t, "hclt")
	want, err := run.Train(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	there := small(t, "hclt")
	losses := []int{2, 7, 0} // before the first checkpoint; in the middle of an epoch; never
	opened := 0
	open := func(ctx context.Context, b *run.Blueprint, l run.Load, valid, test dataset.Source) (run.Flows, error) {
		if valid == nil || test == nil || l.StepRows != 300 {
			t.Errorf("opened with valid %v, test %v and load %+v", valid, test, l)
		}
		var text bytes.Buffer
		if err := b.WriteCircuit(&text); err != nil {
			return nil, err
		}
		copied, err := run.ReadCircuit(bytes.NewReader(text.Bytes()), int64(text.Len()), b.Train, compile.Options{})
		if err != nil {
			return nil, err
		}
		e, err := copied.Engine(ctx, l)
		if err != nil {
			return nil, err
		}
		opened++
		return &elsewhere{Local: em.NewLocal(e, b.Train), engine: e, left: losses[opened-1]}, nil
	}
	got, err := run.TrainElsewhere(t.Context(), there, run.Elsewhere{Flows: open})
	if err != nil {
		t.Fatal(err)
	}
	losses, there.Resume = append(losses, 0), true
	if again, err := run.TrainElsewhere(t.Context(), there, run.Elsewhere{Flows: open}); err != nil || again.PrecisionUsed != "fp32" || got.PrecisionUsed != "fp32" {
		t.Errorf("precision %q of %+v (%v), and %q before", again.PrecisionUsed, again, err, got.PrecisionUsed)
	}
	if opened != len(losses) || got.Device != "elsewhere" {
		t.Errorf("opened %d times, want %d; device %q", opened, len(losses), got.Device)
	}
	if got.TestLL != want.TestLL || got.ValidLL != want.ValidLL || got.TrainLL != want.TrainLL || got.Steps != want.Steps {
		t.Errorf("result %+v, want %+v", got, want)
	}
	for _, name := range []string{run.ModelFile, run.SamplesFile} {
		if !bytes.Equal(read(t, filepath.Join(there.Dir, name)), read(t, filepath.Join(here.Dir, name))) {
			t.Errorf("%s differs", name)
		}
	}
	if got, want := metricsOf(t, there.Dir), metricsOf(t, here.Dir); got != want {
		t.Errorf("metrics\n%swant\n%s", got, want)
	}
}

// TestLostRepeatedly trains elsewhere where the parameters are lost in the same step each time, as with a worker that has too little memory for
// it: the run ends with that error. Where it gets a step farther now and then it is done.
func TestLostRepeatedly(t *testing.T) {
	for name, c := range map[string]struct {
		left   func(opened int) int // the step, of this life, in which the parameters are lost
		opened int
		want   error
	}{
		"the same step": {func(int) int { return 2 }, 11, errLost},
		"farther":       {func(opened int) int { return (2 + opened/8) % 5 }, 25, nil},
	} {
		o, opened := small(t, "hclt"), 0
		open := func(ctx context.Context, b *run.Blueprint, l run.Load, _, _ dataset.Source) (run.Flows, error) {
			e, err := b.Engine(ctx, l)
			if err != nil {
				return nil, err
			}
			left := c.left(opened)
			opened++
			return &elsewhere{Local: em.NewLocal(e, b.Train), engine: e, left: left}, nil
		}
		if _, err := run.TrainElsewhere(t.Context(), o, run.Elsewhere{Flows: open}); !errors.Is(err, c.want) || opened != c.opened {
			t.Errorf("%s: %v after %d lives, want %v after %d", name, err, opened, c.want, c.opened)
		}
	}
}

// unreadable gives no parameters once the run was stopped, as workers that died.
type unreadable struct {
	elsewhere
	stopped context.Context
}

func (u *unreadable) ReadParams(ctx context.Context, offset int64, params []float32) error {
	if u.stopped.Err() != nil {
		return errLost
	}
	return u.elsewhere.ReadParams(ctx, offset, params)
}

// TestStoppedElsewhere stops a run while the parameters are lost: it is stopped like any other,
// and continues from the checkpoint before to the model of an unbroken run.
func TestStoppedElsewhere(t *testing.T) {
	here, there := small(t, "hclt"), small(t, "hclt")
	if _, err := run.Train(t.Context(), here); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	there.EM.OnStep = func(p em.Progress) {
		if p.Epoch == 2 && p.Step == 2 {
			stop()
		}
	}
	open := func(ctx context.Context, b *run.Blueprint, l run.Load, _, _ dataset.Source) (run.Flows, error) {
		e, err := b.Engine(ctx, l)
		if err != nil {
			return nil, err
		}
		return &unreadable{elsewhere{Local: em.NewLocal(e, b.Train), engine: e, left: 0}, ctx}, nil
	}
	if _, err := run.TrainElsewhere(ctx, there, run.Elsewhere{Flows: open}); !errors.Is(err, em.ErrStopped) || errors.Is(err, errLost) {
		t.Fatalf("%v, want ErrStopped alone", err)
	}
	there.EM.OnStep, there.Resume = nil, true
	if _, err := run.TrainElsewhere(t.Context(), there, run.Elsewhere{Flows: open}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, filepath.Join(there.Dir, run.ModelFile)), read(t, filepath.Join(here.Dir, run.ModelFile))) {
		t.Error("the run that was stopped came to another model")
	}
}

// TestCircuitFile writes and reads circuits of every structure and leaf, and
// wants the same programs.
func TestCircuitFile(t *testing.T) {
	for _, c := range []struct {
		kind, leaf, rows string
		edit             func(*run.Structure)
	}{
		{"hclt", "auto", "builtin:random?rows=60&vars=16&categories=5", nil},
		{"hclt", "gaussian", "builtin:random?rows=60&vars=16&categories=5", func(s *run.Structure) { s.Leaf.MinSigma = 0.1234567890123 }},
		{"hmm", "auto", "builtin:random?rows=60&vars=16&categories=5", nil},
		{"hmm", "bernoulli", "builtin:random?rows=60&vars=16&categories=2", func(s *run.Structure) { s.HMM.Tied = false }},
		{"pd", "binomial", "builtin:random?rows=60&vars=16&categories=5", nil},
		{"rat-spn", "histogram", "builtin:random?rows=60&vars=16&categories=50", nil},
		{"rat-spn", "discretised-logistic", "builtin:random?rows=60&vars=16&categories=9", func(s *run.Structure) { s.Leaf.MinScale = 1.0 / 3 }},
		{"rat-spn", "poisson", "builtin:random?rows=60&vars=16&categories=9", nil},
	} {
		t.Run(c.kind+"/"+c.leaf, func(t *testing.T) {
			src, err := dataset.Open(t.Context(), c.rows, dataset.Options{Image: [3]int{4, 4, 1}})
			if err != nil {
				t.Fatal(err)
			}
			s := small(t, c.kind).Structure
			s.Leaf.Type = c.leaf
			if c.edit != nil {
				c.edit(&s)
			}
			compareCircuit(t, s, src)
		})
	}
	t.Run("graph", func(t *testing.T) {
		leaf := func(v int) circuit.Leaf { return circuit.Indicator{Domain: 3, Value: v % 3} }
		g, err := structures.RATSPN(structures.RATSPNOptions{Vars: 5, Latents: 3, Depth: 1, Repetitions: 2, Pieces: 2, Leaf: leaf})
		if err != nil {
			t.Fatal(err)
		}
		compareCircuit(t, run.Structure{Graph: g}, nil)
	})
}

func compareCircuit(t *testing.T, s run.Structure, src dataset.Source) {
	t.Helper()
	var rows run.Rows
	if src != nil {
		rows = run.Table(src)
	}
	b, err := run.Build(t.Context(), s, rows, compile.Options{BlockSize: 2, MaxGroups: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var text bytes.Buffer
	if err := b.WriteCircuit(&text); err != nil {
		t.Fatal(err)
	}
	c, err := run.ReadCircuit(bytes.NewReader(text.Bytes()), int64(text.Len()), src, compile.Options{BlockSize: 2, MaxGroups: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Program.Digest() != b.Program.Digest() || !c.Schema.Equal(b.Schema) {
		t.Error("another program or schema came back")
	}
	other, err := run.ReadCircuit(bytes.NewReader(text.Bytes()), int64(text.Len()), src, compile.Options{BlockSize: 4, MaxGroups: 3})
	if err != nil {
		t.Fatal(err)
	}
	if other.Program.Digest() == b.Program.Digest() {
		t.Error("other options give the same program: the test compares nothing")
	}
}
