package pce

import (
	"context"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/run"
)

// Question is what a model is asked about rows. NewQuestion makes one.
type Question = run.Question

// The kinds of questions, named as the commands of pce query.
const (
	AskLogLikelihood = run.AskLogLikelihood
	AskClass         = run.AskClass
)

// NewQuestion checks a question to the model. Columns are named as in its data, or by
// their number counted from 1.
func (m *Model) NewQuestion(kind string, columns ...string) (*Question, error) {
	return run.NewQuestion(m.plan.Schema, kind, columns)
}

// Ask returns the answer for the rows of b, whose values are stored as the columns of
// Schema say: [rows, q.Width].
func (m *Model) Ask(ctx context.Context, q *Question, b *dataset.Batch) ([]float64, error) {
	out := make([]float64, b.Rows*q.Width(m.plan.Schema))
	if err := m.do(ctx, b.Rows, func(e *engine.Engine) error { return run.Answer(ctx, e, q, b, out) }); err != nil {
		return nil, err
	}
	return out, nil
}

// askRows is Ask of rows, with an answer for each.
func (m *Model) askRows(ctx context.Context, q *Question, rows [][]float64) ([][]float64, error) {
	b, err := m.batch(rows)
	if err != nil {
		return nil, err
	}
	all, err := m.Ask(ctx, q, b)
	if err != nil {
		return nil, err
	}
	out, width := make([][]float64, len(rows)), q.Width(m.plan.Schema)
	for r := range out {
		out[r] = all[r*width : (r+1)*width : (r+1)*width]
	}
	return out, nil
}

// LogLikelihoodGiven returns, for each row, the natural-log density of its observed cells
// given those of them that lie in the given columns, counted from 0. A row whose given
// cells are impossible gives NaN.
func (m *Model) LogLikelihoodGiven(ctx context.Context, rows [][]float64, given ...int) ([]float64, error) {
	q := &Question{Kind: AskLogLikelihood, Columns: given}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	b, err := m.batch(rows)
	if err != nil {
		return nil, err
	}
	return m.Ask(ctx, q, b)
}

// Classify returns, for each row, the probability of each category of a column, counted
// from 0, given the row's other observed cells. What the row says in the column does not
// count. A row whose other cells are impossible gives NaN.
func (m *Model) Classify(ctx context.Context, rows [][]float64, class int) ([][]float64, error) {
	q := &Question{Kind: AskClass, Columns: []int{class}}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	return m.askRows(ctx, q, rows)
}
