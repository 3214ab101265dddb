package main

import (
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
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
