package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits on schemas, whatever they come from.
const (
	MaxColumns    = 1 << 20
	MaxCategories = 1 << 24 // every code is exact as a float32
)

// shownName is how many bytes of a name messages have; names may be as long as files.
const shownName = 200

// ColumnName returns the name of a column for messages: its own in quotes, or
// "column 3", counted from 1. Of a very long name it is the beginning and the number.
func (s *Schema) ColumnName(col int) string {
	switch n := s.Columns[col].Name; {
	case n == "":
		return fmt.Sprintf("column %d", col+1)
	case len(n) > shownName:
		return fmt.Sprintf("%q... (column %d)", strings.ToValidUTF8(n[:shownName], ""), col+1)
	default:
		return strconv.Quote(n)
	}
}

// Validate reports the first thing that makes s no schema: numbers out of
// range, a label or a name that is there twice, an image of another size than a row.
func (s *Schema) Validate() error {
	if s == nil {
		return badSetting("a nil schema; give one of a column at least")
	}
	if len(s.Columns) == 0 || len(s.Columns) > MaxColumns {
		return badSetting("schema has %d columns; it takes 1 to %d", len(s.Columns), MaxColumns)
	}
	if name, twice := s.nameTwice(); twice {
		return badSetting("two columns are named %.200q; rename one", name)
	}
	var checked *string // first of the labels that were checked last: texts share them
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.Kind == Continuous:
			if c.Categories != 0 || c.Labels != nil {
				return badSetting("%s is continuous but has categories", s.ColumnName(i))
			}
			if !(c.Scale >= 0 && c.Scale <= math.MaxFloat64 && math.Abs(c.Offset) <= math.MaxFloat64) || c.Scale == 0 && c.Offset != 0 {
				return badSetting("%s has the offset %v and the scale %v; want finite numbers and a positive scale, or two zeros", s.ColumnName(i), c.Offset, c.Scale)
			}
			if problem := c.checkEdges(); problem != "" {
				return badSetting("%s %s", s.ColumnName(i), problem)
			}
			continue
		case c.Offset != 0 || c.Scale != 0 || c.Edges != nil || c.Outside != 0:
			return badSetting("%s is discrete but has an offset, a scale or edges", s.ColumnName(i))
		case c.Kind != Discrete:
			return badSetting("%s has the unknown kind %d", s.ColumnName(i), c.Kind)
		case c.Categories < 1 || c.Categories > MaxCategories:
			return badSetting("%s has %d categories; it takes 1 to %d", s.ColumnName(i), c.Categories, MaxCategories)
		case c.Labels == nil:
			continue
		case len(c.Labels) != c.Categories:
			return badSetting("%s has %d labels for %d categories", s.ColumnName(i), len(c.Labels), c.Categories)
		}
		if checked == &c.Labels[0] {
			continue
		}
		checked = &c.Labels[0]
		seen := make(map[string]bool, len(c.Labels))
		for _, l := range c.Labels {
			if seen[l] {
				return badSetting("%s has the label %q twice", s.ColumnName(i), l)
			}
			seen[l] = true
		}
	}
	return s.validateImage()
}

// checkEdges says what is wrong with the edges of bins.
func (c *Column) checkEdges() string {
	if n := len(c.Edges) - 1; c.Edges != nil && (n < 1 || n > MaxCategories) {
		return fmt.Sprintf("has %d edges; it takes 2 to %d", n+1, MaxCategories+1)
	}
	for i, e := range c.Edges {
		if !(math.Abs(e) <= math.MaxFloat32) || i > 0 && !(c.Edges[i-1] < e) {
			return fmt.Sprintf("has the edge %v at place %d; want ascending finite numbers", e, i+1)
		}
	}
	if !(c.Outside >= 0 && c.Outside <= math.MaxFloat64) || c.Edges == nil && c.Outside != 0 {
		return fmt.Sprintf("has the density %v outside its edges; want 0 or more, and edges", c.Outside)
	}
	return ""
}

