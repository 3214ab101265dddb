package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/run"
)

// startBroker starts a broker, and workers that are commands in this process. It
// returns the arguments with which a client reaches the cluster.
func startBroker(t *testing.T, workers int, roots ...string) []string {
	t.Helper()
	dir := t.TempDir()
	seats, err := natsbus.NewSeats(filepath.Join(dir, "seats"), workers)
	if err != nil {
		t.Fatal(err)
	}
	broker, err := natsbus.StartBroker(natsbus.BrokerOptions{Dir: filepath.Join(dir, "broker"), Seats: seats})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, s := range seats[2:] {
		args := []string{"worker", "--cluster", broker.URL(), "--credentials", s.File, "--dir", filepath.Join(dir, s.Name), "--device", "cpu", "--threads", "1", "--lease", "3s"}
		for _, r := range roots {
			args = append(args, "--root", r)
		}
		running.Go(func() {
			errs, err := os.Create(filepath.Join(dir, s.Name+".log")) // a connection may still write when the command has ended
			if err != nil {
				t.Error(err)
				return
			}
			if code := Run(ctx, args, nil, strings.NewReader(""), io.Discard, errs); code != exitCheckpointed {
				t.Errorf("%s ends with %d: %s", s.Name, code, readFile(t, errs.Name()))
			}
		})
	}
	return []string{"--cluster", broker.URL(), "--credentials", seats[1].File}
}

// TestTrainOnCluster trains with --cluster over each transport and wants the
// files of a run on this machine.
func TestTrainOnCluster(t *testing.T) {
	data := t.TempDir()
	set := imageFiles(t, data)
	here := testConfig(t, set...)
	if _, err := run.Train(t.Context(), testApp().trainOptions(here)); err != nil {
		t.Fatal(err)
	}
	reach := startBroker(t, 2, data)
	text, err := here.YAML()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, transport := range []string{"tcp", "nats"} {
		out := filepath.Join(t.TempDir(), "run")
		args := append([]string{"train", "--config", config, "--out", out, "--set", "cluster.workers=2", "--set", "cluster.transport=" + transport}, reach...)
		var log bytes.Buffer
		end := runJSONLog(t, &log, args...)
		// the precision follows where workers have said theirs by then
		if training := log.String(); !strings.Contains(training, "rows on cluster\"") && !strings.Contains(training, "rows on cluster (fp32)\"") {
			t.Errorf("%s: the log does not say that training begins on the cluster: %s", transport, training)
		}
		if end["device"] != "cluster: 2 × cpu" || end["precision_used"] == "" || number(t, end, "steps") != 12 {
			t.Errorf("%s: train ends with %v", transport, end)
		}
		for _, file := range []string{run.ModelFile, run.SamplesFile} {
			if !bytes.Equal(readFile(t, out, file), readFile(t, here.Output, file)) {
				t.Errorf("%s: %s differs", transport, file)
			}
		}
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"train", "--config", config, "--credentials", "x"}, nil, nil, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "no effect without --cluster") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// TestInterruptedOnCluster stops a run of the cluster after some steps, again and
// again, and wants the model of an unbroken one.
func TestInterruptedOnCluster(t *testing.T) {
	data := t.TempDir()
	set := imageFiles(t, data)
	here := testConfig(t, set...)
	a := testApp()
	if _, err := run.Train(t.Context(), a.trainOptions(here)); err != nil {
		t.Fatal(err)
	}
	c := newTestCluster(t, 2, data)
	r := c.runner(t, t.TempDir())
	there := testConfig(t, set...)
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithCancel(t.Context())
		o := a.trainOptions(there)
		o.Resume = true
		steps := 0
		o.EM.OnStep = func(em.Progress) {
			if steps++; steps == 5 {
				cancel()
			}
		}
		_, err := testTraining(r, there, slog.New(slog.DiscardHandler)).lead(ctx, o)
		cancel()
		state := job.StateDone
		if err != nil {
			if !errors.Is(err, em.ErrStopped) || attempt > 3 {
				t.Fatalf("attempt %d: %v, want ErrStopped", attempt, err)
			}
			state = job.StateInterrupted
		}
		r, _, getErr := job.GetRun(t.Context(), r.Bus, "run-1")
		if getErr != nil || r.State != state || r.Kind != kindTrain || r.Epochs != 3 {
			t.Errorf("record %+v, %v; want state %s", r, getErr, state)
		}
		if err == nil {
			break
		}
	}
	for _, file := range []string{run.ModelFile, run.SamplesFile} {
		if !bytes.Equal(readFile(t, there.Output, file), readFile(t, here.Output, file)) {
			t.Errorf("%s differs", file)
		}
	}
	audit, err := os.Open(filepath.Join(there.Output, job.AuditFile))
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	if steps, err := cluster.CheckAudit(audit); err != nil || steps != 12 {
		t.Errorf("audit: %d steps, %v", steps, err)
	}
}

