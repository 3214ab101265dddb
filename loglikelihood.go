package pce

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/dataset"
)

// LogLikelihood returns the natural-log likelihood of each row. Cells are codes
// or values as Schema says; NaN is a missing cell, which is marginalised. An
// impossible row gives -Inf.
func (m *Model) LogLikelihood(ctx context.Context, rows [][]float64) ([]float64, error) {
	b, err := m.batch(rows)
	if err != nil {
		return nil, err
	}
	return m.LogLikelihoodBatch(ctx, b)
}

// LogLikelihoodBatch is LogLikelihood of a batch, whose values are stored as the
// columns of Schema say.
func (m *Model) LogLikelihoodBatch(ctx context.Context, b *dataset.Batch) ([]float64, error) {
	e, err := m.acquire(ctx, b.Rows)
	if err != nil {
		return nil, err
	}
	defer func() { m.idle <- e }()
	ll := make([]float64, b.Rows)
	return ll, e.LogLikelihood(ctx, b, ll)
}

// batch turns rows into columns of values; engines read codes from them too.
func (m *Model) batch(rows [][]float64) (*dataset.Batch, error) {
	n := m.plan.Graph.NumVars
	b := &dataset.Batch{Rows: len(rows), Columns: make([]dataset.Cells, n)}
	for v := range b.Columns {
		b.Columns[v].Values = make([]float32, len(rows))
	}
	for r, row := range rows {
		if len(row) != n {
			return nil, fmt.Errorf("%w: row %d has %d cells, the model %d variables; give one cell a variable, NaN if it is missing",
				dataset.ErrFormat, r, len(row), n)
		}
		for v, x := range row {
			b.Columns[v].Values[r] = m.plan.Schema.Columns[v].Standard(x)
		}
	}
	return b, nil
}
