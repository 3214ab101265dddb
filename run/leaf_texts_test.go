package run_test

import (
	"context"
	"testing"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestLeavesOfTexts refuses families that take codes for numbers, or join neighbouring ones, for texts, whose order is that of the alphabet.
// Texts that are numbers in their order, two texts, and bins of a text each are fine. Categories that are set for texts are refused too.
func TestLeavesOfTexts(t *testing.T) {
	n := 0
	path := writeRows(t, "a,b,c,d", 60, func() []any {
		n++
		return []any{[]string{"low", "mid", "high"}[n%3], []string{"no", "yes"}[n%2], n % 11, n % 10}
	})
	label := map[string]dataset.Type{"c": {Labels: true}, "d": {Labels: true}}
	rows := func(ctx context.Context, s *dataset.Schema) (dataset.Source, error) {
		return dataset.Open(ctx, path, dataset.Options{Types: label, Schema: s})
	}
	for _, tc := range []struct {
		column string
		leaf   run.Leaf
		want   string
	}{
		{"a", run.Leaf{Type: "binomial"}, `pce: bad options: "a" holds texts, such as "high" and "low", which have no order that a binomial leaf could describe; choose leaf type categorical, or write numbers in their place`},
		{"a", run.Leaf{Type: "discretised-logistic"}, `pce: bad options: "a" holds texts, such as "high" and "low", which have no order that a discretised-logistic leaf could describe; choose leaf type categorical, or write numbers in their place`},
		{"a", run.Leaf{Type: "histogram", Bins: 2}, `pce: bad options: "a" holds texts, such as "high" and "low", which have no order that a histogram leaf could describe; choose leaf type categorical, or write numbers in their place`},
		{"a", run.Leaf{Type: "histogram", Bins: 3}, ""},
		{"a", run.Leaf{Categories: 5}, `pce: bad options: "a" holds texts, of which rows have 3, and its own leaf 5 categories; leave these out`},
		{"b", run.Leaf{Type: "binomial"}, ""},
		{"c", run.Leaf{Type: "binomial"}, `pce: bad options: "c" holds numbers as texts, in the order of the alphabet, and a binomial leaf describes numbers in theirs; set the column's type to discrete, or choose leaf type categorical`},
		{"d", run.Leaf{Type: "binomial"}, ""},
		{"*", run.Leaf{Categories: 20}, ""},
	} {
		s := run.DefaultStructure()
		s.Latents, s.Leaves = 2, map[string]run.Leaf{tc.column: tc.leaf}
		got := ""
		if b, err := run.Build(t.Context(), s, rows, compile.Options{}); err != nil {
			got = err.Error()
		} else {
			b.Close()
		}
		if got != tc.want {
			t.Errorf("%s %+v: %s, want %s", tc.column, tc.leaf, got, tc.want)
		}
	}
}
