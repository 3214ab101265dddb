package pce

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
)

// Sample draws n rows. Row i depends on seed and i alone.
func (m *Model) Sample(ctx context.Context, n int, seed uint64) ([][]float64, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: %d samples; want 0 or more", ErrOptions, n)
	}
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = make([]float64, m.plan.Graph.NumVars)
		for v := range rows[i] {
			rows[i][v] = math.NaN()
		}
	}
	return m.SampleGiven(ctx, rows, seed)
}

// SampleGiven returns copies of rows whose missing cells, those that are NaN,
// are drawn given the row's other cells. A row whose cells are impossible
// keeps its missing ones.
func (m *Model) SampleGiven(ctx context.Context, rows [][]float64, seed uint64) ([][]float64, error) {
	b, err := m.batch(rows)
	if err != nil {
		return nil, err
	}
	if err := m.SampleBatch(ctx, b, seed, 0); err != nil {
		return nil, err
	}
	out := make([][]float64, len(rows))
	for r := range out {
		out[r] = make([]float64, len(b.Columns))
		for v := range out[r] {
			if out[r][v] = rows[r][v]; math.IsNaN(out[r][v]) {
				out[r][v] = m.plan.Schema.Columns[v].Number(b.Columns[v].Values[r])
			}
		}
	}
	return out, nil
}

// SampleBatch fills the missing cells of b, as SampleGiven does. first is the
// number of b's first row in the whole request: draws depend on seed, the row's
// number and its cells alone.
func (m *Model) SampleBatch(ctx context.Context, b *dataset.Batch, seed uint64, first int) error {
	e, err := m.acquire(ctx, b.Rows)
	if err != nil {
		return err
	}
	defer func() { m.idle <- e }()
	return e.Sample(ctx, b, seed, first)
}
