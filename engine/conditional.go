package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// ConditionalWidth is how many numbers Conditional has for a variable: one for each
// code or, where values are not codes, mean and variance.
func (e *Engine) ConditionalWidth(variable int) (int, error) {
	c, err := e.columnOf(variable)
	if err != nil {
		return 0, err
	}
	if col := &e.prog.Columns[c]; col.Codes > 0 && e.binsOf(col.Var) == nil {
		return int(col.Codes), nil
	}
	return 2, nil
}

// Conditional writes the distributions of variables given the observed cells of each row of b
// to out, [rows, sum of ConditionalWidth]: the probability of each code of a
// variable, mean and variance of one of values. An observed cell is certain. A row that is
// impossible has NaN.
func (e *Engine) Conditional(ctx context.Context, b *dataset.Batch, variables []int, out []float64) error {
	width := 0
	for _, v := range variables {
		w, err := e.ConditionalWidth(v)
		if err != nil {
			return err
		}
		width += w
	}
	if len(out) < b.Rows*width {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(out), b.Rows, width)
	}
	columns, summaries, err := e.summaries(ctx, variables)
	if err != nil {
		return err
	}
	return e.posteriors(ctx, b, columns, func(p *posteriors) error {
		first := 0
		for i, s := range summaries {
			n, cells := s.width(), &b.Columns[variables[i]]
			known := e.newSoftPosteriors(int(columns[i]))
			for r := range p.rows {
				at := out[(p.lo+r)*width+first:][:n]
				weights, possible := p.of(i, r)
				evidence := cells.Soft.At(p.lo + r)
				switch {
				case !possible:
					fillNaN(at)
				case evidence != nil:
					soft, err := known.of(ctx, evidence)
					if err != nil {
						return err
					}
					weights, _ := p.unitsOf(i, r)
					if s.units == nil && s.bins == nil {
						soft.shares(at, weights)
					} else {
						at[0], at[1] = s.softMoments(soft, weights)
					}
				case s.units == nil && s.bins == nil:
					shares(at, weights)
				default:
					at[0], at[1] = s.moments(cells, p.lo+r, weights)
				}
			}
			first += n
		}
		return nil
	})
}

// Moments writes mean and variance of every variable given the observed cells of each row
// of b to out, [rows, 2, variables]. Categories count as the numbers that their labels
// spell, or by their code. An observed cell has its number and 0; a variable in no leaf
// and an impossible row have NaN.
func (e *Engine) Moments(ctx context.Context, b *dataset.Batch, out []float64) error {
	n := e.prog.NumVars
	if len(out) < b.Rows*2*n {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(out), b.Rows, 2*n)
	}
	var variables []int
	for _, c := range e.prog.Columns {
		if !c.Beside {
			variables = append(variables, int(c.Var))
		}
	}
	columns, summaries, err := e.summaries(ctx, variables)
	if err != nil {
		return err
	}
	fillNaN(out[:b.Rows*2*n])
	return e.posteriors(ctx, b, columns, func(p *posteriors) error {
		for i, s := range summaries {
			v := variables[i]
			cells, known := &b.Columns[v], e.newSoftPosteriors(int(columns[i]))
			for r := range p.rows {
				weights, possible := p.of(i, r)
				if !possible {
					continue
				}
				at := out[(p.lo+r)*2*n:]
				if evidence := cells.Soft.At(p.lo + r); evidence != nil {
					soft, err := known.of(ctx, evidence)
					if err != nil {
						return err
					}
					units, _ := p.unitsOf(i, r)
					at[v], at[n+v] = s.softMoments(soft, units)
					continue
				}
				at[v], at[n+v] = s.moments(cells, p.lo+r, weights)
			}
		}
		return nil
	})
}

// summary turns the posterior of a column into numbers.
type summary struct {
	column  layers.Column
	numbers []float64 // of the codes
	bins    *bins     // of values that are read as codes
	// Of the units of a column of values.
	units          []unit
	mean, variance []float64
	steps          *steps         // of units that are all stepwise; nil until they are first asked for
	stored         dataset.Column // how values are stored
}

// summaries returns the columns of variables, and what their posteriors mean: numbers of
// labels, bins, or the moments of units whose leaves have no codes. It reads parameters of such
// leaves, so it is called once for a query and not for each launch.
func (e *Engine) summaries(ctx context.Context, variables []int) ([]int32, []*summary, error) {
	columns, all := make([]int32, len(variables)), make([]*summary, len(variables))
	for i, v := range variables {
		c, err := e.columnOf(v)
		if err != nil {
			return nil, nil, err
		}
		s := &summary{column: e.prog.Columns[c], bins: e.binsOf(int32(v))}
		if e.schema != nil {
			s.stored = e.schema.Columns[v]
			s.numbers = s.stored.LabelNumbers()
		}
		if s.column.Codes == 0 {
			if s.units, err = e.unitsOf(ctx, c); err != nil {
				return nil, nil, err
			}
			for _, u := range s.units {
				m, x := u.family.Moments(u.params)
				s.mean, s.variance = append(s.mean, m), append(s.variance, x)
			}
		}
		columns[i], all[i] = c, s
	}
	return columns, all, nil
}

// width is how many numbers a row has in the answer of Conditional.
func (s *summary) width() int {
	if s.units == nil && s.bins == nil {
		return int(s.column.Codes)
	}
	return 2
}

// moments returns mean and variance of a cell, as numbers, from its posterior.
func (s *summary) moments(cells *dataset.Cells, row int, weights []float32) (mean, variance float64) {
	observed := !cells.IsMissing(row)
	switch {
	case observed && !cells.Discrete() && (s.units != nil || s.bins != nil):
		return s.stored.Number(cells.Values[row]), 0
	case observed && s.units != nil:
		return float64(cells.Codes.At(row)), 0
	case s.units != nil:
		mean, variance = mixture(weights, func(i int) (float64, float64) { return s.mean[i], s.variance[i] })
	case s.bins != nil:
		mean, variance = mixture(weights, s.bins.moments)
	default:
		return mixture(weights, func(c int) (float64, float64) { return s.codeNumber(c), 0 })
	}
	return s.unscaled(mean, variance)
}

// codeNumber is the number that a code counts as.
func (s *summary) codeNumber(code int) float64 {
	if s.numbers != nil {
		return s.numbers[code]
	}
	return float64(code)
}

// unscaled returns mean and variance of the numbers of stored values.
func (s *summary) unscaled(mean, variance float64) (float64, float64) {
	if s.stored.Scale != 0 {
		return s.stored.Offset + s.stored.Scale*mean, s.stored.Scale * s.stored.Scale * variance
	}
	return mean, variance
}

// mixture returns mean and variance of a mixture of parts with the given ones, +Inf where float64 does not hold them.
func mixture[T float32 | float64](weights []T, part func(i int) (mean, variance float64)) (mean, variance float64) {
	total := 0.0
	for i, w := range weights {
		if w != 0 {
			m, _ := part(i)
			mean += float64(w) * m
			total += float64(w)
		}
	}
	mean /= total
	if math.IsInf(mean, 1) { // nothing has a distance from it
		return mean, mean
	}
	for i, w := range weights {
		if w != 0 {
			m, v := part(i)
			variance += float64(w) * (v + (m-mean)*(m-mean))
		}
	}
	return mean, variance / total
}

// shares writes weights that add up to 1.
func shares(out []float64, weights []float32) {
	total := 0.0
	for _, w := range weights {
		total += float64(w)
	}
	for i, w := range weights {
		out[i] = float64(w) / total
	}
}

func fillNaN(out []float64) {
	for i := range out {
		out[i] = math.NaN()
	}
}
