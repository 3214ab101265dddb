package em_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

// job is a run in a directory: a model and options, without the paths.
type job struct {
	model *model
	opts  em.Options
}

// newJob is a run with every kind of step, validation and early stopping that
// does not fire.
func newJob(t testing.TB) *job {
	g, err := structures.HMM(structures.HMMOptions{Length: 6, Latents: 5, Tied: true, Leaf: categorical(3)})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{newModel(t, g, clustered(g, 8, 200, 0.1)), allPhases()}
	j.opts.Valid = tableOf(t, g, clustered(g, 8, 50, 0))
	j.opts.Patience = 5
	j.opts.Checkpoints.Epochs = 1
	return j
}

// trainer is a run in dir over src, and where it is computed.
func (j *job) trainer(t testing.TB, dir string, src dataset.Source, edit func(*em.Options)) (*em.Trainer, *em.Local) {
	t.Helper()
	o := j.opts
	o.Checkpoints.Dir, o.MetricsFile = filepath.Join(dir, "checkpoints"), filepath.Join(dir, "metrics.jsonl")
	if edit != nil {
		edit(&o)
	}
	// TestThreadsAndSets compares numbers of threads; here they would wait for each other.
	flows := em.NewLocal(j.model.engine(t, cpu.Options{Threads: 1}, o.LaunchRows(src.Rows())), src)
	t.Cleanup(flows.Close)
	tr, err := em.New(flows, o)
	if err != nil {
		t.Fatal(err)
	}
	return tr, flows
}

// try trains in dir until the end or ctx's, from src, and returns the bits.
func (j *job) try(t testing.TB, ctx context.Context, dir string, src dataset.Source, edit func(*em.Options)) (em.Result, []float32, error) {
	t.Helper()
	tr, flows := j.trainer(t, dir, src, edit)
	defer flows.Close()
	if _, err := tr.Resume(ctx); err != nil {
		return em.Result{}, nil, err
	}
	res, err := tr.Run(ctx)
	return res, bits(t, flows), err
}

// whole is what an unbroken run leaves.
type whole struct {
	params []float32
	result em.Result
	lines  []string
}

func (j *job) unbroken(t testing.TB) whole {
	t.Helper()
	dir := t.TempDir()
	res, params, err := j.try(t, context.Background(), dir, j.model.table, nil)
	if err != nil {
		t.Fatal(err)
	}
	return whole{params, res, metricsOf(t, dir)}
}

// metricsOf returns the lines of a directory's metrics without the times.
func metricsOf(t testing.TB, dir string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		var m map[string]*float64
		if err := json.Unmarshal([]byte(line), &m); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("metrics line %q: %v", line, err)
		}
		for _, key := range []string{"epoch", "step", "train_ll", "valid_ll", "step_size", "seconds", "samples_per_second"} {
			if _, ok := m[key]; !ok || len(m) != 7 {
				t.Fatalf("metrics line %q: no key %s, or others", line, key)
			}
		}
		s := ""
		for _, key := range []string{"epoch", "step", "train_ll", "valid_ll", "step_size"} {
			if m[key] == nil {
				s += " null"
			} else {
				s += fmt.Sprintf(" %x", math.Float64bits(*m[key]))
			}
		}
		out = append(out, s)
	}
	return out
}

