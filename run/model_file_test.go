package run_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/format/spnc"
	"github.com/pce-engine/pce/run"
)

// TestTellForestNetwork: a file of SPNC over five variables has the number 4 where XGBoost's old files have the length of
// an objective's name, and the colon's byte behind it if its nodes are some 3,720. It is a network nevertheless.
func TestTellForestNetwork(t *testing.T) {
	const mixed, vars = 620, 5 // with the sum 620 · 6 + 1 nodes
	var text strings.Builder
	for k := range mixed {
		if k > 0 {
			text.WriteString(" + ")
		}
		fmt.Fprintf(&text, "%v*(", 1.0/mixed)
		for v := range vars {
			if v > 0 {
				text.WriteString(" * ")
			}
			fmt.Fprintf(&text, "Categorical(V%d|p=[%v, %v])", v, float64(k)/mixed, 1-float64(k)/mixed)
		}
		text.WriteByte(')')
	}
	m, err := spflow.Parse("(" + text.String() + ")")
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := spnc.Write(&file, m); err != nil {
		t.Fatal(err)
	}
	if b := file.Bytes(); b[136] != 4 || b[145] != ':' {
		t.Fatalf("the file has %q there, so that it tests nothing", b[136:148])
	}
	path := filepath.Join(t.TempDir(), "network.bin")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if is, err := run.TellForest(path); is || err != nil {
		t.Errorf("a network is a forest: %v, %v", is, err)
	}
	m, schema, err := run.OpenCircuit(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(schema.Columns) != vars {
		t.Errorf("%d columns, want %d", len(schema.Columns), vars)
	}
}
