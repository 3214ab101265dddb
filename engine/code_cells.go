package engine

import (
	"fmt"
	"math"
	"runtime"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine/lanes"
	"github.com/pce-engine/pce/internal/parallel"
)

// load writes the cells of n rows from lo on as modules read them, column by column. A code that is not a category and an
// infinite value are errors that name row and variable. It notes what the scale of continuous cells takes from each
// row's log-likelihood.
func (c *Code) load(r *room, b *dataset.Batch, lo, n int) error {
	if err := refuseSoftQuery("log-likelihoods by code", b); err != nil {
		return err
	}
	if len(b.Columns) < len(c.schema.Columns) {
		return fmt.Errorf("%w: rows have %d columns, the model has %d variables", dataset.ErrFormat, len(b.Columns), len(c.schema.Columns))
	}
	if c.logScales != nil {
		clear(r.excess[:n])
	}
	columns := len(c.schema.Columns)
	if len(c.sizes) == 0 || c.logScales != nil { // on the CPU each thread has rows of its own
		return c.columns(r, b, lo, n, 0, columns)
	}
	share := parallel.Shares{Threads: runtime.GOMAXPROCS(0), Least: cellsApart/n + 1, Most: columns, Step: 1}
	return share.Do(columns, func(_, first, count int) error { return c.columns(r, b, lo, n, first, first+count) })
}

// cellsApart is how many cells a thread of the host takes at least where it shares columns with others.
const cellsApart = 1 << 18

// columns writes the cells of columns first to end-1.
func (c *Code) columns(r *room, b *dataset.Batch, lo, n, first, end int) error {
	for v := first; v < end; v++ {
		cells, col := &b.Columns[v], &c.schema.Columns[v]
		if have := max(cells.Codes.Len(), len(cells.Values)); have < lo+n {
			return fmt.Errorf("%w: variable %d has %d cells in a batch of %d rows", dataset.ErrFormat, v, have, b.Rows)
		}
		var fine bool
		if r.bytes != nil {
			fine = toBytes(r.bytes[v*r.pitch:][:n], cells, lo, col)
		} else {
			fine = toValues(r.values[v*r.pitch:][:n], cells, lo, col)
		}
		if !fine {
			return refused(cells, lo, n, v, col)
		}
		if c.logScales != nil && col.Kind != dataset.Discrete && !cells.Discrete() && c.logScales[v] != 0 {
			for i, value := range cells.Values[lo : lo+n] {
				if value == value {
					r.excess[i] += c.logScales[v]
				}
			}
		}
	}
	return nil
}

// toBytes writes cells of a column from lo on as modules of bytes read them: what is in no bin of a histogram is lanes.Outside. It
// reports whether the column can have all of them; where it cannot, the bytes do not matter.
func toBytes(dst []byte, cells *dataset.Cells, lo int, col *dataset.Column) bool {
	categories, hi := math.MaxInt, lo+len(dst)
	if col.Kind == dataset.Discrete {
		categories = col.Categories
	}
	switch {
	case cells.Codes.Narrow != nil:
		return lanes.Narrow(dst, cells.Codes.Narrow[lo:hi]) <= categories
	case cells.Codes.Wide != nil:
		above := 0
		for i := range dst {
			code := cells.Codes.At(lo + i)
			if above, dst[i] = max(above, code+1), byte(min(code, lanes.Outside)); code == dataset.Missing {
				dst[i] = lanes.Missing
			}
		}
		return above <= categories
	case col.Kind != dataset.Discrete:
		return lanes.Numbers(dst, cells.Values[lo:hi])
	case categories <= lanes.Missing:
		return lanes.Codes(dst, cells.Values[lo:hi], categories)
	}
	lanes.Numbers(dst, cells.Values[lo:hi]) // which the next line wants to be whole
	return lanes.Whole(cells.Values[lo:hi], categories)
}

// toValues is toBytes for modules of float32, for which missing cells are NaN.
func toValues(dst []float32, cells *dataset.Cells, lo int, col *dataset.Column) bool {
	if asValues(cells, lo, dst) >= 0 {
		return false
	}
	if col.Kind != dataset.Discrete {
		return true
	}
	if cells.Codes.Narrow == nil {
		return lanes.Whole(dst, col.Categories)
	}
	over := uint64(0) // its highest bit: some code is too large
	for _, c := range cells.Codes.Narrow[lo : lo+len(dst)] {
		over |= uint64(col.Categories) - uint64(c+1) // 0 of a missing cell
	}
	return over>>63 == 0
}

// refused is the error of the first of n cells from lo on that a column cannot have.
func refused(cells *dataset.Cells, lo, n, variable int, col *dataset.Column) error {
	for row := lo; row < lo+n; row++ {
		if cells.IsMissing(row) {
			continue
		}
		x := 0.0
		if cells.Discrete() {
			x = float64(cells.Codes.At(row))
		} else {
			x = float64(cells.Values[row])
		}
		switch {
		case math.IsInf(x, 0):
			return fmt.Errorf("%w: row %d, variable %d, both counted from 0: infinite value; leave the cell empty if it is missing", dataset.ErrFormat, row, variable)
		case col.Kind == dataset.Discrete && !(x >= 0 && x < float64(col.Categories) && x == math.Trunc(x)):
			return fmt.Errorf("%w: row %d, variable %d, both counted from 0: %v is not a category (want 0..%d); leave the cell empty if it is missing",
				dataset.ErrFormat, row, variable, cellText(cells, row), col.Categories-1)
		}
	}
	return fmt.Errorf("%w: variable %d: a cell among rows %d to %d is none that the model has", dataset.ErrFormat, variable, lo, lo+n-1)
}

// together moves the cells of rows, in ascending order, to the first rows.
func together[T any](cells []T, pitch int, rows []int) {
	for ; len(cells) > 0; cells = cells[pitch:] {
		for k, i := range rows { // k is at most i
			cells[k] = cells[i]
		}
	}
}

// asFloats returns the cells of the first rows as Again reads them, [variable][rows].
func (r *room) asFloats(rows int) []float32 {
	x := make([]float32, 0, len(r.bytes)/r.pitch*rows)
	for at := 0; at < len(r.bytes); at += r.pitch {
		for _, b := range r.bytes[at:][:rows] {
			if b == lanes.Missing {
				x = append(x, float32(math.NaN()))
			} else {
				x = append(x, float32(b))
			}
		}
	}
	return x
}
