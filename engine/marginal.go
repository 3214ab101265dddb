package engine

import (
	"context"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// boundMarginal bounds the completions of rows of which some missing cells are summed out: a sum may
// exceed its largest term, so leaves at their modes bound nothing. What is observed is at least as likely as it is
// with more cells, but for the densities of values, which are bounded by their leaves'.
func (e *Engine) boundMarginal(ctx context.Context, b *dataset.Batch, o MPEOptions, bound []float64) error {
	var rows []int
	for r := range b.Rows {
		if slices.ContainsFunc(e.prog.Columns, func(c layers.Column) bool {
			return !o.completes(int(c.Var)) && b.Columns[c.Var].IsMissing(r)
		}) {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	observed, lls, peaks := chosen(b, rows), make([]float64, len(rows)), make([]float64, len(rows))
	for i, c := range e.prog.Columns {
		cells := &observed.Columns[c.Var]
		if c.Beside || !o.completes(int(c.Var)) || cells.Discrete() || c.Codes > 0 && e.binsOf(c.Var) == nil {
			continue
		}
		peak := math.NaN()
		for k := range rows {
			if !cells.IsMissing(k) {
				continue
			}
			if peak != peak {
				var err error
				if peak, err = e.peakOf(ctx, int32(i)); err != nil {
					return err
				}
			}
			peaks[k] += peak
			if cells.Soft.Of != nil {
				cells.Soft.Of[k] = 0 // a range has a probability, and its values have densities
			}
		}
	}
	if err := e.LogLikelihood(ctx, observed, lls); err != nil {
		return err
	}
	for k, r := range rows {
		bound[r] = lls[k] + peaks[k]
	}
	return nil
}

// peakOf is the log of the highest density that a value of a continuous column can have, in the units that
// log-likelihoods are of.
func (e *Engine) peakOf(ctx context.Context, column int32) (float64, error) {
	c := e.prog.Columns[column]
	if bins := e.binsOf(c.Var); bins != nil {
		return -slices.Min(bins.logWidth), nil
	}
	units, err := e.unitsOf(ctx, column)
	if err != nil {
		return 0, err
	}
	peak := math.Inf(-1)
	for _, u := range units {
		peak = max(peak, u.family.LogProb(u.params, u.family.Mode(u.params)))
	}
	if e.logScales != nil {
		peak -= e.logScales[c.Var]
	}
	return peak, nil
}

// peakOfCodes is the log of the highest density that a value of a column with codes can have:
// that of a bin is its probability over its width.
func (e *Engine) peakOfCodes(column int32, cells *dataset.Cells) float64 {
	if bins := e.binsOf(e.prog.Columns[column].Var); bins != nil && !cells.Discrete() {
		return -slices.Min(bins.logWidth)
	}
	return 0
}
