// Package datasettest holds files of data that tests of several packages read.
//
// # Shapes and units
//
// Images are 4×4 with one channel, a row of a table each.
//
// # Errors
//
// Failures are reported to the test that calls.
//
// # Source
//
// The package is pce's own.
package datasettest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Images writes train.csv, valid.csv and test.csv to a directory, with 200, 120 and 40
// images of 4×4 cells, some of them missing, in the four brightest of that many shades. It
// returns their paths in this order.
func Images(t testing.TB, dir string, shades int) (paths [3]string) {
	t.Helper()
	for i, name := range []string{"train", "valid", "test"} {
		var text strings.Builder
		for row := range 200 - 80*i {
			for v := range 16 {
				cell := fmt.Sprint((row*(v+3)+row*row/7+i)%4 + shades - 4)
				if (row*5+v)%23 == 0 {
					cell = "?"
				}
				text.WriteString(cell)
				if v < 15 {
					text.WriteByte(',')
				}
			}
			text.WriteByte('\n')
		}
		paths[i] = filepath.Join(dir, name+".csv")
		if err := os.WriteFile(paths[i], []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}
