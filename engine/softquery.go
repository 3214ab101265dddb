package engine

import (
	"context"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// withUnits adds the units of those of some columns of the program of which cells of a batch are
// evidence, and returns where they are: for a column of values its own place.
func (e *Engine) withUnits(b *dataset.Batch, columns []int32) (all []int32, units []int) {
	all, units = columns[:len(columns):len(columns)], make([]int, len(columns))
	for i, c := range columns {
		units[i] = -1
		switch col := &e.prog.Columns[c]; {
		case b.Columns[col.Var].Soft.Of == nil:
		case col.Codes == 0:
			units[i] = i
		case col.Soft > 0:
			units[i] = len(all)
			all = append(all, int32(len(e.prog.Columns))+c)
		}
	}
	return all, units
}

// softPosterior is what the posterior of a column becomes where a cell is evidence, given which
// units rows take.
//
//	codes [codes]         that the cell may have; nil for values
//	share [codes, units]  the probability of a code given the unit and the evidence
//	mean, variance        of the values by unit, or by code where codes are bins
type softPosterior struct {
	codes          []int
	share          []float64
	mean, variance []float64
}

// softPosteriors makes those of a column and keeps the last ones.
type softPosteriors struct {
	*Engine
	column int
	known  map[*dataset.Evidence]*softPosterior
	kept   int // shares of those that are known
}

// maxPosteriors bounds those that are kept, and sharesLen their shares, unless one has more: 32 MiB.
const maxPosteriors, sharesLen = 64, 1 << 22

// SharesBytes is what the shares of evidence take at most: those that are kept, and once more those that are being made.
func SharesBytes(p *layers.Program) int64 {
	each, most := make([]int64, len(p.Columns)), int64(0)
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if c := &p.Columns[in.Column]; c.Soft > 0 && !c.Beside {
			each[in.Column] += int64(c.Codes) * int64(p.Vectors[in.Vector].Units)
			most = max(most, each[in.Column])
		}
	}
	return 8 * (2*most + min(maxPosteriors*most, max(sharesLen, most)))
}

func (e *Engine) newSoftPosteriors(column int) *softPosteriors {
	return &softPosteriors{Engine: e, column: column}
}

// evidenceColumn is the column of the program whose codes are evidence about a column.
func (e *Engine) evidenceColumn(column int) int {
	c := &e.prog.Columns[column]
	if c.Codes > 0 {
		return column
	}
	for i := range e.prog.Columns {
		if other := &e.prog.Columns[i]; other.Beside && other.Var == c.Var {
			return i
		}
	}
	return column
}

// limitOf returns what evidence, which may be nil, says of the values of a column.
func (e *Engine) limitOf(column int, ev *dataset.Evidence) (*softCell, error) {
	if ev == nil {
		return nil, nil
	}
	return e.softCell(e.evidenceColumn(column), ev)
}

// of returns the posterior of a column for evidence, from a cache of a bounded number of them,
// as rows often share evidence. It reads tables and parameters from the device, so it is not
// for each cell of a launch.
func (s *softPosteriors) of(ctx context.Context, ev *dataset.Evidence) (*softPosterior, error) {
	if p, ok := s.known[ev]; ok {
		return p, nil
	}
	cell, err := s.limitOf(s.column, ev)
	if err != nil {
		return nil, err
	}
	p := &softPosterior{}
	if s.prog.Columns[s.column].Codes == 0 {
		units, err := s.unitsOf(ctx, int32(s.column))
		if err != nil {
			return nil, err
		}
		for i := range units {
			m, v := cell.momentsOf(&units[i])
			p.mean, p.variance = append(p.mean, m), append(p.variance, v)
		}
	} else if err := s.shares(ctx, p, cell); err != nil {
		return nil, err
	}
	if s.known == nil || len(s.known) >= maxPosteriors || s.kept+len(p.share) > sharesLen {
		s.known, s.kept = make(map[*dataset.Evidence]*softPosterior), 0
	}
	s.known[ev] = p
	s.kept += len(p.share)
	return p, nil
}

