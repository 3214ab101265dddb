package pce

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/run"
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
	rows := 0
	if b != nil { // LogLikelihoodInto refuses it
		rows = max(0, b.Rows)
	}
	ll := make([]float64, rows)
	if err := m.LogLikelihoodInto(ctx, b, ll); err != nil {
		return nil, err
	}
	return ll, nil
}

// LogLikelihoodInto is LogLikelihoodBatch with a place for the log-likelihoods, for callers that ask often: a number for each
// row. Where the error is not nil the place may hold some of them.
func (m *Model) LogLikelihoodInto(ctx context.Context, b *dataset.Batch, ll []float64) error {
	if err := m.check(b); err != nil {
		return err
	}
	q := &Query{Kind: QueryLogLikelihood}
	return m.with(ctx, b.Rows, func(r engine.Runner) error { return run.Answer(ctx, r, q, b, ll) })
}

// Sample draws n rows. Row i depends on seed and i alone.
func (m *Model) Sample(ctx context.Context, n int, seed uint64) ([][]float64, error) {
	if n < 0 || n > maxDraws {
		return nil, fmt.Errorf("%w: %d samples; want 0 to %d", ErrOptions, n, maxDraws)
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
	return m.completed(rows, b), nil
}

// completed returns copies of rows whose missing cells are those of b.
func (m *Model) completed(rows [][]float64, b *dataset.Batch) [][]float64 {
	out := make([][]float64, len(rows))
	for r := range out {
		out[r] = make([]float64, len(b.Columns))
		for v := range out[r] {
			if out[r][v] = rows[r][v]; math.IsNaN(out[r][v]) {
				out[r][v] = m.plan.Schema.Columns[v].Number(b.Columns[v].Values[r])
			}
		}
	}
	return out
}

// SampleBatch fills the missing cells of b, as SampleGiven does. first is the
// number of b's first row in the whole request: draws depend on seed, the row's
// number and its cells alone.
func (m *Model) SampleBatch(ctx context.Context, b *dataset.Batch, seed uint64, first int) error {
	if err := m.check(b); err != nil {
		return err
	}
	return m.do(ctx, b.Rows, func(e *engine.Engine) error { return e.Sample(ctx, b, seed, first) })
}

// Query is what a model is asked about rows. NewQuery makes one.
type Query = run.Query

// The kinds of queries, named as the commands of pce query.
const (
	QueryLogLikelihood = run.QueryLogLikelihood
	QueryConditional   = run.QueryConditional
	QueryMoments       = run.QueryMoments
	QueryClass         = run.QueryClass
	QueryCovariance    = run.QueryCovariance
	QueryQuantiles     = run.QueryQuantiles
	QueryExpect        = run.QueryExpect
)

// NewQuery checks a query. Columns are named as in its data, or by
// their number counted from 1. QueryQuantiles and QueryExpect, which want more than columns, are
// made by NewQuantiles and NewExpectation.
func (m *Model) NewQuery(kind string, columns ...string) (*Query, error) {
	return run.NewQuery(m.plan.Schema, kind, columns)
}

// Answer returns the answer for the rows of b, whose values are stored as the columns of
// Schema say: [rows, q.Width].
func (m *Model) Answer(ctx context.Context, q *Query, b *dataset.Batch) ([]float64, error) {
	if err := cmp.Or(m.check(b), q.Check(m.plan.Schema)); err != nil {
		return nil, err
	}
	out := make([]float64, b.Rows*q.Width(m.plan.Schema))
	if err := m.with(ctx, b.Rows, func(r engine.Runner) error { return run.Answer(ctx, r, q, b, out) }); err != nil {
		return nil, err
	}
	return out, nil
}

// answerRows is Answer for rows, with an answer for each.
func (m *Model) answerRows(ctx context.Context, q *Query, rows [][]float64) ([][]float64, error) {
	b, err := m.batch(rows)
	if err != nil {
		return nil, err
	}
	all, err := m.Answer(ctx, q, b)
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
	q := &Query{Kind: QueryLogLikelihood, Columns: given}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	b, err := m.batch(rows)
	if err != nil {
		return nil, err
	}
	return m.Answer(ctx, q, b)
}

// Classify returns, for each row, the probability of each category of a column, counted
// from 0, given the row's other observed cells. What the row says in the column does not
// count. A row whose other cells are impossible gives NaN.
func (m *Model) Classify(ctx context.Context, rows [][]float64, class int) ([][]float64, error) {
	if m.forest != nil {
		return nil, errForest
	}
	q := &Query{Kind: QueryClass, Columns: []int{class}}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	return m.answerRows(ctx, q, rows)
}

// Conditional returns, for each row, the distributions of columns, counted from 0, given the
// row's observed cells: of one column after the other the probability of each category, or mean
// and variance of a continuous one. An observed cell is certain. A row that is impossible gives
// NaN.
func (m *Model) Conditional(ctx context.Context, rows [][]float64, of ...int) ([][]float64, error) {
	q := &Query{Kind: QueryConditional, Columns: of}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	return m.answerRows(ctx, q, rows)
}

// Moments returns, for each row, the mean of every column given the row's observed cells, and
// its variance. Categories count as the numbers that their labels spell, else by their
// code. A row that is impossible gives NaN.
func (m *Model) Moments(ctx context.Context, rows [][]float64) (means, variances [][]float64, err error) {
	all, err := m.answerRows(ctx, &Query{Kind: QueryMoments}, rows)
	n := m.plan.Graph.NumVars
	for _, row := range all {
		means, variances = append(means, row[:n:n]), append(variances, row[n:])
	}
	return means, variances, err
}

// MPEOptions say how much work goes into looking for the most probable completions of a model
// that is not deterministic; run.MPEOptions lists them.
type MPEOptions = run.MPEOptions

// DefaultMPE are the options of pce query mpe: 8 drawn candidates for each row, a beam of 8.
var DefaultMPE = run.DefaultMPE

// Completion says how good the completion of a row is.
type Completion struct {
	LogLikelihood float64
	// Bound is one that no completion exceeds: LogLikelihood where the answer is exact.
	Bound float64
}

// MPEExact reports whether MPE gives the most probable completions. It does where the circuit
// is deterministic; else it gives the best ones that it finds.
func (m *Model) MPEExact() bool { return m.exact() }

// MPE returns copies of rows whose missing cells, those that are NaN, are those of the most
// probable completion, as far as MPEExact says. A row whose cells are impossible keeps its
// missing ones.
func (m *Model) MPE(ctx context.Context, rows [][]float64, o MPEOptions) ([][]float64, []Completion, error) {
	b, err := m.batch(rows)
	if err != nil {
		return nil, nil, err
	}
	how, err := m.MPEBatch(ctx, b, o, 0)
	if err != nil {
		return nil, nil, err
	}
	return m.completed(rows, b), how, nil
}

// MPEBatch fills the missing cells of b, as MPE does. first is the number of b's first row in
// the whole request: draws depend on the seed, the row's number and its cells alone.
func (m *Model) MPEBatch(ctx context.Context, b *dataset.Batch, o MPEOptions, first int) ([]Completion, error) {
	if err := cmp.Or(m.check(b), o.Check()); err != nil {
		return nil, err
	}
	ll, bound := make([]float64, b.Rows), make([]float64, b.Rows)
	err := m.do(ctx, b.Rows, func(e *engine.Engine) error {
		return run.MPE(ctx, e, m.exact(), o, first, b, ll, bound)
	})
	if err != nil {
		return nil, err
	}
	how := make([]Completion, b.Rows)
	for i := range how {
		how[i] = Completion{ll[i], bound[i]}
	}
	return how, nil
}
