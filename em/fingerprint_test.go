package em_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/safetensors"
	"github.com/pce-engine/pce/kernels/cpu"
)

// changed is a run of job that has another value of something.
type changed struct {
	name string
	rows int // of the first ones; 0: all
	edit func(*em.Options)
	want string // in the error
}

func onPhase(i int, edit func(*em.Phase)) func(*em.Options) {
	return func(o *em.Options) {
		o.Phases = slices.Clone(o.Phases)
		edit(&o.Phases[i])
	}
}

var changes = []changed{
	{name: "rows", rows: 100, want: "training rows: 200, now 100"},
	{name: "seed", edit: func(o *em.Options) { o.Seed++ }, want: "seed: 3, now 4"},
	{name: "shards", edit: func(o *em.Options) { o.ShardRows = 16 }, want: "shard_rows: 32, now 16"},
	{name: "batch", edit: onPhase(0, func(p *em.Phase) { p.BatchRows = 50 }), want: "phase 1: batch_rows: 30, now 50"},
	{name: "rule", edit: onPhase(0, func(p *em.Phase) { p.Rule = em.FullBatch }), want: "phase 1: rule: minibatch-em, now fullbatch-em"},
	{name: "pseudocount", edit: onPhase(1, func(p *em.Phase) { p.Pseudocount = 7 }), want: "phase 2: pseudocount: "},
	{name: "step size", edit: onPhase(0, func(p *em.Phase) { p.StepSize = em.Schedule{{em.Constant, 1, 0.25, 0.25}} }), want: "phase 1: step_size: "},
	{
		name: "what the caller says", want: "kernel path: avx2, now generic; colour: red, now \"\"",
		edit: func(o *em.Options) {
			o.Fingerprint = []em.Fact{{Name: "kernel path", Value: "generic"}, {Name: "colour"}, {Name: "new", Value: "1"}, {Name: "threads", Value: "2", Free: true}}
		},
	},
}

// resumed resumes a copy of dir.
func (j *job) resumed(t *testing.T, dir string, c changed, allow bool) (em.Result, string, string, error) {
	t.Helper()
	own := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	src := j.model.table
	if c.rows > 0 {
		src = src.Slice(0, c.rows)
	}
	var log bytes.Buffer
	res, _, err := j.try(t, context.Background(), own, src, func(o *em.Options) {
		if c.edit != nil {
			c.edit(o)
		}
		o.AllowChanges, o.Patience, o.Checkpoints.Epochs = allow, 50, 0
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	return res, log.String(), own, err
}

// TestResumeChanged resumes a run in the middle of an epoch with something else
// than before: it is refused by name, continues if that is allowed, and what holds
// from then on needs no allowance again.
func TestResumeChanged(t *testing.T) {
	j := newJob(t)
	for _, c := range changes {
		dir := t.TempDir()
		if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Steps = 3 // of seven
			if strings.HasPrefix(c.want, "kernel path") {
				o.Fingerprint = []em.Fact{{Name: "kernel path", Value: "avx2"}, {Name: "colour", Value: "red"}, {Name: "threads", Value: "1", Free: true}}
			}
		}); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := j.resumed(t, dir, c, false)
		if !errors.Is(err, em.ErrChanged) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want one line of ErrChanged with %q", c.name, err, c.want)
		}
		res, log, own, err := j.resumed(t, dir, c, true)
		if err != nil || res.Epochs != 9 || !strings.Contains(log, "level=WARN msg=\"changed since the checkpoint: ") {
			t.Errorf("%s: %+v, %v, %s", c.name, res, err, log)
		}
		if lines := metricsOf(t, own); len(lines) != 9 {
			t.Errorf("%s: %d lines of metrics, want 9", c.name, len(lines))
		}
		again := strings.Contains(log, "the epoch begins again")
		if want := slices.Contains([]string{"rows", "seed", "batch", "rule"}, c.name); again != want {
			t.Errorf("%s: the epoch begins again: %t, want %t", c.name, again, want)
		}
		if _, log, _, err := j.resumed(t, own, c, false); err != nil || strings.Contains(log, "changed") {
			t.Errorf("%s: resumed once more: %v, %s", c.name, err, log)
		}
	}
}

