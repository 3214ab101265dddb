package dataset

import (
	"math"
	"math/big"
	"slices"
	"strconv"
)

// keptText holds the texts of a table's observed cells, row by row.
type keptText struct {
	bytes   []byte
	ends    []int64 // of each cell
	columns int
}

// append adds the texts of a batch; a column may have none.
func (k *keptText) append(b *Batch) {
	for r := range b.Rows {
		for i := range b.Columns {
			if t := b.Columns[i].Text; t != nil {
				k.bytes = append(k.bytes, t[r]...)
			}
			k.ends = append(k.ends, int64(len(k.bytes)))
		}
	}
}

// slice returns the texts of n rows from row lo on, in memory of their own.
func (k *keptText) slice(lo, n int) *keptText {
	from, at := int64(0), lo*k.columns
	if at > 0 {
		from = k.ends[at-1]
	}
	out := &keptText{columns: k.columns, ends: slices.Clone(k.ends[at : at+n*k.columns])}
	if last := len(out.ends) - 1; last >= 0 {
		out.bytes = slices.Clone(k.bytes[from:out.ends[last]])
	}
	for i := range out.ends {
		out.ends[i] -= from
	}
	return out
}

// cell returns the text of a cell, nil if there is none.
func (k *keptText) cell(row, col int) []byte {
	at := row*k.columns + col
	from := int64(0)
	if at > 0 {
		from = k.ends[at-1]
	}
	if to := k.ends[at]; to > from {
		return k.bytes[from:to:to]
	}
	return nil
}

// gather fills the texts of b with those of rows, from row base of the table on.
func (k *keptText) gather(b *Batch, rows []int, base int) {
	for i := range b.Columns {
		text := room(b.Columns[i].Text, len(rows))
		for n, r := range rows {
			text[n] = k.cell(base+r, i)
		}
		b.Columns[i].Text = text
	}
}

// setText keeps the text of a cell of a batch.
func (c *Cells) setText(rows, row int, text []byte) {
	if c.Text == nil {
		c.Text = make([][]byte, rows)
	}
	c.Text[row] = text
}

// textOf returns what a file says in an observed cell. A number of a file that
// does not write text is written without an exponent where that is readable.
func textOf(v *Value) []byte {
	if v.Text != nil {
		return append([]byte(nil), v.Text...)
	}
	if digits := v.digits(); digits != nil {
		return digits
	}
	format := byte('f')
	if m := math.Abs(v.Number); m != 0 && (m < 1e-4 || m >= 1e21) {
		format = 'g'
	}
	return strconv.AppendFloat(nil, v.Number, format, -1, 64)
}

// digits returns all digits of a large whole number, nil of others: the shortest text of the float64 lacks some of
// an integer, and so may the float64.
func (v *Value) digits() []byte {
	if m := math.Abs(v.Number); m < 1<<53 || m >= 1e21 {
		return nil
	}
	sum := new(big.Float).SetPrec(128).SetFloat64(v.Number)
	return sum.Add(sum, big.NewFloat(v.Rest)).Append(nil, 'f', 0)
}