// check compares the end of a broken run with that of the unbroken one.
func (w whole) check(t testing.TB, what, dir string, res em.Result, params []float32) {
	t.Helper()
	if !sameBits(w.params, params) {
		t.Errorf("%s: other bits: %s", what, firstDifference(w.params, params))
	}
	if got := metricsOf(t, dir); strings.Join(got, "\n") != strings.Join(w.lines, "\n") {
		t.Errorf("%s: metrics\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(w.lines, "\n"))
	}
	res.Seconds = w.result.Seconds
	if res != w.result {
		t.Errorf("%s: result %+v, want %+v", what, res, w.result)
	}
}

// TestResumeAfterAnyMoment copies the run's directory at moments all over the
// run, as a power cut would leave it, and resumes the copies.
func TestResumeAfterAnyMoment(t *testing.T) {
	j := newJob(t)
	want := j.unbroken(t)
	if len(want.lines) != 9 {
		t.Fatalf("%d epochs, want 9", len(want.lines))
	}
	for _, every := range []int64{0, 3} {
		dir := t.TempDir()
		var copies []string
		snapshot := func() {
			for {
				c := filepath.Join(t.TempDir(), "copy")
				err := os.CopyFS(c, os.DirFS(dir))
				if err == nil {
					copies = append(copies, c)
					return
				}
				if !errors.Is(err, fs.ErrNotExist) { // a checkpoint got its name meanwhile, or was removed
					t.Fatal(err)
				}
			}
		}
		_, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Checkpoints.Steps = every
			o.OnStep = func(em.Progress) { snapshot() } // before the step's checkpoint
			o.OnEpoch = func(em.Metrics) { snapshot() } // between the epoch's line and its checkpoint
			o.Sink = em.SinkFunc(func(context.Context, em.ParamReader) error { snapshot(); return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range copies {
			if testing.Short() && i%5 != 1 {
				continue
			}
			if i%3 == 1 { // what only a kill inside a write leaves
				leaveHalfWritten(t, c)
			}
			res, params, err := j.try(t, context.Background(), c, j.model.table, nil)
			if err != nil {
				t.Fatal(err)
			}
			want.check(t, fmt.Sprintf("checkpoint every %d steps, copy %d", every, i), c, res, params)
			if temps, _ := filepath.Glob(filepath.Join(c, "checkpoints", ".*")); len(temps) > 0 {
				t.Errorf("temporaries stayed: %v", temps)
			}
		}
	}
}

// leaveHalfWritten adds half a line to the metrics and a temporary to the
// checkpoints.
func leaveHalfWritten(t testing.TB, dir string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "metrics.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"epoch":`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(dir, "checkpoints", ".step-000000000001.safetensors.0123456789abcdef.pce-tmp")
	if err := os.WriteFile(temp, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// interrupting is a source that ends a context at some read.
type interrupting struct {
	dataset.Source
	left   int
	cancel context.CancelFunc
}

func (s *interrupting) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	if s.left--; s.left == 0 {
		s.cancel()
	}
	return s.Source.Gather(ctx, b, rows)
}

// TestStopAndResume ends the context of a run again and again, in the middle of
// steps, evaluations and saves.
func TestStopAndResume(t *testing.T) {
	j := newJob(t)
	want := j.unbroken(t)
	rng := rand.New(rand.NewPCG(1, 2))
	tries := 12
	if testing.Short() {
		tries = 6
	}
	for try := range tries {
		dir, stops := t.TempDir(), 0
		for round := 0; ; round++ {
			ctx, cancel := context.WithCancel(context.Background())
			train := &interrupting{j.model.table, 1 + rng.IntN(20), cancel}
			if try%3 == 0 {
				train.left = -1
			}
			res, params, err := j.try(t, ctx, dir, train, func(o *em.Options) {
				valid := &interrupting{j.opts.Valid, -1, cancel}
				if try%3 == 1 {
					valid.left = 1 + rng.IntN(6) // an evaluation takes two
				}
				o.Valid = valid
				if steps := 1 + rng.IntN(9); try%3 == 0 {
					o.OnStep = func(em.Progress) {
						if steps--; steps == 0 {
							cancel()
						}
					}
				}
			})
			cancel()
			if err == nil {
				want.check(t, fmt.Sprintf("try %d, %d stops", try, stops), dir, res, params)
				break
			}
			if !errors.Is(err, em.ErrStopped) {
				t.Fatal(err)
			}
			// The context of a step that was given up ends before it, so some
			// rounds gain nothing; many must.
			if stops++; stops > 200 {
				t.Fatalf("try %d: the run gains no ground: %v", try, err)
			}
		}
		if stops == 0 {
			t.Errorf("try %d was never stopped", try)
		}
	}
}

// TestStepsLimit ends a run in the middle of an epoch and goes on from there.
func TestStepsLimit(t *testing.T) {
	j := newJob(t)
	want := j.unbroken(t)
	ends := []int64{1, 5, 7, 14, 16, 18, 20, 24}
	if testing.Short() {
		ends = []int64{1, 7, 14, 24}
	}
	for _, steps := range ends {
		dir := t.TempDir()
		limit := func(o *em.Options) { o.Steps = steps }
		var lines []string
		for range 2 { // the second run has nothing to do
			res, _, err := j.try(t, context.Background(), dir, j.model.table, limit)
			if err != nil {
				t.Fatal(err)
			}
			if res.Steps != steps {
				t.Errorf("%d steps, want %d", res.Steps, steps)
			}
			got := metricsOf(t, dir)
			if lines != nil && strings.Join(lines, "\n") != strings.Join(got, "\n") {
				t.Errorf("again: %q, want %q", got, lines)
			}
			if lines = got; len(lines) != res.Epochs {
				t.Errorf("%d lines for %d epochs", len(lines), res.Epochs)
			}
		}
		res, params, err := j.try(t, context.Background(), dir, j.model.table, nil)
		if err != nil {
			t.Fatal(err)
		}
		want.check(t, fmt.Sprintf("after %d steps", steps), dir, res, params)
	}
}

// overfitting is a run over few rows whose patience ends it.
func overfitting(t testing.TB) *job {
	j := newJob(t)
	g := j.model.graph
	j.model = newModel(t, g, clustered(g, 21, 12, 0))
	j.opts = em.Options{
		Phases:   []em.Phase{{Rule: em.FullBatch, Epochs: 500}},
		Valid:    tableOf(t, g, clustered(g, 21, 300, 0)),
		Patience: 4,
	}
	return j
}

// TestEarlyStopping overfits until patience ends it, and wants the best epoch's
// parameters, also from a run that is resumed after its end.
func TestEarlyStopping(t *testing.T) {
	j := overfitting(t)
	dir := t.TempDir()
	var valid []float64
	var first em.Result
	var kept []float32
	for round := range 2 {
		res, params, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.OnEpoch = func(m em.Metrics) { valid = append(valid, m.ValidLL) }
			o.Sink = em.SinkFunc(func(_ context.Context, p em.ParamReader) error {
				if round > 0 && !sameBits(kept, bits(t, p)) {
					t.Error("the resumed run saves other parameters")
				}
				kept = bits(t, p)
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(params, kept) {
			t.Error("the model that was saved is not the one that is left")
		}
		if round == 0 {
			first = res
		} else if res != first {
			t.Errorf("resumed: %+v, want %+v", res, first)
		}
	}
	best := 0
	for i, v := range valid {
		if v > valid[best] {
			best = i
		}
	}
	if first.Best != best+1 || first.Epochs != best+1+4 || len(valid) != first.Epochs || first.ValidLL != valid[best] {
		t.Errorf("%+v; the best of %d epochs was %d: %v", first, len(valid), best+1, valid[best])
	}
	eng := j.model.engine(t, cpu.Options{}, 64)
	if err := eng.WriteParams(context.Background(), 0, kept); err != nil {
		t.Fatal(err)
	}
	if all, err := em.Evaluate(context.Background(), eng, j.opts.Valid); err != nil || all.Mean() != first.ValidLL {
		t.Errorf("kept parameters give %v, %v; want %v", all.Mean(), err, first.ValidLL)
	}
}

// TestDamagedCheckpoints damages the newest checkpoint and wants the one before
// and a log line; with all damaged, one line of error.
func TestDamagedCheckpoints(t *testing.T) {
	j := newJob(t)
	want := j.unbroken(t)
	rng := rand.New(rand.NewPCG(3, 4))
	damage := map[string]func(b []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(b []byte) []byte { return b[:len(b)/2] },
		"last byte": func(b []byte) []byte { return b[:len(b)-1] },
		"longer":    func(b []byte) []byte { return append(b, 0) },
		"zeros":     func(b []byte) []byte { clear(b[len(b)/2:]); return b },
	}
	bits := 10
	if testing.Short() {
		bits = 2
	}
	for i := range bits {
		damage[fmt.Sprintf("bit %d", i)] = func(b []byte) []byte {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
			return b
		}
	}
	for name, spoil := range damage {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		_, _, err := j.try(t, ctx, dir, j.model.table, func(o *em.Options) {
			o.OnStep = func(p em.Progress) {
				if p.Epoch == 3 && p.Step == 2 {
					cancel()
				}
			}
		})
		if !errors.Is(err, em.ErrStopped) {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
		if err != nil || len(files) != 2 {
			t.Fatalf("checkpoints %v, %v; want two", files, err)
		}
		spoilFile := func(path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, spoil(b), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		spoilFile(files[1])
		// What is written next must stay, though the damaged one is newer.
		if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Checkpoints.Keep, o.Checkpoints.Steps, o.Steps = 1, 1, 15
		}); err != nil {
			t.Fatal(err)
		}
		if files, err = filepath.Glob(filepath.Join(dir, "checkpoints", "*")); err != nil || len(files) != 1 {
			t.Fatalf("checkpoints %v, %v; want one", files, err)
		}
		if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) { o.Steps = 16 }); err != nil {
			t.Fatal(err)
		}
		if files, err = filepath.Glob(filepath.Join(dir, "checkpoints", "*")); err != nil || len(files) != 2 {
			t.Fatalf("checkpoints %v, %v; want two", files, err)
		}
		spoilFile(files[1])
		var log bytes.Buffer
		res, params, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		want.check(t, name, dir, res, params)
		if !strings.Contains(log.String(), "level=ERROR msg=\"checkpoint is damaged") || !strings.Contains(log.String(), filepath.Base(files[1])) {
			t.Errorf("%s: nothing in the log: %s", name, log.String())
		}
		files, err = filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
		if err != nil || len(files) != 2 {
			t.Fatalf("checkpoints %v, %v; want two", files, err)
		}
		for _, f := range files {
			spoilFile(f)
		}
		_, _, err = j.try(t, context.Background(), dir, j.model.table, nil)
		if !errors.Is(err, em.ErrCheckpoint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: all damaged: %v", name, err)
		}
	}
}

// deaf is a source that takes no parameters.
type deaf struct{ *em.Local }

var errDeaf = errors.New("the device fell out")

func (deaf) WriteParams(context.Context, int64, []float32) error { return errDeaf }

// TestUnreadCheckpoints resumes where the newest checkpoint cannot be opened or its bytes do not come back, and where the source does not take it:
// none of these is damage, of which the run would go back to the one before and then remove the newest.
func TestUnreadCheckpoints(t *testing.T) {
	j, dir := newJob(t), t.TempDir()
	if _, _, err := j.try(t, t.Context(), dir, j.model.table, func(o *em.Options) { o.Steps = 15 }); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("checkpoints %v, %v; want two", files, err)
	}
	resume := func(want error, change ...func(*em.Trainer)) {
		t.Helper()
		var log bytes.Buffer
		tr, err := func() (*em.Trainer, error) {
			o := j.opts
			o.Checkpoints.Dir, o.Logger = filepath.Join(dir, "checkpoints"), slog.New(slog.NewTextHandler(&log, nil))
			flows := em.NewLocal(j.model.engine(t, cpu.Options{Threads: 1}, o.LaunchRows(j.model.table.Rows())), j.model.table)
			t.Cleanup(flows.Close)
			return em.New(deaf{flows}, o)
		}()
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range change {
			change(tr)
		}
		_, err = tr.Resume(t.Context())
		if !errors.Is(err, want) || errors.Is(err, em.ErrCheckpoint) || !strings.Contains(err.Error(), files[1]) || strings.Contains(log.String(), "damaged") {
			t.Errorf("%v, and in the log %q; want %v", err, log.String(), want)
		}
	}
	resume(errDeaf)
	for _, at := range []int64{0, 4, 100, 3000} {
		resume(syscall.EIO, func(tr *em.Trainer) { tr.FailReads(at, &os.PathError{Op: "read", Path: files[1], Err: syscall.EIO}) })
	}
	if err := errors.Join(os.Remove(files[1]), os.Symlink(filepath.Base(files[1]), files[1])); err != nil { // which leads to itself
		t.Fatal(err)
	}
	resume(syscall.ELOOP)
}

// TestKeep counts the checkpoints that stay.
func TestKeep(t *testing.T) {
	j := newJob(t)
	for keep, want := range map[int]int{0: 2, 1: 1, 3: 3} {
		dir := t.TempDir()
		if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Checkpoints.Keep, o.Checkpoints.Interval = keep, 1
		}); err != nil {
			t.Fatal(err)
		}
		if files, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*")); len(files) != want {
			t.Errorf("keep %d: %v", keep, files)
		}
	}
}

