package dataset

import (
	"context"
	"math"
	"testing"
)

// TestWithout reads rows of three kinds of columns without one of them, into fresh batches and into those of earlier reads.
func TestWithout(t *testing.T) {
	s := &Schema{Columns: []Column{{Name: "a", Categories: 3}, {Name: "b", Kind: Continuous}, {Name: "c", Categories: 300}}}
	table, err := NewTable(s, 4)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 4)
	for i := range 4 {
		b.Columns[0].Codes.Set(i, i%3)
		b.Columns[1].Values[i] = float32(i) + 0.5
		b.Columns[2].Codes.Set(i, 250+i)
	}
	b.Columns[1].Values[2] = float32(math.NaN())
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	for column := range 3 {
		src := Without(table, column)
		if n := len(src.Schema().Columns); n != 2 || src.Rows() != 4 || len(table.Schema().Columns) != 3 {
			t.Fatalf("without column %d: %d columns of %d rows", column, n, src.Rows())
		}
		var got Batch
		for range 2 {
			if err := src.Gather(context.Background(), &got, []int{3, 2}); err != nil {
				t.Fatal(err)
			}
			if err := got.Check(src.Schema()); err != nil || got.Rows != 2 {
				t.Fatalf("without column %d: %d rows, %v", column, got.Rows, err)
			}
			for i := range got.Columns {
				from := i
				if i >= column {
					from++
				}
				if src.Schema().Columns[i].Name != s.Columns[from].Name {
					t.Errorf("without column %d: column %d is %q", column, i, src.Schema().Columns[i].Name)
				}
				for k, row := range []int{3, 2} {
					same := false
					if want := &b.Columns[from]; want.Discrete() {
						same = got.Columns[i].Codes.At(k) == want.Codes.At(row)
					} else {
						same = math.Float32bits(got.Columns[i].Values[k]) == math.Float32bits(want.Values[row])
					}
					if !same {
						t.Errorf("without column %d: row %d of column %d differs", column, row, i)
					}
				}
			}
		}
		before := got.Rows
		if err := src.Gather(context.Background(), &got, []int{4}); err == nil || got.Rows != before || len(got.Columns) != 2 {
			t.Errorf("a row that is not there: %v, %d rows of %d columns", err, got.Rows, len(got.Columns))
		}
	}
}
