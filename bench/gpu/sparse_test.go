package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSparseShares wants a layer to lack the share of blocks that its part is named after, with the blocks of
// the diagonal that every layer has.
func TestSparseShares(t *testing.T) {
	const tables, n = 8, sparseUnits / sparseBlock
	for _, dropped := range sparseDropped {
		path := filepath.Join(t.TempDir(), "layer.txt")
		if err := writeSparse(path, tables, sparseUnits, dropped); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lacking := 100 * (1 - float64(strings.Count(string(text), ","))/(tables*n*n))
		if !(math.Abs(lacking-float64(dropped)) < 1.5) {
			t.Errorf("%s: %.1f %% are", sparseName(dropped), lacking)
		}
	}
}
