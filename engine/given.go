package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
)

// LogLikelihoodGiven writes, for every row of b, the natural log of the density of its
// observed cells given those of them that lie in the given columns: given has an
// element for each variable. A row whose given cells are impossible gives NaN, as
// nothing follows from them; one whose other cells are impossible then gives -Inf.
func LogLikelihoodGiven(ctx context.Context, r Runner, b *dataset.Batch, given []bool, ll []float64) error {
	if len(b.Columns) != len(given) {
		return fmt.Errorf("%w: %d columns are said to be given or not, and rows have %d", dataset.ErrFormat, len(given), len(b.Columns))
	}
	evidence := make([]float64, b.Rows)
	if err := EvaluateBatch(ctx, r, observing(b, given), evidence); err != nil {
		return err
	}
	if err := EvaluateBatch(ctx, r, b, ll); err != nil {
		return err
	}
	for i, x := range evidence {
		if math.IsInf(x, -1) {
			x = math.NaN()
		}
		ll[i] -= x
	}
	return nil
}

// observing returns the rows of b with nothing observed but cells of the given columns.
func observing(b *dataset.Batch, given []bool) *dataset.Batch {
	out := &dataset.Batch{Rows: b.Rows, Columns: make([]dataset.Cells, len(b.Columns))}
	for v, from := range b.Columns {
		if given[v] {
			out.Columns[v] = from
		} else {
			out.Columns[v] = missingCells(&from, b.Rows)
		}
	}
	return out
}

// missingCells returns n missing cells that are stored as those of like are.
func missingCells(like *dataset.Cells, n int) (c dataset.Cells) {
	switch {
	case like.Codes.Wide != nil:
		c.Codes.Wide = make([]uint32, n)
	case like.Discrete():
		c.Codes.Narrow = make([]uint16, n)
	default:
		c.Values = make([]float32, n)
		for i := range c.Values {
			c.Values[i] = float32(math.NaN())
		}
		return c
	}
	for i := range n {
		c.Codes.Set(i, dataset.Missing)
	}
	return c
}
