package dataset_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestLargestInferredCode takes whole numbers below 4096 for codes, and a column
// with a larger one for numbers.
func TestLargestInferredCode(t *testing.T) {
	for text, want := range map[string]dataset.ColumnKind{
		"a,b\n1,0\n4095,1\n4095,0\n1,1\n": dataset.Discrete,
		"a,b\n1,0\n4096,1\n4096,0\n1,1\n": dataset.Continuous,
	} {
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := dataset.Open(t.Context(), path, dataset.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c := src.Schema().Columns[0]; c.Kind != want {
			t.Errorf("%q: column %+v, want kind %v", text, c, want)
		}
	}
}