// TestChangesHoldAtOnce ends a run right after it was resumed with changes: its
// next part needs no allowance, though it had no time to do a step.
func TestChangesHoldAtOnce(t *testing.T) {
	j := newJob(t)
	dir := t.TempDir()
	if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) { o.Steps = 3 }); err != nil {
		t.Fatal(err)
	}
	seeded := func(o *em.Options) { o.Seed = 99 }
	ctx, cancel := context.WithCancel(context.Background())
	if _, _, err := j.try(t, ctx, dir, &interrupting{j.model.table, 1, cancel}, func(o *em.Options) { seeded(o); o.AllowChanges = true }); !errors.Is(err, em.ErrStopped) {
		t.Fatalf("error is %v, want ErrStopped", err)
	}
	if res, _, err := j.try(t, context.Background(), dir, j.model.table, seeded); err != nil || res.Epochs != 9 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, _, err := j.try(t, context.Background(), dir, j.model.table, nil); !errors.Is(err, em.ErrChanged) {
		t.Errorf("what was before is a change now: %v, want ErrChanged", err)
	}
}

// TestResumeOtherRun refuses checkpoints of another circuit, whatever is allowed,
// lets a run be made longer or shorter, and protects checkpoints of another run.
func TestResumeOtherRun(t *testing.T) {
	j := newJob(t)
	dir := t.TempDir()
	if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) { o.Steps = 3 }); err != nil {
		t.Fatal(err)
	}
	other := newJob(t)
	g, err := structures.HMM(structures.HMMOptions{Length: 6, Latents: 4, Tied: true, Leaf: categorical(3)})
	if err != nil {
		t.Fatal(err)
	}
	other.model = newModel(t, g, j.model.rows)
	for _, allow := range []bool{false, true} {
		_, _, _, err := other.resumed(t, dir, changes[1], allow)
		if !errors.Is(err, em.ErrCheckpoint) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "the circuit differs: seed: 3, now 4") {
			t.Errorf("another circuit: error is %v, want ErrCheckpoint and the seed in one line", err)
		}
	}
	res, log, _, err := j.resumed(t, dir, changed{edit: func(o *em.Options) {
		o.Phases = append(slices.Clone(o.Phases), em.Phase{Rule: em.FullBatch, Epochs: 3})
		o.Patience = 0
	}}, false)
	if err != nil || res.Epochs != 12 || !strings.Contains(log, "epochs raised from 9 to 12") {
		t.Errorf("a longer run: %+v, %v, %s", res, err, log)
	}
	res, log, _, err = j.resumed(t, dir, changed{edit: onPhase(2, func(p *em.Phase) { p.Epochs-- })}, false)
	if err != nil || res.Epochs != 8 || !strings.Contains(log, "epochs lowered from 9 to 8") {
		t.Errorf("a shorter run: %+v, %v, %s", res, err, log)
	}
	flows := em.NewLocal(j.model.engine(t, cpu.Options{}, 75), j.model.table)
	defer flows.Close()
	fresh, err := em.New(flows, em.Options{Checkpoints: em.Checkpoints{Dir: filepath.Join(dir, "checkpoints")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fresh.Run(context.Background()); !errors.Is(err, em.ErrOptions) {
		t.Errorf("a fresh run over another one's checkpoints: %v", err)
	}
}

// asVersion1 makes a checkpoint what the first version of them was.
func asVersion1(t *testing.T, path string) {
	t.Helper()
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Metadata["version"] != "2" {
		t.Fatalf("version %q", f.Metadata["version"])
	}
	f.Metadata["version"] = "1"
	delete(f.Metadata, "fingerprint")
	var b bytes.Buffer
	tensors := slices.DeleteFunc(slices.Clone(f.Tensors), func(x safetensors.Tensor) bool { return x.Name == "metrics" })
	err = safetensors.Write(&b, f.Metadata, tensors, func(x *safetensors.Tensor, s *safetensors.Sink) error {
		if x.Name == "check" {
			return safetensors.Append(s, []uint64{0})
		}
		v := make([]float32, x.Len())
		if err := safetensors.Read(f, x.Name, 0, v); err != nil {
			return err
		}
		return safetensors.Append(s, v)
	})
	if err != nil {
		t.Fatal(err)
	}
	body := b.Bytes()[:b.Len()-8]
	body = binary.LittleEndian.AppendUint64(body, uint64(crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))))
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestResumeVersion1 resumes from a checkpoint without a fingerprint, of a version
// that cut an epoch into other batches: between two epochs if that is allowed, and
// inside one not at all.
func TestResumeVersion1(t *testing.T) {
	j := newJob(t)
	for _, epochs := range []int64{0, 2} {
		dir := t.TempDir()
		steps := 7 * epochs
		if epochs == 0 {
			steps = 3
		}
		if _, _, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) { o.Steps, o.Checkpoints.Keep = steps, 1 }); err != nil {
			t.Fatal(err)
		}
		asVersion1(t, filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%012d.safetensors", steps)))
		_, _, _, refused := j.resumed(t, dir, changed{}, false)
		res, log, _, err := j.resumed(t, dir, changed{}, true)
		if epochs == 0 {
			for _, err := range []error{refused, err} {
				if !errors.Is(err, em.ErrCheckpoint) || !strings.Contains(err.Error(), "inside epoch 1") || strings.Contains(err.Error(), "\n") {
					t.Errorf("inside an epoch: %v, want ErrCheckpoint", err)
				}
			}
			continue
		}
		_, _, _, seeded := j.resumed(t, dir, changes[1], false)
		if !errors.Is(seeded, em.ErrChanged) || !strings.Contains(seeded.Error(), changes[1].want) {
			t.Errorf("between epochs, another seed: %v, want ErrChanged and %q", seeded, changes[1].want)
		}
		if !errors.Is(refused, em.ErrChanged) || !strings.Contains(refused.Error(), "checkpoint version: 1 (no fingerprint") {
			t.Errorf("between epochs: %v, want ErrChanged", refused)
		}
		if err != nil || res.Epochs != 9 || !strings.Contains(log, "checkpoint version: 1") {
			t.Errorf("between epochs, allowed: %+v, %v, %s", res, err, log)
		}
	}
}

