package run_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/circuit/resize"
	"github.com/pce-engine/pce/run"
)

// TestResizedUnwritten grows a model into a directory that is missing: that is an error, and no model that was grown.
func TestResizedUnwritten(t *testing.T) {
	o := small(t, "rat-spn")
	o.EM.Phases = o.EM.Phases[:1]
	o.EM.Phases[0].Epochs = 1
	if _, err := run.Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "missing", "model.pce")
	if got, err := run.Grow(filepath.Join(o.Dir, run.ModelFile), out, resize.GrowOptions{Noise: 0.1, Seed: 1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v; want ErrNotExist", got, err)
	}
}
