package em_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/em"
)

// stepOf is the step after which a checkpoint was taken.
func stepOf(t *testing.T, path string) (step int64) {
	t.Helper()
	if _, err := fmt.Sscanf(filepath.Base(path), "step-%d.safetensors", &step); err != nil {
		t.Error(path, err)
	}
	return step
}

// TestStepDuringCheckpoint holds checkpoints up until a later step is done. The run
// has the bits of one whose checkpoints are not held up, and ends with the last of them.
func TestStepDuringCheckpoint(t *testing.T) {
	j := newJob(t)
	want := j.unbroken(t)
	dir := t.TempDir()
	steps := make(chan int64, 1000) // more than the run has
	done, held := int64(0), 0
	tr, flows := j.trainer(t, dir, j.model.table, func(o *em.Options) {
		o.Checkpoints.Epochs, o.Checkpoints.Steps = 0, 4
		o.OnStep = func(em.Progress) { done++; steps <- done }
	})
	tr.HoldCheckpoints(func(path string) error {
		if held++; held > 3 {
			return nil
		}
		for at := stepOf(t, path); ; {
			select {
			case step := <-steps:
				if step <= at {
					continue
				}
			case <-time.After(time.Minute): // never, unless the run waits
				t.Errorf("no step while the checkpoint after step %d is written", at)
			}
			break
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there before it is written", path)
		}
		return nil
	})
	if _, err := tr.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := tr.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want.check(t, "held up", dir, res, bits(t, flows))
	if held < 4 {
		t.Errorf("%d checkpoints, want more than were held up", held)
	}
	last := filepath.Join(dir, "checkpoints", fmt.Sprintf("step-%012d.safetensors", res.Steps))
	if _, err := os.Stat(last); err != nil {
		t.Error("the run has ended before its last checkpoint:", err)
	}
}

// TestOneCheckpointAtATime wants each checkpoint to wait for the one before, which takes as long as some steps do.
func TestOneCheckpointAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t)
		var atWork atomic.Int32
		last := int64(-1)
		tr, _ := j.trainer(t, t.TempDir(), j.model.table, func(o *em.Options) { o.Checkpoints.Steps, o.Steps = 1, 20 })
		tr.HoldCheckpoints(func(path string) error {
			if n := atWork.Add(1); n != 1 {
				t.Errorf("%d checkpoints at work", n)
			}
			if step := stepOf(t, path); step < last { // the end of an epoch is a step later in the data alone
				t.Errorf("the checkpoint after step %d follows that after %d", step, last)
			} else {
				last = step
			}
			time.Sleep(time.Second)
			atWork.Add(-1)
			return nil
		})
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last != 20 {
			t.Errorf("the last checkpoint is after step %d, want 20", last)
		}
	})
}

// TestFailedCheckpoint fills the disk under a checkpoint in the midst of a run and under the
// last one: the run ends with the error, before it saves a model, and continues from
// the checkpoint before.
func TestFailedCheckpoint(t *testing.T) {
	j := newJob(t)
	want := j.unbroken(t)
	for _, failing := range []int64{8, want.result.Steps} {
		dir := t.TempDir()
		tr, _ := j.trainer(t, dir, j.model.table, func(o *em.Options) {
			o.Checkpoints.Epochs, o.Checkpoints.Steps = 0, 4
			if failing == want.result.Steps { // nothing but the end waits for it
				o.Checkpoints.Steps = 0
			}
			o.Sink = em.SinkFunc(func(context.Context, em.ParamReader) error {
				t.Errorf("the model is saved, though the checkpoint after step %d is not", failing)
				return nil
			})
		})
		tr.HoldCheckpoints(func(path string) error {
			if stepOf(t, path) == failing {
				return syscall.ENOSPC
			}
			return nil
		})
		_, err := tr.Run(t.Context())
		if !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), fmt.Sprintf("the checkpoint after step %d", failing)) {
			t.Errorf("step %d: error is %v, want the disk's in one line", failing, err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "checkpoints", "*"))
		for _, f := range files {
			if stepOf(t, f) >= failing {
				t.Errorf("%s is there, though the checkpoint after step %d failed", f, failing)
			}
		}
		res, params, err := j.try(t, t.Context(), dir, j.model.table, nil)
		if err != nil {
			t.Fatal(err)
		}
		want.check(t, fmt.Sprintf("after a full disk at step %d", failing), dir, res, params)
	}
}

// TestFailedCheckpointStep wants the step in the error of every checkpoint: of one whose state
// cannot be written, and of one whose file fails afterwards, before the run goes on or later.
func TestFailedCheckpointStep(t *testing.T) {
	dir := t.TempDir()
	for i := range int64(2000) {
		fill, write := error(nil), error(syscall.ENOSPC)
		if i%2 == 0 {
			fill, write = write, fill
		}
		if err := em.SaveFailing(dir, i, fill, write); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), fmt.Sprintf("the checkpoint after step %d: ", i)) {
			t.Fatalf("checkpoint after step %d: %v", i, err)
		}
	}
}
