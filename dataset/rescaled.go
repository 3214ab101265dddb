package dataset

import "context"

// Rescaled returns src with the numbers of its continuous columns stored as those
// of like, column by column; src itself where they are stored like that already.
// Other columns stay as they are.
func Rescaled(src Source, like *Schema) Source {
	have := src.Schema()
	own := *have
	own.Columns = nil
	var columns []int
	for i := range min(len(have.Columns), len(like.Columns)) {
		from, to := &have.Columns[i], &like.Columns[i]
		if from.Kind != Continuous || to.Kind != Continuous || from.Offset == to.Offset && from.Scale == to.Scale {
			continue
		}
		if own.Columns == nil {
			own.Columns = append(own.Columns, have.Columns...)
		}
		own.Columns[i].Offset, own.Columns[i].Scale = to.Offset, to.Scale
		columns = append(columns, i)
	}
	if columns == nil {
		return src
	}
	return &rescaled{Source: src, schema: &own, columns: columns}
}

// rescaled is a source whose continuous cells are stored in another way.
type rescaled struct {
	Source
	schema  *Schema
	columns []int // that differ
}

func (r *rescaled) Schema() *Schema { return r.schema }

func (r *rescaled) Gather(ctx context.Context, b *Batch, rows []int) error {
	if err := r.Source.Gather(ctx, b, rows); err != nil {
		return err
	}
	for _, i := range r.columns {
		from, to := &r.Source.Schema().Columns[i], &r.schema.Columns[i]
		for n, v := range b.Columns[i].Values {
			b.Columns[i].Values[n] = to.Standard(from.shortest(v))
		}
	}
	return nil
}