// TestBlockedDirectory wants the error of the system in one line.
func TestBlockedDirectory(t *testing.T) {
	j := newJob(t)
	dir := t.TempDir()
	blocked := filepath.Join(dir, "checkpoints")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var pathErr *os.PathError
	if _, _, err := j.try(t, context.Background(), dir, j.model.table, nil); !errors.As(err, &pathErr) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v, want the system's in one line", err)
	}
}

// TestResumeUntrained resumes a run without a step, which has ended or was stopped: it is what it was, and is refused as another one.
func TestResumeUntrained(t *testing.T) {
	j := newJob(t)
	ended := t.Context()
	stopped, cancel := context.WithCancel(ended)
	cancel()
	for epochs, ctx := range []context.Context{ended, stopped} {
		dir := t.TempDir()
		part := func(epochs int, seed uint64) *em.Trainer {
			tr, _ := j.trainer(t, dir, j.model.table, func(o *em.Options) { o.Phases, o.Seed = []em.Phase{{Rule: em.FullBatch, Epochs: epochs}}, seed })
			return tr
		}
		if _, err := part(epochs, 1).Run(ctx); epochs == 0 && err != nil || epochs > 0 && !errors.Is(err, em.ErrStopped) {
			t.Fatalf("%d epochs: %v", epochs, err)
		}
		if found, err := part(2, 7).Resume(t.Context()); !errors.Is(err, em.ErrChanged) {
			t.Errorf("%d epochs, with another seed: %t, %v; want ErrChanged", epochs, found, err)
		}
		if found, err := part(2, 1).Resume(t.Context()); !found || err != nil {
			t.Errorf("%d epochs: found %t, %v", epochs, found, err)
		}
	}
}
