package dataset

import (
	"context"
	"fmt"
)

// Gather fills b with the given rows, in order, in time linear in the cells.
func (t *Table) Gather(ctx context.Context, b *Batch, rows []int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, r := range rows {
		if r < 0 || r >= t.rows {
			return fmt.Errorf("%w: row %d of a table of %d rows", ErrSetting, r, t.rows)
		}
	}
	b.shape(t.schema, len(rows))
	if t.isWide {
		gather(t.wide, t.discrete, rows, func(col int) []uint16 { return b.Columns[col].Codes })
	} else if t.byteMissing {
		gatherBytes(b, t.narrow, t.discrete, rows, &codesOrMissing)
	} else {
		gatherBytes(b, t.narrow, t.discrete, rows, &codesOnly)
	}
	gather(t.values, t.continuous, rows, func(col int) []float32 { return b.Columns[col].Values })
	if t.texts != nil {
		t.texts.gather(b, rows, t.base)
	}
	return nil
}

// codesOnly and codesOrMissing map a stored byte to its code; in the second
// 255 is Missing.
var codesOnly, codesOrMissing = func() (m, n [256]uint16) {
	for i := range m {
		m[i], n[i] = uint16(i), uint16(i)
	}
	n[255] = Missing
	return m, n
}()

// gatherBytes transposes rows of src into the listed columns of b. It goes
// eight rows at a time: eight read streams, and writes that fill 16 bytes of a
// column before going to the next.
func gatherBytes(b *Batch, src []uint8, columns, rows []int, code *[256]uint16) {
	w := len(columns)
	i := 0
	for ; i+8 <= len(rows); i += 8 {
		r0, r1, r2, r3 := src[rows[i]*w:][:w], src[rows[i+1]*w:][:w], src[rows[i+2]*w:][:w], src[rows[i+3]*w:][:w]
		r4, r5, r6, r7 := src[rows[i+4]*w:][:w], src[rows[i+5]*w:][:w], src[rows[i+6]*w:][:w], src[rows[i+7]*w:][:w]
		for j, col := range columns {
			d := (*[8]uint16)(b.Columns[col].Codes[i:])
			d[0], d[1], d[2], d[3] = code[r0[j]], code[r1[j]], code[r2[j]], code[r3[j]]
			d[4], d[5], d[6], d[7] = code[r4[j]], code[r5[j]], code[r6[j]], code[r7[j]]
		}
	}
	for ; i < len(rows); i++ {
		r := src[rows[i]*w:][:w]
		for j, col := range columns {
			b.Columns[col].Codes[i] = code[r[j]]
		}
	}
}

// gather is gatherBytes for cells that are stored as they are handed out; of
// returns the cells of a column.
func gather[T any](src []T, columns, rows []int, of func(col int) []T) {
	w := len(columns)
	i := 0
	for ; i+8 <= len(rows); i += 8 {
		var r [8][]T
		for k := range r {
			r[k] = src[rows[i+k]*w:][:w]
		}
		for j, col := range columns {
			d := (*[8]T)(of(col)[i:])
			d[0], d[1], d[2], d[3] = r[0][j], r[1][j], r[2][j], r[3][j]
			d[4], d[5], d[6], d[7] = r[4][j], r[5][j], r[6][j], r[7][j]
		}
	}
	for ; i < len(rows); i++ {
		r := src[rows[i]*w:][:w]
		for j, col := range columns {
			of(col)[i] = r[j]
		}
	}
}

// shape gives b rows rows like Resize, but leaves the cells as they are: the
// caller writes every one.
func (b *Batch) shape(s *Schema, rows int) {
	if len(b.Columns) != len(s.Columns) {
		b.Columns = make([]Cells, len(s.Columns))
	}
	b.Rows = rows
	for i, c := range s.Columns {
		cells := &b.Columns[i]
		cells.Text = nil
		if c.Kind == Discrete {
			cells.Values = nil
			cells.Codes = room(cells.Codes, rows)
		} else {
			cells.Codes = nil
			cells.Values = room(cells.Values, rows)
		}
	}
}

func room[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
