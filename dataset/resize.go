package dataset

import "math"

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

// Slice returns rows lo to hi of b, sharing its memory.
func (b *Batch) Slice(lo, hi int) *Batch {
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