// shares sets, for each code that the evidence allows and each unit of the column's inputs, the
// share of the unit's probability within the evidence that falls on the code. Columns with bins
// get the moments of each bin within the range, too.
func (s *softPosteriors) shares(ctx context.Context, p *softPosterior, cell *softCell) error {
	for _, r := range cell.runs {
		for code := r.First; code <= r.Last; code++ {
			p.codes = append(p.codes, code)
		}
	}
	units := 0
	var parts [][]float64 // by input: [codes, units]
	for i := range s.prog.Inputs {
		in := &s.prog.Inputs[i]
		if int(in.Column) != s.column {
			continue
		}
		n := int(s.prog.Vectors[in.Vector].Units)
		logs, part := make([]float64, n), make([]float64, 0, n*len(p.codes))
		if err := s.addTable(ctx, in, cell, logs); err != nil {
			return err
		}
		err := s.eachCode(ctx, in, cell, func(_ int, likelihood float64, m, exps []float32) {
			for u, log := range logs {
				part = append(part, shareOf(likelihood, m, exps, u, log))
			}
		})
		if err != nil {
			return err
		}
		parts, units = append(parts, part), units+n
	}
	p.share = make([]float64, 0, units*len(p.codes))
	for c := range p.codes {
		for _, part := range parts {
			n := len(part) / max(1, len(p.codes))
			p.share = append(p.share, part[c*n:(c+1)*n]...)
		}
	}
	if bins := s.binsOf(s.prog.Columns[s.column].Var); bins != nil {
		for _, code := range p.codes {
			m, v := bins.momentsWithin(code, cell.low, cell.high)
			p.mean, p.variance = append(p.mean, m), append(p.variance, v)
		}
	}
	return nil
}

// shareOf is likelihood·m·2^exps of a unit in units of e^log.
func shareOf(likelihood float64, m, exps []float32, u int, log float64) float64 {
	if m[u] == 0 || math.IsInf(log, -1) {
		return 0
	}
	l := math.Log(likelihood * float64(m[u]))
	if exps != nil {
		l += float64(exps[u]) * math.Ln2
	}
	return math.Exp(l - log)
}

// momentsOf are mean and variance of a cell's values under a unit, zeros if it has none.
func (s *softCell) momentsOf(u *unit) (mean, variance float64) {
	log, err := s.logOf(u)
	if err != nil || math.IsInf(log, -1) {
		return 0, 0
	}
	if s.runs == nil {
		return u.family.(ranged).RangeMoments(u.params, s.low, s.high)
	}
	square := 0.0
	for _, r := range s.runs {
		for x := r.First; x <= r.Last; x++ {
			w := r.Likelihood * math.Exp(u.family.LogProb(u.params, float64(x))-log)
			mean += w * float64(x)
			square += w * float64(x) * float64(x)
		}
	}
	return mean, max(0, square-mean*mean)
}

// mix returns the probabilities of the codes for weights of the units, which add up to 1.
func (p *softPosterior) mix(weights []float32) []float64 {
	out, total := make([]float64, len(p.codes)), 0.0
	for c := range out {
		for u, share := range p.share[c*len(weights):][:len(weights)] {
			out[c] += float64(weights[u]) * share
		}
		total += out[c]
	}
	for c := range out {
		out[c] /= total
	}
	return out
}

// shares writes the probabilities of all codes.
func (p *softPosterior) shares(out []float64, weights []float32) {
	clear(out)
	for i, x := range p.mix(weights) {
		out[p.codes[i]] = x
	}
}

// softMoments returns mean and variance of a cell that is evidence, as numbers.
func (s *summary) softMoments(p *softPosterior, weights []float32) (mean, variance float64) {
	switch {
	case s.units != nil:
		return s.unscaled(mixture(weights, func(u int) (float64, float64) { return p.mean[u], p.variance[u] }))
	case s.bins != nil:
		return s.unscaled(mixture(p.mix(weights), func(c int) (float64, float64) { return p.mean[c], p.variance[c] }))
	}
	return mixture(p.mix(weights), func(c int) (float64, float64) { return s.codeNumber(p.codes[c]), 0 })
}

// momentsWithin are those of the values of a bin from low to high.
func (b *bins) momentsWithin(code int, low, high float64) (mean, variance float64) {
	lo, hi := max(low, b.exact[code]), min(high, b.exact[code+1])
	return (lo + hi) / 2, (hi - lo) * (hi - lo) / 12
}

// middle is the value in the middle of a bin, or of the part of it that a cell may have.
func (b *bins) middle(code int, limit *softCell) float64 {
	if limit == nil {
		mid, _ := b.moments(code)
		return mid
	}
	mid, _ := b.momentsWithin(code, limit.low, limit.high)
	return mid
}

// likelihoodOf is that of a code, 1 without evidence.
func (s *softCell) likelihoodOf(code int) float64 {
	if s == nil {
		return 1
	}
	return s.likelihood(code)
}

// logLikelihood is the natural log of the likelihood that evidence about a cell gives to its
// value in a completion; 0 where there is no evidence, or a range of numbers.
func logLikelihood(given *dataset.Cells, row int, completed *dataset.Cells, at int) float64 {
	ev := given.Soft.At(row)
	if ev == nil || ev.Runs == nil || completed.IsMissing(at) {
		return 0
	}
	if completed.Discrete() {
		return naturalLog(ev.Likelihood(completed.Codes.At(at)))
	}
	return naturalLog(ev.Likelihood(int(completed.Values[at])))
}
