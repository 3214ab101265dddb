package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestEnqueueEpochs wants a run in the queue to have epochs if it trains, and else none.
func TestEnqueueEpochs(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		for kind, want := range map[string]int{kindTrain: 20, "loglik": 0, "predict": 0} {
			cfg := configs.Default()
			cfg.Train.Epochs, cfg.Job.Kind = 20, kind
			j := &job.Job{Version: job.Version, ID: "r-" + kind, Kind: kind}
			if _, err := enqueue(t.Context(), bus, j, cfg, false); err != nil {
				t.Fatal(err)
			}
			l := job.Lead{Kind: kind}
			configure(&l, cfg)
			if r, _, err := job.GetRun(t.Context(), bus, j.ID); err != nil || r.Epochs != want || l.Epochs != want {
				t.Errorf("%s: %d epochs in the queue, %d of the lead, %v; want %d", kind, r.Epochs, l.Epochs, err, want)
			}
		}
	})
}

// TestSubmitNotes wants a note for what a cluster does not read of a config, before it is asked, and none for the usual values.
func TestSubmitNotes(t *testing.T) {
	for set, want := range map[string]string{
		"name=a":          "",
		"device=cuda:1":   "note: device cuda:1 is ignored: each worker computes on the device that it was started with\n",
		"output=runs/own": "note: output runs/own is ignored: the coordinator has a directory for each run, and pce cluster fetch gets its files\n",
	} {
		code, _, stderr := do(t, "", "cluster", "submit", "--cluster", "@none", "--config", "preset:nltcs", "--set", set)
		if notes, _, _ := strings.Cut(stderr, "pce: "); code == exitOK || notes != want {
			t.Errorf("%s: exit %d, %s; want the note %q", set, code, stderr, want)
		}
	}
}

// TestLeadOfTraining leads the training of a config that also says which job is to be submitted: the epochs are those of training, and
// rows are found as the circuit of training has them, not as the model of the job.
func TestLeadOfTraining(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.safetensors")
	schema := &dataset.Schema{Unit: dataset.Char, Columns: []dataset.Column{{Categories: 2, Labels: []string{"<unk>", "a"}}}}
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 2}}}}
	if err := run.WriteCircuit(text, g, schema, func(_ circuit.NodeID, dst []float64) error { dst[0], dst[1] = 0.5, 0.5; return nil }); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t, "job.kind=loglik", "job.model="+text, "job.data=rows.txt")
	l := job.Lead{Kind: kindTrain}
	configure(&l, cfg)
	o, err := testApp().findOptions(cfg, l.Kind)
	if err != nil || l.Epochs != 3 || o.Text.Unit != "" {
		t.Errorf("%d epochs and rows of unit %q, %v; want 3 and none", l.Epochs, o.Text.Unit, err)
	}
	if o, err = testApp().findOptions(cfg, cfg.Job.Kind); err != nil || o.Text.Unit != dataset.Char {
		t.Errorf("of the job: rows of unit %q, %v; want char", o.Text.Unit, err)
	}
}

// refusingBus has a queue that refuses jobs, after something else has happened.
type refusingBus struct {
	cluster.Bus
	first func()
}

type refusingQueue struct {
	cluster.Queue
	first func()
}

func (b refusingBus) Jobs() cluster.Queue { return refusingQueue{b.Bus.Jobs(), b.first} }

var errRefused = errors.New("refused")

func (q refusingQueue) Submit(context.Context, string, []byte) error {
	q.first()
	return errRefused
}

// sealedBus has blobs to which nothing should be added.
type sealedBus struct {
	cluster.Bus
	t *testing.T
}

type sealedBlobs struct {
	cluster.Blobs
	t *testing.T
}

func (b sealedBus) Blobs() cluster.Blobs { return sealedBlobs{b.Bus.Blobs(), b.t} }

func (b sealedBlobs) Put(context.Context, string, io.Reader, int64) error {
	b.t.Error("a file is uploaded")
	return nil
}

