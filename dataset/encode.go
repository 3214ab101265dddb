package dataset

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// encoder turns raw cells into cells of a schema.
type encoder struct {
	schema    *Schema
	noMissing bool
	labels    []labelCodes // by column; zero: numbers
}

// labelCodes finds the codes of a column's labels.
type labelCodes struct {
	texts   map[string]int
	numbers map[float64]int // nil unless all labels are numbers
}

func newLabelCodes(c *Column) labelCodes {
	l := labelCodes{texts: c.LabelCodes()}
	if numbers := c.LabelNumbers(); numbers != nil {
		l.numbers = make(map[float64]int, len(numbers))
		for code, x := range numbers {
			l.numbers[x] = code
		}
	}
	return l
}

func newEncoder(s *Schema, noMissing bool) *encoder {
	e := &encoder{schema: s, noMissing: noMissing, labels: make([]labelCodes, len(s.Columns))}
	for i, c := range s.Columns {
		switch {
		case c.Labels == nil:
		case i > 0 && sameLabels(c.Labels, s.Columns[i-1].Labels):
			e.labels[i] = e.labels[i-1]
		default:
			e.labels[i] = newLabelCodes(&c)
		}
	}
	return e
}

// cell returns the code or the value of a raw cell by the schema of its column, or the problem
// with it, as the part of an error line that follows the place. It is called for every cell of
// every file. A missing cell is Missing or NaN, unless its mark is one of the column's texts; a
// text that is not a category, a number out of range and a number that float32 cannot hold are
// problems.
func (e *encoder) cell(col int, v *Value) (code int, value float32, problem string) {
	c := &e.schema.Columns[col]
	if v.Kind == Absent {
		if code, ok := e.labels[col].texts[string(v.Text)]; ok && v.Text != nil {
			return code, 0, "" // a customary mark that is one of the column's texts
		}
		if e.noMissing {
			return 0, 0, fmt.Sprintf("cell of %s is missing; fill it or allow missing cells", e.schema.ColumnName(col))
		}
		return Missing, missingValue, ""
	}
	if problem := v.infinite(); problem != "" {
		return 0, 0, problem
	}
	if m := &e.labels[col]; m.texts != nil && (v.Text != nil || m.numbers != nil) {
		text := v.Text
		code, ok := m.texts[string(text)]
		if text == nil {
			text, ok = numberLabel(v), false
		}
		if !ok && v.Kind == Number {
			code, ok = m.numbers[v.Number]
		}
		if !ok {
			return 0, 0, fmt.Sprintf("%s is not a category of %s; it has %s", quote(text), e.schema.ColumnName(col), listLabels(c.Labels))
		}
		return code, 0, ""
	}
	if v.Kind == String {
		number := v.spelled()
		v = &number
	}
	if v.Kind == String && looksSoft(v.Text) {
		return 0, 0, fmt.Sprintf("%s is not a number, and %s is %s; ranges, sets and likelihoods are read by queries with --soft", quote(v.Text), e.schema.ColumnName(col), c.Kind)
	}
	if v.Kind == String {
		return 0, 0, fmt.Sprintf("%s is not a number, and %s is %s; fix the cell or list the text as a missing mark", quote(v.Text), e.schema.ColumnName(col), c.Kind)
	}
	if c.Kind == Continuous {
		f, ok := c.Stored(v.Number)
		switch {
		case math.Abs(v.Number) > math.MaxFloat32:
			return 0, 0, fmt.Sprintf("%v is beyond ±3.4e38; scale %s", v.Number, e.schema.ColumnName(col))
		case !ok:
			return 0, 0, fmt.Sprintf("%v is more than 3.4e38 standard deviations from the mean of %s; fix the cell", v.Number, e.schema.ColumnName(col))
		case c.Counts && !isCount(float64(f)):
			return 0, 0, fmt.Sprintf("%s is not a count (want 0, 1, 2, ...), and %s has a leaf that counts; fix the cell, or choose another leaf when training",
				formatNumber(v.Number), e.schema.ColumnName(col))
		case c.Positive && !(f > 0):
			return 0, 0, fmt.Sprintf("%s is not a positive number that float32 holds, and %s has a log-normal leaf; fix the cell, list it in data.missing, or choose another leaf when training",
				formatNumber(v.Number), e.schema.ColumnName(col))
		}
		return 0, f, ""
	}
	if n := int(v.Number); n >= 0 && n < c.Categories && float64(n) == v.Number {
		return n, 0, ""
	}
	return 0, 0, fmt.Sprintf("%s is out of range for %s, whose categories are 0 to %d; fix the cell or give the column more categories when training",
		formatCode(v.Number), e.schema.ColumnName(col), c.Categories-1)
}

// isCount reports whether a number is whole and not negative.
func isCount(x float64) bool { return x >= 0 && x == math.Trunc(x) }

// formatCode is formatNumber without an exponent for numbers that may be meant as
// codes.
func formatCode(f float64) string {
	if math.Abs(f) < 1e15 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return formatNumber(f)
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// quote quotes the start of a text for a message.
func quote(b []byte) string {
	const most = 40
	if len(b) > most {
		return strconv.Quote(string(b[:most])) + "..."
	}
	return strconv.Quote(string(b))
}

func listLabels(labels []string) string {
	const most = 5
	var quoted []string
	for _, l := range labels[:min(most, len(labels))] {
		quoted = append(quoted, quote([]byte(l)))
	}
	s := strings.Join(quoted, ", ")
	if n := len(labels) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
