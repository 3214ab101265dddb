package dataset

import (
	"context"
	"slices"
)

// Without returns src without one of its columns, which must not be the only one whose codes are wide: the cells of a
// batch have the width that the whole schema asks for. Its rows have no image shape.
func Without(src Source, column int) Source {
	s := *src.Schema()
	s.Columns = slices.Delete(slices.Clone(s.Columns), column, column+1)
	s.Image = [3]int{}
	return &without{src, &s, column}
}

// without is a source that hides a column.
type without struct {
	Source
	schema *Schema
	column int
}

func (w *without) Schema() *Schema { return w.schema }

func (w *without) Gather(ctx context.Context, b *Batch, rows []int) error {
	var all Batch
	if len(b.Columns) == len(w.schema.Columns) { // their memory is used again
		all.Columns = slices.Insert(slices.Clone(b.Columns), w.column, Cells{})
	}
	if err := w.Source.Gather(ctx, &all, rows); err != nil {
		return err
	}
	b.Rows, b.Columns = all.Rows, slices.Delete(all.Columns, w.column, w.column+1)
	return nil
}