// TestResumeFromCluster stops a run of the cluster and resumes it with another
// pseudocount, which is refused, with kernels that the workers have not begun with,
// which they take again, and on this machine, which gives the bits of an unbroken run.
func TestResumeFromCluster(t *testing.T) {
	t.Setenv("PCE_CPU", "") // the best kernels, whatever the other tests are run with
	data := t.TempDir()
	set := imageFiles(t, data)
	a, here, there := testApp(), testConfig(t, set...), testConfig(t, set...)
	if _, err := run.Train(t.Context(), a.trainOptions(here)); err != nil {
		t.Fatal(err)
	}
	c := newTestCluster(t, 2, data)
	r := c.runner(t, t.TempDir())
	lead := func(ctx context.Context, edit func(*run.TrainOptions)) (string, error) {
		o := a.trainOptions(there)
		o.Resume = true
		edit(&o)
		path := ""
		for _, f := range em.LastFingerprint(filepath.Join(there.Output, run.CheckpointDir)) {
			if f.Name == run.KernelPathFact {
				path = f.Value
			}
		}
		_, err := testTraining(r, there, slog.New(slog.DiscardHandler)).lead(ctx, o)
		return path, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := lead(ctx, func(o *run.TrainOptions) { o.EM.OnStep = func(em.Progress) { cancel() } }); !errors.Is(err, em.ErrStopped) {
		t.Fatalf("error is %v, want ErrStopped", err)
	}
	changed := *there
	changed.Train.Pseudocount *= 2
	path, err := lead(t.Context(), func(o *run.TrainOptions) { o.Settings = a.trainOptions(&changed).Settings })
	if !errors.Is(err, em.ErrChanged) || !strings.Contains(err.Error(), "train.pseudocount: ") || exitCode(err) != exitData || strings.Contains(err.Error(), "kernel path") {
		t.Errorf("another pseudocount: %v, want ErrChanged", err)
	}
	if path != cpu.KernelPaths()[0] {
		t.Errorf("the run had the kernel path %q, this machine's best is %q", path, cpu.KernelPaths()[0])
	}
	o := a.trainOptions(there)
	o.Resume = true
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, there.Output, run.ModelFile), readFile(t, here.Output, run.ModelFile)) {
		t.Error("a run that began on a cluster and ended here has another model")
	}
}

// TestLongErrorOnCluster has a run of the cluster fail with an error that is longer than a message of the broker: the record of the run has the
// beginning of it.
func TestLongErrorOnCluster(t *testing.T) {
	data := t.TempDir()
	a, cfg := testApp(), testConfig(t, imageFiles(t, data)...)
	c := newTestCluster(t, 2, data)
	r := c.runner(t, t.TempDir())
	for _, setting := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := a.trainOptions(cfg)
		o.Resume, o.EM.OnStep = true, func(em.Progress) { cancel() }
		o.Settings = append(o.Settings[:len(o.Settings):len(o.Settings)], em.Fact{Name: "long", Value: strings.Repeat(setting, 2<<20)})
		_, err := testTraining(r, cfg, slog.New(slog.DiscardHandler)).lead(ctx, o)
		want, state := em.ErrStopped, job.StateInterrupted
		if setting == "b" {
			want, state = em.ErrChanged, job.StateFailed
		}
		record, _, getErr := job.GetRun(t.Context(), r.Bus, "run-1")
		if !errors.Is(err, want) || getErr != nil || record.State != state || len(record.Error) > 1<<16 {
			t.Errorf("%.100v; record %.300v, %v; want %v and %s", err, record, getErr, want, state)
		}
	}
}

