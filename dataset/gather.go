package dataset

import (
	"context"
	"fmt"
)

// Gather fills b with the given rows, in order, in time linear in the cells. Rows may repeat. b
// takes the table's columns, and its memory is used again. Codes are widened where the schema,
// which may be a model's, asks for more categories than the table has. A row that the table
// does not have is an error that matches ErrSetting, and b is not changed.
func (t *Table) Gather(ctx context.Context, b *Batch, rows []int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, r := range rows {
		if r < 0 || r >= t.rows {
			return fmt.Errorf("%w: row %d, counted from 0, of a table of %d rows", ErrSetting, r, t.rows)
		}
	}
	wide := t.schema.WideCodes() // the schema may be that of a model, which has more categories than the rows
	b.shape(t.schema, wide, len(rows))
	narrowCells := func(c *Cells) []uint16 { return c.Codes.Narrow }
	wideCells := func(c *Cells) []uint32 { return c.Codes.Wide }
	switch {
	case t.width == 1 && wide:
		gatherBytes(t.bytes, rows, cells(b, t.discrete, wideCells), codesOfBytes[uint32](t.byteMissing))
	case t.width == 1:
		gatherBytes(t.bytes, rows, cells(b, t.discrete, narrowCells), codesOfBytes[uint16](t.byteMissing))
	case t.width == 2 && wide:
		gatherWidened(t.narrow, rows, cells(b, t.discrete, wideCells))
	case t.width == 2:
		gather(t.narrow, rows, cells(b, t.discrete, narrowCells))
	default:
		gather(t.wide, rows, cells(b, t.discrete, wideCells))
	}
	gather(t.values, rows, cells(b, t.continuous, func(c *Cells) []float32 { return c.Values }))
	if t.texts != nil {
		t.texts.gather(b, rows, t.base)
	}
	if t.soft != nil {
		t.soft.gather(b, rows, t.base)
	}
	return nil
}

// cells lists the cells of some columns.
func cells[T any](b *Batch, columns []int, of func(*Cells) []T) [][]T {
	list := make([][]T, len(columns))
	for j, col := range columns {
		list[j] = of(&b.Columns[col])
	}
	return list
}

// codesOfBytes maps a stored byte to its code; 255 may be a missing cell.
func codesOfBytes[T uint16 | uint32](missing bool) *[256]T {
	var m [256]T
	for i := range m {
		m[i] = T(i)
	}
	if missing {
		m[255] = ^T(0)
	}
	return &m
}

// gatherBytes transposes rows of src into columns. It goes eight rows at a time:
// eight read streams, and writes that fill 16 or 32 bytes of a column before
// going to the next.
func gatherBytes[T uint16 | uint32](src []uint8, rows []int, columns [][]T, code *[256]T) {
	w := len(columns)
	i := 0
	for ; i+8 <= len(rows); i += 8 {
		r0, r1, r2, r3 := src[rows[i]*w:][:w], src[rows[i+1]*w:][:w], src[rows[i+2]*w:][:w], src[rows[i+3]*w:][:w]
		r4, r5, r6, r7 := src[rows[i+4]*w:][:w], src[rows[i+5]*w:][:w], src[rows[i+6]*w:][:w], src[rows[i+7]*w:][:w]
		for j, col := range columns {
			d := (*[8]T)(col[i:])
			d[0], d[1], d[2], d[3] = code[r0[j]], code[r1[j]], code[r2[j]], code[r3[j]]
			d[4], d[5], d[6], d[7] = code[r4[j]], code[r5[j]], code[r6[j]], code[r7[j]]
		}
	}
	for ; i < len(rows); i++ {
		r := src[rows[i]*w:][:w]
		for j, col := range columns {
			col[i] = code[r[j]]
		}
	}
}

// gather writes the cells of rows, which are stored row by row in src, to columns, eight rows
// at a time. It is gatherBytes for cells that are stored as they are handed out.
func gather[T any](src []T, rows []int, columns [][]T) {
	w := len(columns)
	i := 0
	for ; i+8 <= len(rows); i += 8 {
		var r [8][]T
		for k := range r {
			r[k] = src[rows[i+k]*w:][:w]
		}
		for j, col := range columns {
			d := (*[8]T)(col[i:])
			d[0], d[1], d[2], d[3] = r[0][j], r[1][j], r[2][j], r[3][j]
			d[4], d[5], d[6], d[7] = r[4][j], r[5][j], r[6][j], r[7][j]
		}
	}
	for ; i < len(rows); i++ {
		r := src[rows[i]*w:][:w]
		for j, col := range columns {
			col[i] = r[j]
		}
	}
}

// gatherWidened is gatherBytes for narrow codes that are handed out as wide ones.
func gatherWidened(src []uint16, rows []int, columns [][]uint32) {
	for i, r := range rows {
		row := Codes{Narrow: src[r*len(columns):][:len(columns)]}
		for j, col := range columns {
			col[i] = uint32(row.At(j))
		}
	}
}

// shape gives b rows rows like Resize, but leaves the cells as they are: the
// caller writes every one. wide is the schema's WideCodes.
func (b *Batch) shape(s *Schema, wide bool, rows int) {
	if len(b.Columns) != len(s.Columns) {
		b.Columns = make([]Cells, len(s.Columns))
	}
	b.Rows = rows
	for i := range s.Columns {
		cells := &b.Columns[i]
		cells.Text, cells.Soft = nil, SoftCells{}
		if s.Columns[i].Kind == Discrete {
			cells.Values = nil
			cells.Codes.resize(wide, rows)
		} else {
			cells.Codes = Codes{}
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
