package pce

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestBatch turns rows on both sides of a block and of a group of columns, some of which have units of their own, and wants each cell
// where it belongs, and the first row of a wrong length in the error, on one thread and on several.
func TestBatch(t *testing.T) {
	for _, columns := range []int{1, 3, 4, 5, 8, 9} {
		for _, scaled := range []int{-1, 0, 2, columns - 1} {
			schema := &dataset.Schema{Columns: make([]dataset.Column, columns)}
			if scaled >= 0 && scaled < columns {
				schema.Columns[scaled] = dataset.Column{Kind: dataset.Continuous, Offset: 3, Scale: 0.5}
			}
			for _, threads := range []int{0, 1, 3} {
				m := &Model{plan: &run.Blueprint{Graph: &circuit.Graph{NumVars: columns}, Schema: schema}, opts: Options{Threads: threads}}
				for _, n := range []int{0, 1, turnedRows - 1, turnedRows, turnedRows + 1, 64*turnedRows + 5, 1000} {
					rows := make([][]float64, n)
					for r := range rows {
						rows[r] = make([]float64, columns)
						for v := range rows[r] {
							if rows[r][v] = float64(r*columns + v); (r+v)%7 == 3 {
								rows[r][v] = math.NaN()
							}
						}
					}
					b, err := m.batch(rows)
					if err != nil || b.Rows != n || len(b.Columns) != columns {
						t.Fatalf("%d rows of %d: %+v, %v", n, columns, b, err)
					}
					for v := range b.Columns {
						if len(b.Columns[v].Values) != n {
							t.Fatalf("column %d has %d cells, want %d", v, len(b.Columns[v].Values), n)
						}
						for r, got := range b.Columns[v].Values {
							want := float32(rows[r][v])
							if v == scaled {
								want = float32((rows[r][v] - 3) / 0.5)
							}
							if got != want && (got == got || want == want) {
								t.Fatalf("row %d of %d, column %d of %d: %v, want %v", r, n, v, columns, got, want)
							}
						}
					}
					if n < 2 {
						continue
					}
					short := n / 2
					rows[short] = rows[short][:columns-1]
					rows[n-1] = append(rows[n-1], 1)
					if _, err := m.batch(rows); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), fmt.Sprintf("row %d, counted from 0, has", short)) {
						t.Errorf("%d rows, of which row %d is short: %v", n, short, err)
					}
				}
			}
		}
	}
}

// TestRowsAtOnce takes few rows at a time where they are long, and one at least.
func TestRowsAtOnce(t *testing.T) {
	for columns, want := range map[int]int{1: 4096, 2048: 4096, 2049: 4094, 100_000: 83, dataset.MaxColumns: 8, 1 << 24: 1} {
		if got := rowsAtOnce(columns); got != want {
			t.Errorf("%d rows of %d columns, want %d", got, columns, want)
		}
	}
}
