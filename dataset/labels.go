package dataset

import (
	"math"
	"strconv"
	"strings"
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

// LabelCodes returns the code of each label. Tables in text do not keep blanks around their cells, so that labels with some, as
// other files have them, are found without these too: unless that is the text of another label, or marks a missing cell.
func (c *Column) LabelCodes() map[string]int {
	codes := make(map[string]int, len(c.Labels))
	for code, label := range c.Labels {
		codes[label] = code
	}
	bare, twice := map[string]int{}, map[string]bool{}
	for code, label := range c.Labels {
		text := strings.Trim(label, " \t")
		if text == label || IsMark([]byte(text)) {
			continue
		}
		if _, other := codes[text]; other {
			continue
		}
		_, twice[text] = bare[text]
		bare[text] = code
	}
	for text, code := range bare {
		if !twice[text] {
			codes[text] = code
		}
	}
	return codes
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