// TestEnqueueTooLarge: a job that is too large for the queue is refused before its files are uploaded, which may take hours.
func TestEnqueueTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		j := &job.Job{Version: job.Version, ID: "r-1", Kind: kindTrain, Config: strings.Repeat("#", bus.MaxPayload())}
		if _, err := j.AddFile(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if _, err := enqueue(t.Context(), sealedBus{bus, t}, j, configs.Default(), false); err == nil || !strings.Contains(err.Error(), "with its config and 1 files, and the queue takes") {
			t.Errorf("%v, want that it is too large", err)
		}
	})
}

// TestEnqueueUndo submits a job in vain: its record and uploads are taken back, unless a
// coordinator works on it already.
func TestEnqueueUndo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, taken := range []bool{false, true} {
		inBubble(t, func(t *testing.T, bus cluster.Bus) {
			j := &job.Job{Version: job.Version, ID: "r-1", Kind: kindTrain}
			if _, err := j.AddFile(t.Context(), path); err != nil {
				t.Fatal(err)
			}
			refusing := refusingBus{bus, func() {
				if taken {
					advance(t, bus, j.ID, 1)
				}
			}}
			if _, err := enqueue(t.Context(), refusing, j, configs.Default(), false); !errors.Is(err, errRefused) {
				t.Errorf("taken %v: %v", taken, err)
			}
			_, _, run := job.GetRun(t.Context(), bus, j.ID)
			_, note := bus.Bucket(cluster.RunsBucket).Get(t.Context(), uploads.Prefix+j.ID)
			if (run == nil) != taken || (note == nil) != taken {
				t.Errorf("taken %v: record %v, note of uploads %v", taken, run, note)
			}
		})
	}
}

// mutedBus carries out what creates a record of a run, and says that it has failed.
type mutedBus struct{ cluster.Bus }

type mutedBucket struct{ cluster.Bucket }

func (b mutedBus) Bucket(name string) cluster.Bucket { return mutedBucket{b.Bus.Bucket(name)} }

func (b mutedBucket) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	if _, err := b.Bucket.Create(ctx, key, value); err != nil {
		return 0, err
	}
	return 0, errRefused
}

// TestEnqueueUndoRecord submits a job and does not hear that its record was written, as where a signal comes before: the run is not listed as
// queued for good.
func TestEnqueueUndoRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		j := &job.Job{Version: job.Version, ID: "r-1", Kind: kindTrain}
		if _, err := enqueue(t.Context(), mutedBus{bus}, j, configs.Default(), false); !errors.Is(err, errRefused) {
			t.Error(err)
		}
		if r, _, err := job.GetRun(t.Context(), bus, j.ID); !errors.Is(err, job.ErrNoRun) {
			t.Errorf("the run is %s (%v)", r.State, err)
		}
	})
}

// deafBus carries out what adds a job, and says that no answer came.
type deafBus struct{ cluster.Bus }

type deafQueue struct{ cluster.Queue }

func (b deafBus) Jobs() cluster.Queue { return deafQueue{b.Bus.Jobs()} }

func (q deafQueue) Submit(ctx context.Context, id string, text []byte) error {
	return errors.Join(q.Queue.Submit(ctx, id, text), cluster.ErrUnreachable)
}

// TestEnqueueUndoJob submits a job and does not hear that it is in the queue, as where a signal comes before: its run is cancelled, and who
// takes the job does not lead it.
func TestEnqueueUndoJob(t *testing.T) {
	inBubble(t, func(t *testing.T, bus cluster.Bus) {
		j := &job.Job{Version: job.Version, ID: "r-1", Kind: kindTrain}
		if _, err := enqueue(t.Context(), deafBus{bus}, j, configs.Default(), false); !errors.Is(err, cluster.ErrUnreachable) {
			t.Error(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		taken := make(chan error, 1)
		go func() {
			_, err := quietTaker(bus, func(context.Context, string, []byte) error {
				t.Error("the run is led")
				return nil
			}).Work(ctx)
			taken <- err
		}()
		if r := ends(t, bus, j.ID); r.State != job.StateCancelled || r.Code != exitInterrupted {
			t.Errorf("the run is %s with code %d, want cancelled", r.State, r.Code)
		}
		<-time.After(time.Minute)
		stop()
		if err := <-taken; err != nil {
			t.Error(err)
		}
	})
}
