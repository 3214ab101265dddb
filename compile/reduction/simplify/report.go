package simplify

import (
	"fmt"
	"strings"
)

// Report says what Simplify did, and what it did not and why.
type Report struct {
	Steps   []Step    `json:"steps"`
	Refused []Refusal `json:"refused"`
}

// Step is a rewriting of a statement or an array.
type Step struct {
	Kind      string  `json:"kind"` // of Kinds
	Array     string  `json:"array"`
	Statement string  `json:"statement,omitempty"` // before the step
	Face      string  `json:"face,omitempty"`      // the equalities of the statement's domain
	Vector    []int64 `json:"vector,omitempty"`    // along which the body does not change
	Subtracts bool    `json:"subtracts,omitempty"`
	Text      string  `json:"text"` // what was done, for a reader
}

// Kinds of steps.
const (
	Contract  = "contract"  // an array lost an index
	Merge     = "merge"     // an array that another one equals is not computed
	Common    = "common"    // what an array has is read from it
	Multiple  = "multiple"  // values that a maximum or a minimum has many times are taken once
	Decompose = "decompose" // a part of a sum became an array of its own
	Histogram = "histogram" // a sum got a bin for each value of a guard
	Reuse     = "reuse"     // an element is computed from a neighbour
	InPlace   = "in place"  // an array has memory for one value of an index
	Running   = "running"   // a sum is kept up with an array that it reads
	Forward   = "forward"   // an array that is a copy of another one is left out
	Apart     = "apart"     // sums of data got an array of their own
)

// Refusal is a statement that stays as it is, or a vector that was not taken, with the reason.
type Refusal struct {
	Array     string  `json:"array"`
	Statement string  `json:"statement"`
	Face      string  `json:"face,omitempty"`
	Vector    []int64 `json:"vector,omitempty"` // absent: no vector at all
	Reason    string  `json:"reason"`
}

// String writes a step in a line.
func (s Step) String() string { return fmt.Sprintf("%-9s %s", s.Kind, s.Text) }

// String writes a refusal in a line.
func (r Refusal) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s %s", "refused", r.Array)
	if r.Vector != nil {
		fmt.Fprintf(&b, " along %s", vectorText(r.Vector))
	}
	if r.Face != "" {
		fmt.Fprintf(&b, " on %s", r.Face)
	}
	fmt.Fprintf(&b, ": %s", r.Reason)
	return b.String()
}

func vectorText(r []int64) string {
	return "[" + strings.ReplaceAll(strings.Trim(fmt.Sprint(r), "[]"), " ", ",") + "]"
}
