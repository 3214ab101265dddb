package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/uploads"
	"github.com/pce-engine/pce/configs"
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
			var l job.Lead
			configure(&l, cfg)
			if r, _, err := job.GetRun(t.Context(), bus, j.ID); err != nil || r.Epochs != want || l.Epochs != want {
				t.Errorf("%s: %d epochs in the queue, %d of the lead, %v; want %d", kind, r.Epochs, l.Epochs, err, want)
			}
		}
	})
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
			if _, err := j.AddFile(path); err != nil {
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
