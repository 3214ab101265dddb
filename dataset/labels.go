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

// numbersOf returns the numbers that the categories of a discrete column are: those that its labels spell or, without labels, their codes;
// nil of labels that are not numbers.
func (c *Column) numbersOf() []float64 {
	if c.Labels != nil {
		return c.LabelNumbers()
	}
	numbers := make([]float64, c.Categories)
	for code := range numbers {
		numbers[code] = float64(code)
	}
	return numbers
}

// CodesIn returns the code in d of each category of c, Missing for one that d lacks, or nil where all codes are those of c, and whether d has
// all of them. Categories are the same that have the same label. Beside a column without labels they go by the numbers that the labels spell
// or, where these are not numbers, by their codes, as in files without text. Both columns are discrete.
func (c *Column) CodesIn(d *Column) (codes []int, all bool) {
	if c.Labels != nil && d.Labels != nil {
		if n := len(c.Labels); n > 0 && n <= len(d.Labels) && sameLabels(c.Labels, d.Labels[:n]) {
			return nil, true
		}
		return placesIn(c.Labels, d.Labels)
	}
	from, to := c.numbersOf(), d.numbersOf()
	if c.Labels == nil && d.Labels == nil || from == nil || to == nil {
		return nil, c.Categories <= d.Categories
	}
	return placesIn(from, to)
}

// placesIn returns the place of each key in a list without repetitions, as CodesIn does.
func placesIn[K comparable](keys, in []K) (places []int, all bool) {
	place := make(map[K]int, len(in))
	for i, key := range in {
		place[key] = i
	}
	places, same := make([]int, len(keys)), true
	all = len(keys) > 0
	for i, key := range keys {
		at, ok := place[key]
		if !ok {
			at, all = Missing, false
		}
		places[i], same = at, same && at == i
	}
	if same && all {
		return nil, true
	}
	return places, all
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
