package em_test

import (
	"context"
	"testing"

	"github.com/pce-engine/pce/em"
)

// TestPatienceOffAndOn resumes a run that has a best epoch without patience, which trains it on,
// and then with patience again: the model of the part without it may not give way to the
// earlier epoch, with which it was not compared, and the best is chosen of the epochs that follow.
func TestPatienceOffAndOn(t *testing.T) {
	j := overfitting(t)
	dir := t.TempDir()
	part := func(epochs, patience int) (em.Result, []float32) {
		t.Helper()
		res, params, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
			o.Phases, o.Patience = []em.Phase{{Rule: em.FullBatch, Epochs: epochs}}, patience
		})
		if err != nil {
			t.Fatal(err)
		}
		return res, params
	}
	first, _ := part(500, 4)
	if first.Best == 0 || first.Best == first.Epochs {
		t.Fatalf("%+v: the run has not stopped early", first)
	}
	total := first.Epochs + 3
	off, params := part(total, 0)
	if off.Epochs != total || off.Best != 0 {
		t.Fatalf("without patience: %+v, want %d epochs and the last one", off, total)
	}
	on, again := part(total, 4)
	if on.Epochs != total || on.Best != 0 || !sameBits(params, again) {
		t.Errorf("with patience again: %+v, %s; want the model as it was", on, firstDifference(params, again))
	}
	longer, _ := part(total+20, 4)
	if longer.Best != total+1 || longer.Epochs != total+1+4 { // each epoch is worse than the one before
		t.Errorf("longer: %+v, want the best of the epochs after %d and patience from there", longer, total)
	}
}
