package dataset

import (
	"context"
	"math"
)

// Nearby returns src with the values of some columns that are beyond FarValue missing, as
// training takes them; src itself where no column is given.
func Nearby(src Source, columns []int) Source {
	if len(columns) == 0 {
		return src
	}
	return &nearby{src, columns}
}

// nearby is a source without the far values of some columns.
type nearby struct {
	Source
	columns []int
}

func (n *nearby) Gather(ctx context.Context, b *Batch, rows []int) error {
	if err := n.Source.Gather(ctx, b, rows); err != nil {
		return err
	}
	for _, c := range n.columns {
		values := b.Columns[c].Values
		for i, v := range values {
			if v > FarValue || v < -FarValue {
				values[i] = float32(math.NaN())
			}
		}
	}
	return nil
}
