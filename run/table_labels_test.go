package run_test

import (
	"context"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestTablesOfLabels evaluates tables of a program under a model whose column has other labels, or none: a category is the same that has the
// same label or is the same number, as where the rows are read from their file.
func TestTablesOfLabels(t *testing.T) {
	next := 0
	numbers := writeRows(t, "a,b", 240, func() []any { next++; return []any{[]int{0, 2, 10, 11}[next%4], next % 3 % 2} })
	few := writeRows(t, "a,b", 60, func() []any { next++; return []any{2 + 9*(next%2), next % 2} })
	type types = map[string]dataset.Type
	label := types{"a": {Labels: true}}
	for _, tc := range []struct{ train, valid types }{{label, nil}, {nil, label}, {label, label}, {nil, nil}} {
		var got [2]float64
		for i := range got {
			o := small(t, "hclt")
			o.Train = func(ctx context.Context, s *dataset.Schema) (dataset.Source, error) {
				return dataset.Open(ctx, numbers, dataset.Options{Types: tc.train, Schema: s})
			}
			o.Test = nil
			if o.Valid = run.Files(few); i == 1 {
				src, err := dataset.Open(t.Context(), few, dataset.Options{Types: tc.valid})
				if err != nil {
					t.Fatal(err)
				}
				o.Valid = run.Table(src)
			}
			r, err := run.Train(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = r.ValidLL
		}
		if got[0] != got[1] {
			t.Errorf("trained with %v: %v of the file, %v of a table with %v", tc.train, got[0], got[1], tc.valid)
		}
	}
}
