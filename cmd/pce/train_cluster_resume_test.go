package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// TestResumeOnCluster stops a run of this machine and resumes it on a cluster, which gives the bits of an unbroken run. Resumed another
// time, with nothing left to train, it is recorded as far as it is.
func TestResumeOnCluster(t *testing.T) {
	t.Setenv("PCE_CPU", "") // the best kernels, as the workers of other tests
	data := t.TempDir()
	set := imageFiles(t, data)
	a, whole, broken := testApp(), testConfig(t, set...), testConfig(t, set...)
	if _, err := run.Train(t.Context(), a.trainOptions(whole)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := a.trainOptions(broken)
	o.EM.OnStep = func(em.Progress) { cancel() }
	if _, err := run.Train(ctx, o); !errors.Is(err, em.ErrStopped) {
		t.Fatalf("error is %v, want ErrStopped", err)
	}
	c := newTestCluster(t, 2, data)
	o = a.trainOptions(broken)
	o.Resume = true
	r := c.runner(t, t.TempDir())
	for range 2 {
		res, err := testTraining(r, broken, slog.New(slog.DiscardHandler)).lead(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if res.PrecisionUsed == "" {
			t.Errorf("the precision of the workers is not known of %+v", res)
		}
		if record, _, err := job.GetRun(t.Context(), r.Bus, "run-1"); err != nil || record.Epoch != res.Epochs || record.Step != res.Steps {
			t.Errorf("record %+v, %v; want %d epochs and %d steps", record, err, res.Epochs, res.Steps)
		}
	}
	if !bytes.Equal(readFile(t, broken.Output, run.ModelFile), readFile(t, whole.Output, run.ModelFile)) {
		t.Error("a run that began here and ended on a cluster has another model")
	}
}
