package dataset

import (
	"fmt"
	"math"
)

// Resize gives b rows rows of missing cells, keeping memory where it can.
func (b *Batch) Resize(s *Schema, rows int) {
	nan := float32(math.NaN())
	b.shape(s, s.WideCodes(), rows)
	for i := range b.Columns {
		cells := &b.Columns[i]
		cells.Codes.clear()
		for r := range cells.Values {
			cells.Values[r] = nan
		}
	}
}

// Check gives an error that matches ErrFormat if b does not have the columns of s with a cell for each row, and evidence of them alone.
func (b *Batch) Check(s *Schema) error {
	if b == nil {
		return fmt.Errorf("%w: a nil batch; give one of %d columns", ErrFormat, len(s.Columns))
	}
	if b.Rows < 0 || len(b.Columns) != len(s.Columns) {
		return fmt.Errorf("%w: a batch of %d rows and %d columns; want %d columns", ErrFormat, b.Rows, len(b.Columns), len(s.Columns))
	}
	for v := range b.Columns {
		c := &b.Columns[v]
		have := max(c.Codes.Len(), len(c.Values))
		if c.Soft.Of != nil {
			have = min(have, len(c.Soft.Of))
		}
		if have < b.Rows {
			return fmt.Errorf("%w: %s has %d cells in a batch of %d rows", ErrFormat, s.ColumnName(v), have, b.Rows)
		}
		if row := c.Soft.bad(b.Rows, &s.Columns[v]); row >= 0 {
			place := int64(c.Soft.Of[row])
			if place > int64(len(c.Soft.List)) || c.Soft.List[place-1] == nil {
				return fmt.Errorf("%w: row %d, counted from 0, %s: evidence number %d of a list of %d, which does not have it", ErrFormat, row, s.ColumnName(v), place, len(c.Soft.List))
			}
			return fmt.Errorf("%w: row %d, counted from 0, %s: the evidence %+v, which says nothing of a cell of the column; make it with RangeEvidence, SetEvidence or LikelihoodEvidence",
				ErrFormat, row, s.ColumnName(v), *c.Soft.List[place-1])
		}
	}
	return nil
}

// truncate drops all rows from row n on.
func (b *Batch) truncate(n int) {
	b.Rows = n
	for i := range b.Columns {
		if c := &b.Columns[i]; c.Discrete() {
			c.Codes.resize(c.Codes.Wide != nil, n)
		} else {
			c.Values = c.Values[:n]
		}
		if c := &b.Columns[i]; c.Text != nil {
			c.Text = c.Text[:n]
		}
		if c := &b.Columns[i]; c.Soft.Of != nil {
			c.Soft.Of = c.Soft.Of[:n]
		}
	}
}

// Slice returns rows lo to hi of b, sharing its memory. Like slices of Go it panics where the batch does not have these rows.
func (b *Batch) Slice(lo, hi int) *Batch {
	checkSpan(lo, hi, b.Rows)
	s := &Batch{Rows: hi - lo, Columns: make([]Cells, len(b.Columns))}
	for i := range b.Columns {
		c := &b.Columns[i]
		if c.Discrete() {
			s.Columns[i].Codes = c.Codes.Slice(lo, hi)
		} else {
			s.Columns[i].Values = c.Values[lo:hi:hi]
		}
		if c.Text != nil {
			s.Columns[i].Text = c.Text[lo:hi:hi]
		}
		s.Columns[i].Soft = c.Soft.slice(lo, hi)
	}
	return s
}