// TestChangedTraining replaces the training rows while a run waits for workers, after it has made
// its circuit of them: it is refused, as a job and where this process leads it, and saves no model.
func TestChangedTraining(t *testing.T) {
	for _, kind := range []string{"job", "lead"} {
		t.Run(kind, func(t *testing.T) {
			data := t.TempDir()
			cfg := testConfig(t, append(imageFiles(t, data), "cluster.workers=1")...)
			rows := cfg.Data.Train[0]
			c := newTestCluster(t, 0)
			r := c.runner(t, t.TempDir(), data)
			waits := onLine{"waiting for workers", func() {
				first, rest, _ := bytes.Cut(readFile(t, rows), []byte("\n"))
				row, rest, _ := bytes.Cut(rest, []byte("\n"))
				if err := os.WriteFile(rows, slices.Concat(first, []byte("\n"), rest, row, []byte("\n")), 0o600); err != nil {
					t.Error(err)
				}
				c.start(t, "worker-000", []string{data})
			}}
			var err error
			if kind == "job" {
				j, jobErr := testApp().newJob(t.Context(), "run-1", cfg)
				if jobErr != nil {
					t.Fatal(jobErr)
				}
				text, jobErr := j.Encode(r.Bus.MaxPayload())
				if jobErr != nil {
					t.Fatal(jobErr)
				}
				r.Log = waits
				cfg.Output = filepath.Join(r.Dir, "runs", "run-1")
				err = r.Do(t.Context(), "run-1", text)
			} else {
				_, err = testTraining(r, cfg, slog.New(slog.NewTextHandler(waits, nil))).lead(t.Context(), testApp().trainOptions(cfg))
			}
			if !errors.Is(err, cluster.ErrJob) || exitCode(err) != exitData || !strings.Contains(err.Error(), rows+" changed while the run waited for workers") {
				t.Errorf("%v, want ErrJob and the file", err)
			}
			if _, err := os.Stat(filepath.Join(cfg.Output, run.ModelFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a model is there: %v", err)
			}
		})
	}
}

// TestLeftWhileWaiting stops a run that waits for another one: it has no record by which it could be cancelled, so what it has uploaded is
// removed at once.
func TestLeftWhileWaiting(t *testing.T) {
	cfg := testConfig(t, imageFiles(t, t.TempDir())...)
	c := newTestCluster(t, 1)
	r := c.runner(t, t.TempDir())
	if _, err := r.Bus.Bucket(cluster.LeadBucket).Create(t.Context(), cluster.LeadKey, []byte(`{"id":"c-2","run":"another"}`)); err != nil {
		t.Fatal(err)
	}
	uploaded := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waits := onLine{"another run has the cluster", func() {
		cancel()
		list, err := r.Bus.Bucket(cluster.RunsBucket).List(t.Context())
		if err != nil {
			t.Error(err)
		}
		uploaded = len(list)
	}}
	if _, err := testTraining(r, cfg, slog.New(slog.NewTextHandler(waits, nil))).lead(ctx, testApp().trainOptions(cfg)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
	left, err := r.Bus.Bucket(cluster.RunsBucket).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if uploaded != 1 || len(left) != 0 {
		t.Errorf("%d notes of uploads while it waits, and %d records when it has left; want 1 and none", uploaded, len(left))
	}
}

// leavingBus stops the run when it begins to upload.
type leavingBus struct {
	cluster.Bus
	stop context.CancelFunc
}

type leavingBlobs struct {
	cluster.Blobs
	stop context.CancelFunc
}

func (b leavingBus) Blobs() cluster.Blobs { return leavingBlobs{b.Bus.Blobs(), b.stop} }

func (b leavingBlobs) Put(ctx context.Context, digest string, r io.Reader, size int64) error {
	b.stop()
	return b.Blobs.Put(ctx, digest, r, size)
}

// TestLeftWhileUploading stops a run that uploads its rows: the error says that the broker was not reached, and nothing stays with it.
func TestLeftWhileUploading(t *testing.T) {
	cfg := testConfig(t, imageFiles(t, t.TempDir())...)
	r := newTestCluster(t, 1).runner(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	training := testTraining(r, cfg, slog.New(slog.DiscardHandler))
	training.Bus = leavingBus{r.Bus, cancel}
	if _, err := training.lead(ctx, testApp().trainOptions(cfg)); !errors.Is(err, cluster.ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the broker was not reached as the context ended", err)
	}
	if left, err := r.Bus.Bucket(cluster.RunsBucket).List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%d records when it has left (%v), want none", len(left), err)
	}
}

// TestDeposed has another process take the lead from a run that trains, as after a time without the broker: the error says how the run
// continues.
func TestDeposed(t *testing.T) {
	data := t.TempDir()
	cfg := testConfig(t, imageFiles(t, data)...)
	c := newTestCluster(t, 0)
	c.lease = time.Second
	c.start(t, "worker-000", []string{data})
	r := c.runner(t, t.TempDir())
	o := testApp().trainOptions(cfg)
	o.EM.OnStep = func(em.Progress) {
		if _, err := r.Bus.Bucket(cluster.LeadBucket).Put(t.Context(), cluster.LeadKey, []byte(`{"id":"c-2","run":"another"}`)); err != nil {
			t.Error(err)
		}
		<-time.After(c.lease) // until it looks at its lead
	}
	_, err := testTraining(r, cfg, slog.New(slog.DiscardHandler)).lead(t.Context(), o)
	if !errors.Is(err, cluster.ErrDeposed) || !strings.HasSuffix(err.Error(), "; --resume continues from the last checkpoint") {
		t.Errorf("%v, want ErrDeposed and what to do", err)
	}
}

// TestSecondTraining has two more processes train into the directory of a run that waits for the cluster: one finds it in use, one does not
// find its rows. Neither takes away what the first one has uploaded.
func TestSecondTraining(t *testing.T) {
	cfg := testConfig(t, imageFiles(t, t.TempDir())...)
	lost := *cfg
	lost.Data.Train = []string{filepath.Join(t.TempDir(), "lost.csv")}
	c := newTestCluster(t, 1)
	r := c.runner(t, t.TempDir())
	if _, err := r.Bus.Bucket(cluster.LeadBucket).Create(t.Context(), cluster.LeadKey, []byte(`{"id":"c-2","run":"another"}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tried := false
	waits := onLine{"another run has the cluster", func() {
		defer cancel()
		for cfg, want := range map[*configs.Config]error{cfg: atomicfile.ErrLocked, &lost: os.ErrNotExist} {
			if _, err := testTraining(r, cfg, slog.New(slog.DiscardHandler)).lead(t.Context(), testApp().trainOptions(cfg)); !errors.Is(err, want) {
				t.Errorf("a second process ends with %v, want %v", err, want)
			}
			if list, err := r.Bus.Bucket(cluster.RunsBucket).List(t.Context()); err != nil || len(list) != 1 {
				t.Errorf("after %v: %d notes of uploads, %v; want that of the first process", want, len(list), err)
			}
		}
		tried = true
	}}
	if _, err := testTraining(r, cfg, slog.New(slog.NewTextHandler(waits, nil))).lead(ctx, testApp().trainOptions(cfg)); !errors.Is(err, context.Canceled) || !tried {
		t.Errorf("%v, tried %v; want the end of the context after the others", err, tried)
	}
}

// TestLeftWithoutWorkers stops a run that has the lead and waits for workers that can take part: its record, which says that it is running,
// says then that it was interrupted.
func TestLeftWithoutWorkers(t *testing.T) {
	cfg := testConfig(t, imageFiles(t, t.TempDir())...)
	c := newTestCluster(t, 0)
	r := c.runner(t, t.TempDir())
	deaf, err := json.Marshal(cluster.Member{ID: "worker-000", Version: cluster.Protocol, Inbox: "worker-000-1"}) // it has no transport
	if err == nil {
		_, err = r.Bus.Bucket(cluster.MembersBucket).Create(t.Context(), "worker-000", deaf)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	unfit := onLine{"worker takes no part", cancel}
	if _, err := testTraining(r, cfg, slog.New(slog.NewTextHandler(unfit, nil))).lead(ctx, testApp().trainOptions(cfg)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
	rec, _, err := job.GetRun(t.Context(), r.Bus, "run-1")
	if err != nil || rec.State != job.StateInterrupted || rec.Code != exitCheckpointed || rec.Kind != kindTrain {
		t.Errorf("record %+v, %v; want an interrupted run", rec, err)
	}
}

// onLine is a log that does something after a line.
type onLine struct {
	text string
	do   func()
}

func (l onLine) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(l.text)) {
		l.do()
	}
	return len(line), nil
}
