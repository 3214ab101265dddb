package em

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// EvalRows is the number of rows whose log-likelihoods are added up before their
// sum is added to the total. Devices, launches and clusters all use it, so the bits
// of a mean do not depend on them.
const EvalRows = 512

// RowLL is the log-likelihood of a row, counted from 0.
type RowLL struct {
	Row int
	LL  float64
}

// Evaluation is what the log-likelihoods of some rows came to.
type Evaluation struct {
	StepResult
	Lowest, Highest RowLL // the first row of each kind; zero without rows
}

// Add adds the rows that follow those of e, at most EvalRows: their sum is one
// term of the total.
func (e *Evaluation) Add(ll []float64) {
	for i, x := range ll {
		e.extend(RowLL{e.Rows + i, x}, e.Rows+i == 0)
	}
	e.StepResult.Add(ll)
}

// Follow adds an evaluation of the rows that follow those of e.
func (e *Evaluation) Follow(next Evaluation) {
	if next.Rows > 0 {
		next.Lowest.Row += e.Rows
		next.Highest.Row += e.Rows
		e.extend(next.Lowest, e.Rows == 0)
		e.extend(next.Highest, false)
	}
	e.LogLikelihood += next.LogLikelihood
	e.Rows += next.Rows
	e.Impossible += next.Impossible
	e.Recomputed += next.Recomputed
}

// extend takes a later row into account; first says that there was none before.
func (e *Evaluation) extend(row RowLL, first bool) {
	if first || row.LL < e.Lowest.LL {
		e.Lowest = row
	}
	if first || row.LL > e.Highest.LL {
		e.Highest = row
	}
}

// Mean returns the mean log-likelihood of the rows: -Inf if one is impossible, NaN
// without rows.
func (e *Evaluation) Mean() float64 { return e.LogLikelihood / float64(e.Rows) }

// A Tally makes an Evaluation of log-likelihoods that come in any portions.
type Tally struct {
	whole Evaluation
	span  []float64 // rows that are not in whole yet, fewer than EvalRows
}

// Add adds the rows that follow, in any portions: sums are taken over EvalRows rows wherever
// the portions end.
func (t *Tally) Add(ll ...float64) {
	for len(ll) > 0 {
		n := min(len(ll), EvalRows-len(t.span))
		t.span, ll = append(t.span, ll[:n]...), ll[n:]
		if len(t.span) == EvalRows {
			t.whole.Add(t.span)
			t.span = t.span[:0]
		}
	}
}

// Evaluation returns what all rows so far came to. More rows may follow.
func (t *Tally) Evaluation() Evaluation {
	all := t.whole
	if len(t.span) > 0 {
		all.Add(t.span)
	}
	return all
}

// Evaluate returns what the log-likelihoods of the rows of src came to. It reads
// rows ahead of the engine.
func Evaluate(ctx context.Context, eng *engine.Engine, src dataset.Source) (Evaluation, error) {
	batch := EvalRows * max(1, eng.Info().Rows/EvalRows)
	loader, err := dataset.NewLoader(ctx, src, dataset.LoaderOptions{BatchRows: batch, InOrder: true, Epochs: 1})
	if err != nil {
		return Evaluation{}, err
	}
	defer loader.Close()
	next := func() (*dataset.Batch, error) {
		s, err := loader.Next(ctx)
		if err != nil {
			return nil, err
		}
		return s.Batch, nil
	}
	var t Tally
	before := eng.Recomputed()
	if err := eng.Evaluate(ctx, next, func(ll []float64) { t.Add(ll...) }); err != nil {
		return Evaluation{}, err
	}
	e := t.Evaluation()
	e.Recomputed = eng.Recomputed() - before
	return e, e.Check()
}

// Check reports a sum that is not a number, which some row must have brought.
func (e *Evaluation) Check() error {
	if math.IsNaN(e.LogLikelihood) {
		return fmt.Errorf("%w for a row to evaluate; the parameters are damaged", ErrNumber)
	}
	return nil
}
