package dataset

import (
	"fmt"
	"math"
)

// Table is a Source in memory, stored row by row: one, two or four bytes for a
// discrete cell, as the largest number of categories needs, and four bytes for a
// continuous cell. Rows are added by Append; after that a Table is safe for
// concurrent use.
//
//	bytes, narrow, wide [rows, discrete columns]    the one of this width is in use
//	values              [rows, continuous columns]
type Table struct {
	schema     *Schema
	rows       int
	discrete   []int // schema columns behind the columns of bytes, narrow and wide
	continuous []int // schema columns behind the columns of values
	width      int   // bytes of a discrete cell
	bytes      []uint8
	narrow     []uint16
	wide       []uint32
	values     []float32

	texts *keptText // nil: not kept
	soft  *keptSoft // nil: there is none
	base  int       // row of texts and of soft that is the first of the table

	// byteMissing says that 255 among bytes is a missing cell. It is false when a
	// column has 256 categories: the first missing cell then makes the table narrow.
	byteMissing bool
}

// NewTable returns an empty table whose memory is for rows rows; it grows beyond. Codes take
// one byte, two or four, by the most categories of any column. A schema that Validate refuses
// is an error.
func NewTable(s *Schema, rows int) (*Table, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if rows < 0 {
		return nil, badSetting("a table of %d rows; want 0 or more", rows)
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
	t.byteMissing = most < 256
	switch n := rows * len(t.discrete); {
	case most <= 256:
		t.width, t.bytes = 1, make([]uint8, 0, n)
	case most <= MaxNarrow:
		t.width, t.narrow = 2, make([]uint16, 0, n)
	default:
		t.width, t.wide = 4, make([]uint32, 0, n)
	}
	t.values = make([]float32, 0, rows*len(t.continuous))
	return t, nil
}

// TableOf returns a table of rows without missing cells in the memory of codes, a byte
// for each cell, [rows, columns]. All columns are discrete, with at most 256
// categories. A code that is not a category is an error that matches ErrFormat. Append leaves what lies behind codes alone.
func TableOf(s *Schema, codes []byte) (*Table, error) {
	t, err := NewTable(s, 0)
	if err != nil {
		return nil, err
	}
	n := len(s.Columns)
	if t.width != 1 || len(t.discrete) != n || len(codes)%n != 0 {
		return nil, badSetting("%d bytes for rows of %d columns, of which %d are discrete; want whole rows of discrete columns of at most 256 categories",
			len(codes), n, len(t.discrete))
	}
	for i, code := range codes {
		if c := &s.Columns[i%n]; int(code) >= c.Categories {
			return nil, fmt.Errorf("%w: %s has code %d of %d categories", ErrFormat, s.ColumnName(i%n), code, c.Categories)
		}
	}
	t.rows, t.bytes = len(codes)/n, codes[:len(codes):len(codes)]
	return t, nil
}

// Schema returns the schema, which must not be changed: batches and other tables share it.
func (t *Table) Schema() *Schema { return t.schema }

// Rows returns the number of rows that have been appended.
func (t *Table) Rows() int { return t.rows }

// Bytes returns the memory that the cells take, which Options.MaxBytes bounds.
func (t *Table) Bytes() int64 {
	n := int64(len(t.bytes)) + 2*int64(len(t.narrow)) + 4*int64(len(t.wide)) + 4*int64(len(t.values))
	if t.texts != nil {
		n += int64(len(t.texts.bytes)) + 8*int64(len(t.texts.ends))
	}
	if t.soft != nil {
		n += t.soft.bytes()
	}
	return n
}

// Slice returns rows lo to hi as a table of their own, sharing memory. Like slices of Go it panics where the table does not
// have these rows.
func (t *Table) Slice(lo, hi int) *Table {
	checkSpan(lo, hi, t.rows)
	s := *t
	s.rows, s.base = hi-lo, t.base+lo
	d, c := len(t.discrete), len(t.continuous)
	switch t.width {
	case 1:
		s.bytes = t.bytes[lo*d : hi*d : hi*d]
	case 2:
		s.narrow = t.narrow[lo*d : hi*d : hi*d]
	default:
		s.wide = t.wide[lo*d : hi*d : hi*d]
	}
	s.values = t.values[lo*c : hi*c : hi*c]
	return &s
}

// checkSpan panics unless lo to hi are some of that many rows. The memory behind them may have room for more, which would be rows of zeros or of an earlier use.
func checkSpan(lo, hi, rows int) {
	if lo < 0 || hi < lo || hi > rows {
		panic(fmt.Sprintf("dataset: slice of the rows %d to %d of %d", lo, hi, rows))
	}
}

// Append adds the rows of b, whose codes may have either width. A code that is
// neither a category nor Missing is an error that matches ErrFormat and leaves
// the table as it was.
func (t *Table) Append(b *Batch) error {
	if b == nil {
		return fmt.Errorf("%w: a nil batch; give one of %d columns", ErrFormat, len(t.schema.Columns))
	}
	if len(b.Columns) != len(t.schema.Columns) {
		return fmt.Errorf("%w: batch has %d columns, table has %d", ErrFormat, len(b.Columns), len(t.schema.Columns))
	}
	missing, most := false, 0
	for i, c := range t.schema.Columns {
		cells := &b.Columns[i]
		if c.Kind == Continuous {
			if len(cells.Values) != b.Rows {
				return fmt.Errorf("%w: %s has %d values for %d rows", ErrFormat, t.schema.ColumnName(i), len(cells.Values), b.Rows)
			}
			continue
		}
		if cells.Codes.Len() != b.Rows {
			return fmt.Errorf("%w: %s has %d codes for %d rows", ErrFormat, t.schema.ColumnName(i), cells.Codes.Len(), b.Rows)
		}
		for r := range b.Rows {
			v := cells.Codes.At(r)
			if v >= c.Categories {
				return fmt.Errorf("%w: %s has code %d of %d categories", ErrFormat, t.schema.ColumnName(i), v, c.Categories)
			}
			missing, most = missing || v == Missing, max(most, v)
		}
	}
	for !t.fits(most, missing) {
		t.widen()
	}
	t.own()
	switch t.width {
	case 1:
		t.bytes = interleaveCodes(t.bytes, b, t.discrete)
	case 2:
		t.narrow = interleaveCodes(t.narrow, b, t.discrete)
	default:
		t.wide = interleaveCodes(t.wide, b, t.discrete)
	}
	t.values = interleave(t.values, b, t.continuous, func(c *Cells, r int) float32 { return c.Values[r] })
	if t.texts != nil {
		t.texts.append(b)
	}
	if t.soft == nil && b.HasSoft() {
		n := len(b.Columns)
		t.soft = &keptSoft{cells: make([]SoftCells, n), known: make([]map[*Evidence]uint32, n)}
	}
	if t.soft != nil {
		t.soft.append(b, t.rows)
	}
	t.rows += b.Rows
	return nil
}

// own copies the texts and the evidence that a table has in common with the one that it is a slice of, before rows are added:
// those of the new rows would be beside other rows of both.
func (t *Table) own() {
	n := len(t.schema.Columns)
	if t.base == 0 && (t.texts == nil || len(t.texts.ends) == t.rows*n) && (t.soft == nil || t.soft.rows == t.rows) {
		return
	}
	if t.texts != nil {
		t.texts = t.texts.slice(t.base, t.rows)
	}
	if t.soft != nil {
		t.soft = t.soft.slice(t.base, t.rows)
	}
	t.base = 0
}

// fits reports whether codes up to most, and missing cells, are told apart as the table stores them. Its schema may be that of a
// model, which has more categories than the rows that it was made for.
func (t *Table) fits(most int, missing bool) bool {
	switch t.width {
	case 1:
		return t.byteMissing && most < 255 || !t.byteMissing && !missing && most < 256
	case 2:
		return most < MaxNarrow
	}
	return true
}

// widen stores codes in twice the bytes.
func (t *Table) widen() {
	if t.width == 2 {
		codes := Codes{Narrow: t.narrow}
		t.wide = make([]uint32, len(t.narrow), cap(t.narrow))
		for i := range t.wide {
			t.wide[i] = uint32(codes.At(i)) // Missing is the largest one
		}
		t.narrow, t.width = nil, 4
		return
	}
	code := codesOfBytes[uint16](t.byteMissing)
	t.narrow = make([]uint16, len(t.bytes), cap(t.bytes))
	for i, v := range t.bytes {
		t.narrow[i] = code[v]
	}
	t.bytes, t.width = nil, 2
}

// interleaveCodes is interleave of codes; Missing becomes the largest T.
func interleaveCodes[T uint8 | uint16 | uint32](dst []T, b *Batch, columns []int) []T {
	return interleave(dst, b, columns, func(c *Cells, r int) T { return T(c.Codes.At(r)) })
}

// interleave appends the listed columns of b to dst row by row.
func interleave[T any](dst []T, b *Batch, columns []int, cell func(c *Cells, row int) T) []T {
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
		at, c := n+j, &b.Columns[col]
		for r := range b.Rows {
			dst[at] = cell(c, r)
			at += w
		}
	}
	return dst
}

// missingValue is the missing cell of a continuous column.
var missingValue = float32(math.NaN())
