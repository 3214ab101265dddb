package dataset

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

// ownNumbers is a source of a program, of one continuous column.
type ownNumbers []float32

func (ownNumbers) Schema() *Schema { return &Schema{Columns: []Column{{Name: "x", Kind: Continuous}}} }
func (n ownNumbers) Rows() int     { return len(n) }
func (n ownNumbers) Gather(_ context.Context, b *Batch, rows []int) error {
	b.Resize(n.Schema(), len(rows))
	for i, r := range rows {
		b.Columns[0].Values[i] = n[r]
	}
	return nil
}

// TestInfiniteSource wants an infinite number of a source of a program to be refused with its row, before means, scales and bins are made of
// it. A missing cell is fine.
func TestInfiniteSource(t *testing.T) {
	if _, err := Summarize(t.Context(), ownNumbers{1, float32(math.NaN()), 3}); err != nil {
		t.Fatal(err)
	}
	_, err := Summarize(t.Context(), ownNumbers{1, 2, float32(math.Inf(-1)), 4})
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `the source gave -Inf in row 2, counted from 0, of "x"`) {
		t.Errorf("%v, want an error about row 2", err)
	}
}