// nameTwice returns a name that two columns have.
func (s *Schema) nameTwice() (string, bool) {
	names := make(map[string]bool)
	for i := range s.Columns {
		n := s.Columns[i].Name
		if n != "" && names[n] {
			return n, true
		}
		names[n] = true
	}
	return "", false
}

func (s *Schema) validateImage() error {
	if s.Image == [3]int{} {
		return nil
	}
	left := len(s.Columns)
	for _, d := range s.Image {
		if d < 1 || left%d != 0 {
			left = 0
			break
		}
		left /= d
	}
	if left != 1 {
		return badSetting("image shape %v does not have %d values", s.Image, len(s.Columns))
	}
	return nil
}

// Discrete reports whether all columns are discrete, so that rows have probabilities. Those of
// other schemas have densities, which depend on the units of the continuous columns.
func (s *Schema) Discrete() bool {
	return !slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Kind != Discrete })
}

// Dimensions returns how many columns log-likelihoods are of, those that the model reads, and whether rows have probabilities: these
// columns are discrete, or hold counts.
func (s *Schema) Dimensions() (n int, masses bool) {
	masses = true
	for i := range s.Columns {
		if c := &s.Columns[i]; !c.Unread {
			n++
			masses = masses && (c.Kind == Discrete || c.Counts)
		}
	}
	return n, masses && n > 0
}

// WithMarks returns s with further marks of missing cells: a copy, or s itself if it has them
// all.
func (s *Schema) WithMarks(marks []string) *Schema {
	var fresh []string
	for _, m := range marks {
		if !slices.Contains(s.Missing, m) && !slices.Contains(fresh, m) {
			fresh = append(fresh, m)
		}
	}
	if fresh == nil {
		return s
	}
	out := *s
	out.Missing = slices.Concat(s.Missing, fresh)
	return &out
}

// Equal reports whether s and t say the same of every row.
func (s *Schema) Equal(t *Schema) bool {
	return s.Image == t.Image && s.Unit == t.Unit &&
		slices.EqualFunc(s.Columns, t.Columns, func(a, b Column) bool { return a.same(&b) })
}

// same reports whether two columns say the same of a cell.
func (c *Column) same(d *Column) bool {
	return c.Name == d.Name && c.Kind == d.Kind && c.Categories == d.Categories && sameLabels(c.Labels, d.Labels) &&
		c.Offset == d.Offset && c.Scale == d.Scale && slices.Equal(c.Edges, d.Edges) && c.Outside == d.Outside
}

func sameLabels(a, b []string) bool {
	if len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] {
		return true
	}
	return slices.Equal(a, b)
}

// Accepts reports why rows of t are not rows of s, or nil: column count, kinds,
// categories and labels must fit; names need not.
func (s *Schema) Accepts(t *Schema) error {
	if len(s.Columns) != len(t.Columns) {
		return badData("data", "has %d columns, the model has %d variables", len(t.Columns), len(s.Columns))
	}
	for i := range s.Columns {
		a, b := &s.Columns[i], &t.Columns[i]
		switch {
		case a.Kind != b.Kind:
			return badData("data", "%s is %s, the model's is %s", t.ColumnName(i), b.Kind, a.Kind)
		case b.Categories > a.Categories:
			return badData("data", "%s has %d categories, the model's has %d", t.ColumnName(i), b.Categories, a.Categories)
		case a.Labels != nil && b.Labels != nil && (len(b.Labels) > len(a.Labels) || !sameLabels(a.Labels[:len(b.Labels)], b.Labels)):
			return badData("data", "%s has other labels than the model's; read the file with the model's schema", t.ColumnName(i))
		}
	}
	return nil
}

// String returns "discrete" or "continuous", as files and messages write it.
func (k ColumnKind) String() string {
	switch k {
	case Discrete:
		return "discrete"
	case Continuous:
		return "continuous"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}
