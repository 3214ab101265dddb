package pce

import (
	"fmt"
	"runtime"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/parallel"
)

// Rows become columns a block at a time, whose cells stay in the first-level cache while column after column is taken
// from them, several columns of a row together.
const (
	turnedRows    = 64
	turnedColumns = 4
)

// batch turns rows into columns of values; engines read codes from them too.
func (m *Model) batch(rows [][]float64) (*dataset.Batch, error) {
	n := m.plan.Graph.NumVars
	b := &dataset.Batch{Rows: len(rows), Columns: make([]dataset.Cells, n)}
	values := make([]float32, n*len(rows))
	for v := range b.Columns {
		b.Columns[v].Values = values[v*len(rows):][:len(rows):len(rows)]
	}
	threads := m.opts.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	share := parallel.Shares{Threads: threads, Least: 8 * turnedRows, Most: 64 * turnedRows, Step: turnedRows, Pace: &m.turned}
	err := share.Do(len(rows), func(_, at, count int) error {
		for ; count > 0; at, count = at+turnedRows, count-turnedRows {
			block := rows[at:][:min(count, turnedRows)]
			for i, row := range block {
				if len(row) != n {
					return fmt.Errorf("%w: row %d, counted from 0, has %d cells, want %d (one per variable, NaN for a missing value)", dataset.ErrFormat, at+i, len(row), n)
				}
			}
			m.turn(block, b.Columns, at)
		}
		return nil
	})
	return b, err
}

// turn writes rows to columns from row at on, as their columns store numbers.
func (m *Model) turn(rows [][]float64, columns []dataset.Cells, at int) {
	schema := m.plan.Schema.Columns
	scaled := func(v int) bool { return schema[v].Scale != 0 }
	to := func(v int) []float32 { return columns[v].Values[at:][:len(rows)] }
	for v := 0; v < len(columns); {
		if v+turnedColumns > len(columns) || scaled(v) || scaled(v+1) || scaled(v+2) || scaled(v+3) {
			column := to(v)
			for i, row := range rows {
				column[i] = schema[v].Standard(row[v])
			}
			v++
			continue
		}
		c0, c1, c2, c3 := to(v), to(v+1), to(v+2), to(v+3)
		for i, row := range rows {
			cells := (*[turnedColumns]float64)(row[v:])
			c0[i], c1[i], c2[i], c3[i] = float32(cells[0]), float32(cells[1]), float32(cells[2]), float32(cells[3])
		}
		v += turnedColumns
	}
}
