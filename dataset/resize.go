package dataset

import "math"

// Resize gives b rows rows of missing cells, keeping memory where it can.
func (b *Batch) Resize(s *Schema, rows int) {
	b.Rows = rows
	if len(b.Columns) != len(s.Columns) {
		b.Columns = make([]Cells, len(s.Columns))
	}
	nan := float32(math.NaN())
	for i, c := range s.Columns {
		cells := &b.Columns[i]
		cells.Text = nil
		if c.Kind == Discrete {
			cells.Values = nil
			cells.Codes = fill(cells.Codes, rows, Missing)
		} else {
			cells.Codes = nil
			cells.Values = fill(cells.Values, rows, nan)
		}
	}
}

// truncate drops all rows from row n on.
func (b *Batch) truncate(n int) {
	b.Rows = n
	for i := range b.Columns {
		if c := &b.Columns[i]; c.Codes != nil {
			c.Codes = c.Codes[:n]
		} else {
			c.Values = c.Values[:n]
		}
		if c := &b.Columns[i]; c.Text != nil {
			c.Text = c.Text[:n]
		}
	}
}

// Slice returns rows lo to hi of b, sharing its memory.
func (b *Batch) Slice(lo, hi int) *Batch {
	s := &Batch{Rows: hi - lo, Columns: make([]Cells, len(b.Columns))}
	for i, c := range b.Columns {
		if c.Codes != nil {
			s.Columns[i].Codes = c.Codes[lo:hi:hi]
		} else {
			s.Columns[i].Values = c.Values[lo:hi:hi]
		}
		if c.Text != nil {
			s.Columns[i].Text = c.Text[lo:hi:hi]
		}
	}
	return s
}

func fill[T any](s []T, n int, v T) []T {
	if cap(s) < n {
		s = make([]T, n)
	}
	s = s[:n]
	for i := range s {
		s[i] = v
	}
	return s
}
