package em_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

// TestKeepStart begins with parameters that are good already and takes large steps over few
// rows, which make them worse: the start must be what is saved, from an unbroken run and from
// one that is stopped and resumed. Without KeepStart it must not be, or the test shows nothing.
func TestKeepStart(t *testing.T) {
	j := newJob(t)
	_, good := j.model.run(t, cpu.Options{}, em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 30, Pseudocount: 1}}})
	harm := em.Phase{
		Rule: em.MiniBatch, Epochs: 3, BatchRows: 4,
		StepSize: em.Schedule{{Shape: em.Constant, Length: 1, From: 1, To: 1}},
	}
	j.opts = em.Options{Phases: []em.Phase{harm}, Valid: j.opts.Valid, KeepStart: true, Checkpoints: em.Checkpoints{Epochs: 1}}
	run := func(ctx context.Context, dir string, edit func(*em.Options)) (em.Result, []float32, error) {
		tr, flows := j.trainer(t, dir, j.model.table, edit)
		if err := flows.WriteParams(context.Background(), 0, good); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		res, err := tr.Run(ctx)
		return res, bits(t, flows), err
	}
	whole, params, err := run(context.Background(), t.TempDir(), nil)
	if err != nil || !whole.BestStart || whole.Best != 0 || !sameBits(params, good) {
		t.Errorf("%+v, %v: another model than the start was kept", whole, err)
	}
	worse, params, err := run(context.Background(), t.TempDir(), func(o *em.Options) { o.KeepStart = false })
	if err != nil || worse.BestStart || !(worse.ValidLL < whole.ValidLL) || sameBits(params, good) {
		t.Errorf("%+v, %v: the steps do no harm, want less than %v", worse, err, whole.ValidLL)
	}

	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	if _, _, err := run(ctx, dir, func(o *em.Options) {
		o.OnStep = func(em.Progress) {
			if steps++; steps == 70 { // in the second epoch
				cancel()
			}
		}
	}); !errors.Is(err, em.ErrStopped) {
		t.Fatalf("%v, want a stopped run", err)
	}
	res, params, err := run(context.Background(), dir, nil)
	if res.Seconds = whole.Seconds; err != nil || res != whole || !sameBits(params, good) {
		t.Errorf("resumed: %+v, %v, want %+v", res, err, whole)
	}
	j.opts.Phases = []em.Phase{{Rule: em.FullBatch, Epochs: 2, Pseudocount: 1}}
	tr, flows := j.trainer(t, t.TempDir(), j.model.table, nil) // from a random start
	better, err := tr.Run(context.Background())
	if err != nil || better.BestStart || better.Best != 2 || sameBits(bits(t, flows), good) {
		t.Errorf("%+v, %v: steps that help are not kept", better, err)
	}
	if _, err := em.New(nil, em.Options{Phases: []em.Phase{harm}, KeepStart: true}); !errors.Is(err, em.ErrOptions) {
		t.Errorf("a start that is kept without rows to judge by: %v", err)
	}
}
