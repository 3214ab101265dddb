package rtl

import (
	"fmt"
	"math"
	"strconv"
)

// Missing is the code of a missing cell, which a datapath with valid bits takes.
const Missing = -1

// Encode writes the codes of a row to codes, one per variable. NaN is a missing cell. A column
// without leaves may have any cell, of code 0; one that the datapath does not read may not, since its leaves
// have the one value that it computes with only for cells that have a code. Errors match ErrRow and name the column.
func (d *Datapath) Encode(row []float64, codes []int) error {
	if len(row) != len(d.Columns) || len(codes) != len(d.Columns) {
		return fmt.Errorf("%w: %d cells for %d variables; give one per variable", ErrRow, len(row), len(d.Columns))
	}
	for v, x := range row {
		codes[v] = 0
		switch {
		case len(d.Columns[v].Cuts) == 0: // no leaves
		case math.IsNaN(x) && d.Marginals:
			codes[v] = Missing
		case math.IsNaN(x):
			return fmt.Errorf("%w: %s is missing; compile with --marginals", ErrRow, d.columnName(v))
		default:
			c, err := d.Columns[v].Code(x)
			if err != nil {
				return fmt.Errorf("%w: %s: %w", ErrRow, d.columnName(v), err)
			}
			codes[v] = c
		}
	}
	return nil
}

// columnName names a column in a message, as a dataset.Schema does.
func (d *Datapath) columnName(v int) string {
	if name := d.Columns[v].Name; name != "" {
		return strconv.Quote(name)
	}
	return fmt.Sprintf("column %d", v+1)
}

// Word packs codes as the datapath's input has them: columns in order, the first lowest, bit 0 of
// word 0 lowest. The code of a missing cell is 0.
func (d *Datapath) Word(codes []int) []uint64 {
	word := make([]uint64, (d.RowBits()+63)/64)
	at := 0
	put := func(x uint64, bits int) {
		for i := range bits {
			word[(at+i)/64] |= (x >> i & 1) << ((at + i) % 64)
		}
		at += bits
	}
	for v, code := range codes {
		if d.Width(v) == 0 {
			continue
		}
		put(uint64(max(code, 0)), d.Columns[v].Bits)
		if d.Marginals {
			valid := uint64(1)
			if code == Missing {
				valid = 0
			}
			put(valid, 1)
		}
	}
	return word
}

// Evaluate is the likelihood of a row by the operators of the datapath in their order, which is
// what hardware has to give bit by bit. The codes are those of Encode.
func (d *Datapath) Evaluate(codes []int) float64 {
	values := make([]float64, len(d.Ops))
	for i := range d.Ops {
		o := &d.Ops[i]
		switch o.Kind {
		case Constant:
			values[i] = o.Value
		case Lookup:
			t := &d.Tables[o.Table]
			values[i] = t.Values[d.index(t, codes)]
		case Mul:
			values[i] = Multiply(values[o.A], values[o.B])
		case Sum:
			values[i] = Add(values[o.A], values[o.B])
		default:
			values[i] = values[o.A]
			if o.Choose[codes[o.Column]] {
				values[i] = values[o.B]
			}
		}
	}
	return values[d.Out]
}

// index is the place of a row's codes in a table.
func (d *Datapath) index(t *Table, codes []int) int {
	index, shift := 0, 0
	for _, v := range t.Columns {
		index |= max(codes[v], 0) << shift
		shift += d.Columns[v].Bits
		if d.Marginals {
			if codes[v] != Missing {
				index |= 1 << shift
			}
			shift++
		}
	}
	return index
}
