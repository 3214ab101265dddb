package engine

import (
	"context"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// fillSoft gives the cells of the rows lo to hi-1 that are evidence a value each, given the
// units that rows take: by the number from 0 to 1 that uniform has for a row and an input, or the
// best one where uniform is nil. What was known of them is replaced.
func (e *Engine) fillSoft(ctx context.Context, b *dataset.Batch, lo, hi int, taken []int32, uniform func(row int, in *layers.Input) float64) error {
	if e.soft == nil {
		return nil
	}
	for i, w := range e.prog.Watched() {
		in := &e.prog.Inputs[w]
		c := &e.prog.Columns[in.Column]
		cells := &b.Columns[c.Var]
		if c.Beside || cells.Soft.Of == nil {
			continue
		}
		var units []unit
		for r, u := range taken[i*(hi-lo) : (i+1)*(hi-lo)] {
			ev := cells.Soft.At(lo + r)
			if u < 0 || ev == nil {
				continue
			}
			cell, err := e.limitOf(int(in.Column), ev)
			if err != nil {
				return err
			}
			if in.Codes == 0 && units == nil {
				if units, err = e.unitsOfInput(ctx, in); err != nil {
					return err
				}
			}
			at := -1.0
			if uniform != nil {
				at = uniform(r, in)
			}
			x, ok := 0.0, true
			if in.Codes == 0 {
				x, ok = cell.pick(&units[u], at)
			} else if x, ok, err = e.pickCode(ctx, in, cell, int(u), at); err != nil {
				return err
			}
			if bins := e.binsOf(c.Var); ok && bins != nil {
				mean, variance := bins.momentsWithin(int(x), cell.low, cell.high)
				x = mean
				if uniform != nil { // the digits of the number behind those that chose the bin are as good as new
					half := math.Sqrt(3 * variance)
					x += half * (2*math.Mod(at*(1<<26), 1) - 1)
				}
			}
			if !ok {
				continue
			}
			if err := put(cells, lo+r, c.Var, x); err != nil {
				return err
			}
			cells.Soft.Of[lo+r] = 0
		}
	}
	return nil
}

// pickCode returns the code of a unit at a share of their probabilities, the first likeliest
// one for a negative share; false if the unit has none.
func (e *Engine) pickCode(ctx context.Context, in *layers.Input, cell *softCell, unit int, at float64) (float64, bool, error) {
	var codes []int
	var logs []float64
	err := e.eachCode(ctx, in, cell, func(code int, likelihood float64, m, exps []float32) {
		l := math.Log(likelihood * float64(m[unit]))
		if exps != nil {
			l += float64(exps[unit]) * math.Ln2
		}
		codes, logs = append(codes, code), append(logs, l)
	})
	i, ok := pickLog(logs, at)
	if !ok || err != nil {
		return 0, false, err
	}
	return float64(codes[i]), true, nil
}

// pickLog returns the place among probabilities with natural logs at a share of their sum, of
// the first largest one for a negative share; false if all are 0.
func pickLog(logs []float64, at float64) (int, bool) {
	best, sum := 0, 0.0
	for i, l := range logs {
		if l > logs[best] {
			best = i
		}
	}
	if len(logs) == 0 || math.IsInf(logs[best], -1) {
		return 0, false
	}
	if at < 0 {
		return best, true
	}
	for _, l := range logs {
		sum += math.Exp(l - logs[best])
	}
	last, acc := 0, 0.0
	for i, l := range logs {
		if p := math.Exp(l - logs[best]); p > 0 {
			last = i
			if acc += p; acc > at*sum {
				break
			}
		}
	}
	return last, true
}

// pick returns the value of a unit without a table at a share of the probability of a cell,
// the best one for a negative share; false if the unit has none.
func (s *softCell) pick(u *unit, at float64) (float64, bool) {
	if s.runs != nil {
		var codes []int
		var logs []float64
		for _, r := range s.runs {
			for x := r.First; x <= r.Last; x++ {
				codes, logs = append(codes, x), append(logs, math.Log(r.Likelihood)+u.family.LogProb(u.params, float64(x)))
			}
		}
		i, ok := pickLog(logs, at)
		if !ok {
			return 0, false
		}
		return float64(codes[i]), true
	}
	if at < 0 {
		return s.best(u)
	}
	f, ok := u.family.(ranged)
	if !ok {
		return 0, false
	}
	all := f.LogRange(u.params, s.low, s.high)
	if math.IsInf(all, -1) {
		return 0, false
	}
	x := leastNumber(s.low, s.high, u.counts(), func(x float64) bool { return math.Exp(f.LogRange(u.params, s.low, x)-all) > at })
	return s.near(u, x)
}
