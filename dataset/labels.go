package dataset

import (
	"math"
	"strconv"
)

// LabelNumbers returns the numbers that the labels of a column spell, in the order
// of its codes; nil unless each label is a number and no two are the same one.
//
// A file that does not write text, such as .npy, says such a number for the
// category, as a table in text does. It says the code of any other label.
func (c *Column) LabelNumbers() []float64 {
	if len(c.Labels) == 0 {
		return nil
	}
	numbers := make([]float64, len(c.Labels))
	seen := make(map[float64]bool, len(c.Labels))
	for code, label := range c.Labels {
		x, ok := parseNumber([]byte(label))
		if !ok || seen[x] {
			return nil
		}
		numbers[code], seen[x] = x, true
	}
	return numbers
}

// numberLabel is the label of a number that has no text: whole numbers are written as
// tables in text have them, and 0 without a sign. Integers that float64 rounds have all
// digits, so that those that are one float64 are not one category.
func numberLabel(v *Value) []byte {
	if v.Rest != 0 {
		return v.digits()
	}
	x, format := v.Number, byte('g')
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		format = 'f'
	}
	return strconv.AppendFloat(nil, x+0, format, -1, 64)
}
