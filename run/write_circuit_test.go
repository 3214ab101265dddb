package run_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestWriteCircuitChecks: no file is written of a schema that it could not have.
func TestWriteCircuitChecks(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 2}}}}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for _, labels := range [][]string{{"a", "a"}, {"a"}, {"a", "\xf6"}} {
		s := &dataset.Schema{Columns: []dataset.Column{{Name: "class", Categories: 2, Labels: labels}}}
		if err := run.WriteCircuit(path, g, s, reference.Params{{0.5, 0.5}}.Read64); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("labels %q: %v", labels, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("labels %q: there is a file, %v", labels, err)
		}
	}
}
