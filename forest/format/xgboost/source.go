package xgboost

import (
	"fmt"
	"math"
	"slices"
)

// source is a document of nested objects and arrays that is read once, in order.
// JSON and UBJSON are two forms of it. A caller that does not want a value must
// skip it.
type source interface {
	// object reads an object and calls field with each key, which reads the value.
	object(field func(key string) error) error
	// array reads an array and calls item for each element, which reads it.
	array(item func() error) error
	// numbers reads an array of numbers over the memory of into, if that is enough; true
	// and false are 1 and 0. Decimal fractions are rounded once, to float32.
	numbers(into []float64) ([]float64, error)
	// text reads a string, or a number or Boolean as its text.
	text() (string, error)
	// skip passes over any value. What an array has that does not nest is not looked at.
	skip() error
	// jump passes over an object as fast as the form allows, and may be mistaken about where
	// it ends. It returns false where it finds no end.
	jump() bool
	// here is where the source reads next.
	here() *cursor
	// from is another source of the same form.
	from(at cursor) source
}

// cursor is a place in a document.
type cursor struct {
	b     []byte // the whole document
	at    int
	depth int // of nesting
}

func (s *cursor) here() *cursor { return s }

func (s *cursor) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

// later passes over an array of numbers and returns what reads it, like numbers, as long as the document is there.
func later(s source) (func(into []float64) ([]float64, error), error) {
	return s.from(*s.here()).numbers, s.skip()
}

// maxNesting bounds the depth of objects and arrays; XGBoost's have 7 levels.
const maxNesting = 64

// nested counts a level for as long as do runs.
func nested(depth *int, do func() error) error {
	if *depth++; *depth > maxNesting {
		return fmt.Errorf("nested deeper than %d levels", maxNesting)
	}
	err := do()
	*depth--
	return err
}

// integers converts numbers that must be whole and within int32, over the memory of into.
func integers(what string, xs []float64, into []int32) ([]int32, error) {
	out := slices.Grow(into[:0], len(xs))[:len(xs)]
	for i, x := range xs {
		if x != math.Trunc(x) || !(math.Abs(x) <= math.MaxInt32) {
			return nil, fmt.Errorf("%s[%d] is %v; want an integer of 32 bits", what, i, x)
		}
		out[i] = int32(x)
	}
	return out, nil
}
