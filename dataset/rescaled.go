package dataset

import (
	"context"
	"math"
)

// Rescaled returns src with the numbers of its continuous columns stored as those
// of like, column by column; src itself where they are stored like that already.
// Codes without labels are numbers too where like has a continuous column, and are stored as its numbers
// if it has a scale or bins: as they are, they would be read as stored values, or as bins.
// Other columns stay as they are.
func Rescaled(src Source, like *Schema) Source {
	have := src.Schema()
	own := *have
	own.Columns = nil
	var columns []int
	for i := range min(len(have.Columns), len(like.Columns)) {
		from, to := &have.Columns[i], &like.Columns[i]
		same := from.Offset == to.Offset && from.Scale == to.Scale
		if from.Kind == Discrete {
			same = from.Labels != nil || to.Scale == 0 && to.Edges == nil
		}
		if to.Kind != Continuous || same {
			continue
		}
		if own.Columns == nil {
			own.Columns = append(own.Columns, have.Columns...)
		}
		c := &own.Columns[i]
		c.Kind, c.Categories, c.Offset, c.Scale = Continuous, 0, to.Offset, to.Scale
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
		from, to, cells := &r.Source.Schema().Columns[i], &r.schema.Columns[i], &b.Columns[i]
		if from.Kind == Discrete {
			cells.Values = make([]float32, b.Rows)
			for n := range cells.Values {
				cells.Values[n] = float32(math.NaN())
				if code := cells.Codes.At(n); code != Missing {
					cells.Values[n] = to.Standard(float64(code))
				}
			}
			cells.Codes = Codes{}
			continue
		}
		for n, v := range cells.Values {
			cells.Values[n] = to.Standard(from.shortest(v))
		}
	}
	return nil
}
