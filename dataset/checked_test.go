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

// ownCodes is a source of a program, of a column of two labels that are numbers.
type ownCodes []uint16

func (ownCodes) Schema() *Schema {
	return &Schema{Columns: []Column{{Name: "n", Categories: 2, Labels: []string{"5", "8"}}}}
}
func (n ownCodes) Rows() int { return len(n) }
func (n ownCodes) Gather(_ context.Context, b *Batch, rows []int) error {
	b.Resize(n.Schema(), len(rows))
	for i, r := range rows {
		b.Columns[0].Codes.Narrow[i] = n[r]
	}
	return nil
}

// TestCodesWithoutLabels refuses a code that has no label where numbers that labels spell are summarized.
func TestCodesWithoutLabels(t *testing.T) {
	sums, err := SummarizeNumbers(t.Context(), ownCodes{1, math.MaxUint16, 0})
	if err != nil || sums[0].Mean != 6.5 || sums[0].Observed != 2 {
		t.Fatalf("%+v, %v", sums, err)
	}
	_, err = SummarizeNumbers(t.Context(), ownCodes{1, 0, 2})
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `"n" has the code 2 in row 2, counted from 0, and 2 categories`) {
		t.Errorf("%v, want an error about row 2", err)
	}
}