// TestLongerAfterEarlyStop gives a run that has stopped early more epochs: it
// trains on and stops early again, once, and keeps the best epoch.
func TestLongerAfterEarlyStop(t *testing.T) {
	j := newJob(t)
	g := j.model.graph
	j.model = newModel(t, g, clustered(g, 21, 12, 0))
	j.opts = em.Options{
		Phases:   []em.Phase{{Rule: em.FullBatch, Epochs: 500}},
		Valid:    tableOf(t, g, clustered(g, 21, 300, 0)),
		Patience: 4,
	}
	dir := t.TempDir()
	run := func(epochs int) em.Result {
		t.Helper()
		res, _, err := j.try(t, context.Background(), dir, j.model.table, onPhase(0, func(p *em.Phase) { p.Epochs = epochs }))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := run(500)
	if first.Epochs >= 400 || first.Best != first.Epochs-4 {
		t.Fatalf("the run did not stop early: %+v", first)
	}
	for i, epochs := range []int{500, 600, 600, 300, 601} {
		want := first.Epochs
		if epochs > 500 {
			want += 4
		}
		if i >= 3 {
			want = first.Epochs + 4*(i-2)
		}
		if i == 3 {
			want = first.Epochs + 4
		}
		got := run(epochs)
		if got.Epochs != want || got.Best != first.Best || got.ValidLL != first.ValidLL {
			t.Errorf("run %d, with %d epochs: %+v, want %d epochs and the best as in %+v", i, epochs, got, want, first)
		}
	}
}

// TestDamagedMetrics damages the metrics of a run that is stopped: the resumed run
// says so and sets the file right, to the byte.
func TestDamagedMetrics(t *testing.T) {
	j := newJob(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, _, err := j.try(t, ctx, dir, j.model.table, func(o *em.Options) {
		o.OnStep = func(p em.Progress) {
			if p.Epoch == 4 && p.Step == 2 {
				cancel()
			}
		}
	})
	if !errors.Is(err, em.ErrStopped) {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil || bytes.Count(whole, []byte("\n")) != 3 {
		t.Fatalf("%q, %v; want three lines", whole, err)
	}
	second := bytes.IndexByte(whole, '\n') + 1
	for name, tc := range map[string]struct {
		spoil func(b []byte) []byte
		log   string // "": nothing is damaged
	}{
		"nothing":      {func(b []byte) []byte { return b }, ""},
		"half a line":  {func(b []byte) []byte { return append(b, `{"epoch":4,`...) }, ""},
		"a bit":        {func(b []byte) []byte { b[second+12] ^= 1; return b }, "lines of 1 epochs are restored from the checkpoint: [2]"},
		"cut":          {func(b []byte) []byte { return b[:second+4] }, "lines of 2 epochs are restored from the checkpoint: [2 3]"},
		"empty":        {func([]byte) []byte { return nil }, "lines of 3 epochs are restored from the checkpoint: [1 2 3]"},
		"another line": {func(b []byte) []byte { return append([]byte("x\n"), b...) }, "lines that belong to no epoch are removed"},
	} {
		own := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(own, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, "metrics.jsonl"), tc.spoil(bytes.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		_, log, own, err := j.resumed(t, own, changed{}, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(own, "metrics.jsonl"))
		if err != nil || !bytes.HasPrefix(got, whole) || bytes.Count(got, []byte("\n")) != 9 {
			t.Errorf("%s: %v, %q, want nine lines that begin with\n%q", name, err, got, whole)
		}
		if !strings.Contains(log, tc.log) || strings.Contains(log, "damaged") != (tc.log != "") {
			t.Errorf("%s: the log says %s, want %q", name, log, tc.log)
		}
	}
}
