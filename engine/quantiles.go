package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
)

// cumulative is a family of leaves whose distribution function is known.
type cumulative interface {
	// Below is the probability of x and all smaller numbers.
	Below(p []float64, x float64) float64
}

// Quantiles writes, for every row of b and each variable, the smallest number of which the
// probability not to be exceeded, given the row's observed cells, reaches each of the levels to
// out, [rows, variables, levels]. Levels lie between 0 and 1. Categories count as the numbers
// that their labels spell, or by their code; they are said to reach a level that rounding to
// float32 keeps them below by 1e-6. An observed cell has its number, an impossible row NaN.
func (e *Engine) Quantiles(ctx context.Context, b *dataset.Batch, variables []int, levels, out []float64) error {
	if want := b.Rows * len(variables) * len(levels); len(out) < want {
		return fmt.Errorf("%w: room for %d quantiles; want %d", dataset.ErrFormat, len(out), want)
	}
	for _, q := range levels {
		if !(q > 0 && q < 1) {
			return fmt.Errorf("%w: the quantile at %v; want a level between 0 and 1", dataset.ErrSetting, q)
		}
	}
	if err := refuseSoftQuery("quantiles", b); err != nil {
		return err
	}
	columns, summaries, err := e.summaries(ctx, variables)
	if err != nil {
		return err
	}
	for i, s := range summaries {
		for _, u := range s.units {
			if _, ok := u.family.(cumulative); !ok {
				return fmt.Errorf("%w: %s has %s leaves, whose distribution function is not known; leave it out",
					dataset.ErrSetting, e.columnName(variables[i]), u.family.Name())
			}
		}
	}
	return e.posteriors(ctx, b, columns, func(p *posteriors) error {
		for r := range p.rows {
			for i, s := range summaries {
				at := out[((p.lo+r)*len(variables)+i)*len(levels):][:len(levels)]
				if weights, possible := p.of(i, r); possible {
					s.quantiles(&b.Columns[variables[i]], p.lo+r, weights, levels, at)
				} else {
					fillNaN(at)
				}
			}
		}
		return nil
	})
}

// quantiles writes the quantiles of a cell to out, as numbers, one for each level, from the
// posterior weights of its codes or units. An observed cell is all of its own quantiles.
func (s *summary) quantiles(cells *dataset.Cells, row int, weights []float32, levels, out []float64) {
	if !cells.IsMissing(row) {
		x, _ := s.moments(cells, row, weights)
		for i := range out {
			out[i] = x
		}
		return
	}
	p := make([]float64, len(weights))
	shares(p, weights)
	for i, q := range levels {
		switch {
		case s.units != nil:
			out[i] = s.number(mixtureQuantile(p, s.units, q))
		case s.bins != nil:
			out[i] = s.number(s.bins.quantile(p, q))
		default:
			out[i] = s.codeQuantile(p, q)
		}
	}
}

// number returns what a stored value means.
func (s *summary) number(x float64) float64 {
	if s.stored.Scale != 0 {
		return s.stored.Offset + s.stored.Scale*x
	}
	return x
}

// codeQuantile returns the smallest number at which the codes' probabilities p, in the order of
// the numbers, reach a level; within 1e-6 of it counts, as probabilities are rounded. NaN if
// none is positive.
func (s *summary) codeQuantile(p []float64, level float64) float64 {
	const rounding = 1e-6
	order := make([]int, len(p))
	for c := range order {
		order[c] = c
	}
	number := func(c int) float64 { return float64(c) }
	if s.numbers != nil {
		number = func(c int) float64 { return s.numbers[c] }
		slices.SortFunc(order, func(a, b int) int {
			if number(a) < number(b) {
				return -1
			}
			return 1
		})
	}
	sum, last := 0.0, math.NaN()
	for _, c := range order {
		if p[c] > 0 {
			if sum, last = sum+p[c], number(c); sum >= level-rounding {
				break
			}
		}
	}
	return last
}

// quantile returns the value below which bins with probabilities p have the share level, if
// the values of a bin are spread evenly. What p adds up to is rounded, so the level is one of that sum.
func (b *bins) quantile(p []float64, level float64) float64 {
	total := 0.0
	for _, x := range p {
		total += x
	}
	want, sum, last := level*total, 0.0, 0
	for k, x := range p {
		if x > 0 {
			if last = k; sum+x >= want {
				break
			}
			sum += x
		}
	}
	lo, hi := float64(b.edges[last]), float64(b.edges[last+1])
	return lo + min(1, (want-sum)/p[last])*(hi-lo)
}

// mixtureQuantile returns the smallest number at which the distribution function of a mixture of
// units with weights p reaches a level. What p adds up to is rounded, so the level is one of the function's largest value.
func mixtureQuantile(p []float64, units []unit, level float64) float64 {
	below := func(x float64) float64 {
		sum := 0.0
		for i, u := range units {
			if p[i] > 0 {
				sum += p[i] * u.family.(cumulative).Below(u.params, x)
			}
		}
		return sum
	}
	inf := math.Inf(1)
	want := level * below(inf)
	return leastNumber(-inf, inf, units[0].counts(), func(x float64) bool { return below(x) >= want })
}
