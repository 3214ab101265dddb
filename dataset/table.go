package dataset

import (
	"fmt"
	"math"
)

// Table is a Source in memory, stored row by row: one byte a discrete cell
// where the codes allow it, else two, and four bytes a continuous cell. Rows
// are added by Append; after that a Table is safe for concurrent use.
//
//	narrow, wide [rows, discrete columns]    one of them is in use
//	values       [rows, continuous columns]
type Table struct {
	schema     *Schema
	rows       int
	discrete   []int // schema columns behind the columns of narrow and wide
	continuous []int // schema columns behind the columns of values
	narrow     []uint8
	wide       []uint16
	values     []float32

	texts  *keptText // nil: not kept
	base   int       // row of texts that is the first of the table
	isWide bool
	// byteMissing says that code 255 of narrow is a missing cell. It is false
	// when a column has 256 categories: the first missing cell then widens.
	byteMissing bool
}

// NewTable returns a table of no rows with room for rows rows.
func NewTable(s *Schema, rows int) (*Table, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	t := &Table{schema: s, byteMissing: true}
	most := 0
	for i, c := range s.Columns {
		if c.Kind == Discrete {
			t.discrete = append(t.discrete, i)
			most = max(most, c.Categories)
		} else {
			t.continuous = append(t.continuous, i)
		}
	}
	t.isWide, t.byteMissing = most > 256, most < 256
	if t.isWide {
		t.wide = make([]uint16, 0, rows*len(t.discrete))
	} else {
		t.narrow = make([]uint8, 0, rows*len(t.discrete))
	}
	t.values = make([]float32, 0, rows*len(t.continuous))
	return t, nil
}

// Schema returns the schema, which must not be changed.
func (t *Table) Schema() *Schema { return t.schema }

// Rows returns the number of rows.
func (t *Table) Rows() int { return t.rows }

// Bytes returns the memory that the cells take.
func (t *Table) Bytes() int64 {
	n := int64(len(t.narrow)) + 2*int64(len(t.wide)) + 4*int64(len(t.values))
	if t.texts != nil {
		n += int64(len(t.texts.bytes)) + 8*int64(len(t.texts.ends))
	}
	return n
}

// Slice returns rows lo to hi as a table of their own, sharing memory.
func (t *Table) Slice(lo, hi int) *Table {
	s := *t
	s.rows, s.base = hi-lo, t.base+lo
	d, c := len(t.discrete), len(t.continuous)
	if t.isWide {
		s.wide = t.wide[lo*d : hi*d : hi*d]
	} else {
		s.narrow = t.narrow[lo*d : hi*d : hi*d]
	}
	s.values = t.values[lo*c : hi*c : hi*c]
	return &s
}

// Append adds the rows of b. A code that is neither a category nor Missing is
// an error that matches ErrFormat and leaves the table as it was.
func (t *Table) Append(b *Batch) error {
	if len(b.Columns) != len(t.schema.Columns) {
		return fmt.Errorf("%w: batch has %d columns, table has %d", ErrFormat, len(b.Columns), len(t.schema.Columns))
	}
	missing := false
	for i, c := range t.schema.Columns {
		cells := &b.Columns[i]
		if c.Kind == Continuous {
			if len(cells.Values) != b.Rows {
				return fmt.Errorf("%w: %s has %d values for %d rows", ErrFormat, t.schema.ColumnName(i), len(cells.Values), b.Rows)
			}
			continue
		}
		if len(cells.Codes) != b.Rows {
			return fmt.Errorf("%w: %s has %d codes for %d rows", ErrFormat, t.schema.ColumnName(i), len(cells.Codes), b.Rows)
		}
		for _, v := range cells.Codes {
			if int(v) >= c.Categories {
				if v != Missing {
					return fmt.Errorf("%w: %s has code %d of %d categories", ErrFormat, t.schema.ColumnName(i), v, c.Categories)
				}
				missing = true
			}
		}
	}
	if missing && !t.isWide && !t.byteMissing {
		t.widen()
	}
	if t.isWide {
		t.wide = interleave(t.wide, b, t.discrete, func(c *Cells) []uint16 { return c.Codes }, func(v uint16) uint16 { return v })
	} else { // Missing becomes 255
		t.narrow = interleave(t.narrow, b, t.discrete, func(c *Cells) []uint16 { return c.Codes }, func(v uint16) uint8 { return uint8(v) })
	}
	t.values = interleave(t.values, b, t.continuous, func(c *Cells) []float32 { return c.Values }, func(v float32) float32 { return v })
	if t.texts != nil {
		t.texts.append(b)
	}
	t.rows += b.Rows
	return nil
}

func (t *Table) widen() {
	t.wide = make([]uint16, len(t.narrow), cap(t.narrow))
	for i, v := range t.narrow {
		t.wide[i] = uint16(v)
	}
	t.narrow, t.isWide = nil, true
}

// interleave appends the listed columns of b to dst row by row.
func interleave[T, S any](dst []T, b *Batch, columns []int, of func(*Cells) []S, convert func(S) T) []T {
	n, w := len(dst), len(columns)
	if w == 0 {
		return dst
	}
	if need := n + b.Rows*w; need > cap(dst) {
		grown := make([]T, n, max(need, n+n/2))
		copy(grown, dst)
		dst = grown
	}
	dst = dst[:n+b.Rows*w]
	for j, col := range columns {
		at := n + j
		for _, v := range of(&b.Columns[col]) {
			dst[at] = convert(v)
			at += w
		}
	}
	return dst
}

// missingValue is the missing cell of a continuous column.
var missingValue = float32(math.NaN())
