package dataset

import "math"

// Missing is the code of a missing discrete cell.
const Missing = -1

// MaxNarrow is the most categories of a column that narrow codes can hold, since
// the largest number of 16 bits marks a missing cell.
const MaxNarrow = math.MaxUint16

// Codes are the discrete cells of a column of a batch: narrow codes of 16 bits, or
// wide codes of 32 bits. One of the slices is set. The largest number of its
// width marks a missing cell.
type Codes struct {
	Narrow []uint16
	Wide   []uint32
}

// Len returns the number of cells, missing ones included.
func (c *Codes) Len() int { return len(c.Narrow) + len(c.Wide) }

// At returns the code of cell i, or Missing.
func (c *Codes) At(i int) int {
	if c.Wide != nil {
		if v := c.Wide[i]; v != math.MaxUint32 {
			return int(v)
		}
		return Missing
	}
	if v := c.Narrow[i]; v != math.MaxUint16 {
		return int(v)
	}
	return Missing
}

// Set writes cell i: a code below Limit, or Missing.
func (c *Codes) Set(i, code int) {
	if c.Wide != nil {
		c.Wide[i] = uint32(code)
	} else {
		c.Narrow[i] = uint16(code)
	}
}

// Limit is the number of codes that a cell can hold.
func (c *Codes) Limit() int {
	if c.Wide != nil {
		return MaxCategories
	}
	return MaxNarrow
}

// MissingCodes returns n missing cells.
func MissingCodes(wide bool, n int) Codes {
	var c Codes
	c.resize(wide, n)
	c.clear()
	return c
}

// Slice returns the cells lo to hi-1, sharing memory; appending to it copies.
func (c *Codes) Slice(lo, hi int) Codes {
	if c.Wide != nil {
		return Codes{Wide: c.Wide[lo:hi:hi]}
	}
	return Codes{Narrow: c.Narrow[lo:hi:hi]}
}

// resize gives c n cells of a width, keeping memory where it can. Their contents
// are not defined.
func (c *Codes) resize(wide bool, n int) {
	if wide {
		c.Narrow, c.Wide = nil, room(c.Wide, n)
	} else {
		c.Narrow, c.Wide = room(c.Narrow, n), nil
	}
}

// clear makes every cell missing.
func (c *Codes) clear() {
	for i := range c.Narrow {
		c.Narrow[i] = math.MaxUint16
	}
	for i := range c.Wide {
		c.Wide[i] = math.MaxUint32
	}
}

// Discrete reports whether the cells are codes rather than values.
func (c *Cells) Discrete() bool { return c.Codes.Narrow != nil || c.Codes.Wide != nil }

// IsMissing reports whether the cell of a row is missing.
func (c *Cells) IsMissing(row int) bool {
	if c.Discrete() {
		return c.Codes.At(row) == Missing
	}
	return c.Values[row] != c.Values[row]
}

// WideCodes reports whether batches of the schema have wide codes: whether a
// column has more than MaxNarrow categories.
func (s *Schema) WideCodes() bool {
	for i := range s.Columns {
		if s.Columns[i].Categories > MaxNarrow {
			return true
		}
	}
	return false
}
