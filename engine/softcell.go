package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// softCell is evidence about a cell as leaves read it: codes with a likelihood of at most 1
// each, or values from low to high; both for bins of values.
type softCell struct {
	runs      []dataset.Run // nil: values
	low, high float64
	// log is the natural log of what likelihoods were divided by.
	log  float64
	most bool // as of softRows
}

// ranged is what a leaf must know for a range of its values, as of package circuit.
type ranged interface {
	layers.Family
	LogRange(p []float64, low, high float64) float64
	RangeMoments(p []float64, low, high float64) (mean, variance float64)
}

// softCell returns what evidence about the variable of a column says of what its leaves read:
// runs of codes, or a range of stored values for leaves without a table. Evidence of the other
// kind than the column is, is an error that names the variable.
func (e *Engine) softCell(column int, ev *dataset.Evidence) (*softCell, error) {
	c := &e.prog.Columns[column]
	s := &softCell{most: e.soft.most}
	bins := e.binsOf(c.Var)
	switch {
	case ev.Runs != nil && (bins != nil || !c.Beside && ev.Runs[len(ev.Runs)-1].Last >= int(c.Codes)):
		return nil, fmt.Errorf("%w: variable %d: evidence of categories that the column does not have", dataset.ErrFormat, c.Var)
	case ev.Runs != nil:
		s.runs = scaledRuns(ev.Runs, s)
	case bins != nil:
		s.low, s.high = e.stored(c.Var, ev.Low), e.stored(c.Var, ev.High)
		if s.runs = scaledRuns(bins.runs(s.low, s.high, s.most), s); s.most {
			s.log += bins.taken
		}
	case c.Beside:
		s.low, s.high = e.stored(c.Var, ev.Low), e.stored(c.Var, ev.High)
		if s.most && e.logScales != nil {
			s.log = -e.logScales[c.Var] // a density, as of a value
		}
	default:
		return nil, fmt.Errorf("%w: variable %d: evidence of a range of values, and the column has categories", dataset.ErrFormat, c.Var)
	}
	return s, nil
}

// stored returns how a number is stored in the column of a variable, without rounding.
func (e *Engine) stored(variable int32, x float64) float64 {
	if e.schema == nil || math.IsInf(x, 0) {
		return x
	}
	return standard(&e.schema.Columns[variable], x)
}

// standard is Column.Standard without rounding.
func standard(c *dataset.Column, x float64) float64 {
	if c.Kind != dataset.Continuous || c.Scale == 0 {
		return x
	}
	return (x - c.Offset) / c.Scale
}

// scaledRuns divides the likelihoods of runs by the largest one and notes that.
func scaledRuns(runs []dataset.Run, s *softCell) []dataset.Run {
	top := 0.0
	for _, r := range runs {
		top = max(top, r.Likelihood)
	}
	out := make([]dataset.Run, 0, len(runs))
	for _, r := range runs {
		out = append(out, dataset.Run{First: r.First, Last: r.Last, Likelihood: r.Likelihood / top})
	}
	if top > 0 {
		s.log = naturalLog(top)
	}
	return out
}

// naturalLog is math.Log, whose assembly for amd64 takes every number below the least normal one for about that one: likelihoods, which are products of
// many, may be there.
func naturalLog(x float64) float64 {
	const least, digits = 0x1p-1022, 52
	if x > 0 && x < least {
		return math.Log(math.Ldexp(x, digits)) - digits*math.Ln2
	}
	return math.Log(x)
}

// runs returns the bins that a range of values meets: with the share of a bin that lies in it, or
// its density. Beyond the bins there is nothing.
func (b *bins) runs(low, high float64, density bool) []dataset.Run {
	out := []dataset.Run{}
	for k := range b.logWidth {
		from, to := b.exact[k], b.exact[k+1]
		overlap := min(to, high) - max(from, low)
		if !(overlap > 1e-9*min(to-from, high-low)) { // a range may end where an edge was computed
			continue
		}
		share := overlap / (to - from)
		if density {
			share = b.density(k)
		}
		out = append(out, dataset.Run{First: k, Last: k, Likelihood: share})
	}
	return out
}

// key is the same for cells whose rows are the same, and no others of a group.
func (s *softCell) key() string {
	key := (&dataset.Evidence{Runs: s.runs}).Key()
	if s.runs == nil {
		key = (&dataset.Evidence{Low: s.low, High: s.high}).Key() + "values"
	}
	if s.most {
		key += "most"
	}
	return key
}

// softNumbers returns the row of an input for a cell: m·2^exps where the table has exponents,
// else m.
func (e *Engine) softNumbers(ctx context.Context, input int, s *softCell) (m, exps []float32, err error) {
	p := e.prog
	in := &p.Inputs[input]
	width, units := p.Width(in.Vector), int(p.Vectors[in.Vector].Units)
	logs := make([]float64, units)
	if p.Columns[in.Column].Beside {
		all, err := e.unitsOfInput(ctx, &p.Inputs[input-1])
		if err != nil {
			return nil, nil, err
		}
		for u := range logs {
			if logs[u], err = s.logOf(&all[u]); err != nil {
				return nil, nil, err
			}
			if f := &all[u]; s.most { // the leaf has its mode where its cell is missing
				logs[u] -= f.family.LogProb(f.params, f.family.Mode(f.params))
			}
		}
	} else if err := e.addTable(ctx, in, s, logs); err != nil {
		return nil, nil, err
	}
	m, exps = make([]float32, width), make([]float32, width)
	for u, l := range logs {
		if in.Exps < 0 {
			m[u] = float32(math.Exp(l))
			continue
		}
		a, b := layers.SplitLog(l)
		m[u], exps[u] = float32(a), float32(b)
	}
	return m, exps, nil
}

// logOf returns the natural log of the probability of a cell, or of its largest density, under
// a unit without a table.
func (s *softCell) logOf(u *unit) (float64, error) {
	if s.runs != nil {
		top, sum := math.Inf(-1), 0.0
		for _, r := range s.runs {
			for x := r.First; x <= r.Last; x++ {
				l := u.family.LogProb(u.params, float64(x)) + math.Log(r.Likelihood)
				switch {
				case math.IsInf(l, -1):
				case l <= top:
					sum += math.Exp(l - top)
				default:
					sum, top = sum*math.Exp(top-l)+1, l
				}
			}
		}
		if s.most || sum == 0 {
			return top, nil
		}
		return top + math.Log(sum), nil
	}
	if s.most {
		x, ok := s.best(u)
		if !ok {
			return math.Inf(-1), nil
		}
		return u.family.LogProb(u.params, x), nil
	}
	f, ok := u.family.(ranged)
	if !ok {
		return 0, fmt.Errorf("%w: a range of values under a %s leaf, which knows no probabilities of ranges", dataset.ErrSetting, u.family.Name())
	}
	return f.LogRange(u.params, s.low, s.high), nil
}

// best returns the value of the largest density of a unit in the range of a cell, false if
// the unit has none there. It is the one nearest to the mode, unless the family has several and says so.
func (s *softCell) best(u *unit) (float64, bool) {
	if f, ok := u.family.(interface {
		RangeMode(p []float64, low, high float64) (float64, bool)
	}); ok {
		x, ok := f.RangeMode(u.params, s.low, s.high)
		if !ok {
			return 0, false
		}
		return s.near(u, x)
	}
	return s.near(u, min(max(u.family.Mode(u.params), s.low), s.high))
}

// near returns the value of a unit that is nearest to a number in the range of a cell. Cells are float32, so a narrow range may lie between
// two of them, or hold only ones outside of a histogram's bins: the value then lies beside the range. It returns false if the unit
// cannot have the number or one beside it, such as a number between two counts.
func (s *softCell) near(u *unit, x float64) (float64, bool) {
	const most = math.MaxFloat32
	x = min(max(x, -most), most)
	cells := [...]float64{
		float64(float32(x)), float64(math.Nextafter32(float32(x), most)), float64(math.Nextafter32(float32(x), -most)),
		float64(float32(math.Ceil(x))), float64(float32(math.Floor(x))), // of counts
	}
	beside := u.family.Check(x) == nil
	for _, held := range []bool{true, false} { // first those that bins hold, though float32 has them only beside the range
		for _, c := range cells {
			if s.allows(c) && u.family.Check(c) == nil && (!held || u.holds(c)) {
				return c, true
			}
		}
		for _, c := range cells[:3] {
			if beside && u.family.Check(c) == nil && (!held || u.holds(c)) {
				return c, true
			}
		}
	}
	return 0, false
}

// allows reports whether a cell may have a value.
func (s *softCell) allows(x float64) bool {
	if s.runs == nil {
		return x >= s.low && x <= s.high
	}
	return s.likelihood(int(x)) > 0
}

// likelihood returns that of a code.
func (s *softCell) likelihood(code int) float64 {
	return (&dataset.Evidence{Runs: s.runs}).Likelihood(code)
}

// tablePart is the most numbers of a table that are read at a time.
const tablePart = 1 << 18

// eachCode calls do with the probabilities m·2^exps of each code that a cell allows, by unit,
// and its likelihood; exps is nil where all are 0.
func (e *Engine) eachCode(ctx context.Context, in *layers.Input, s *softCell, do func(code int, likelihood float64, m, exps []float32)) error {
	width := e.prog.Width(in.Vector)
	var table, exps []float32
	for _, r := range s.runs {
		for code := r.First; code <= r.Last; {
			n := min(r.Last+1-code, max(1, tablePart/width))
			if len(table) < n*width {
				table, exps = make([]float32, n*width), make([]float32, n*width)
			}
			at := int64(code) * int64(width)
			if err := e.ReadParams(ctx, in.Table+at, table[:n*width]); err != nil {
				return err
			}
			if in.Exps >= 0 {
				if err := e.ReadParams(ctx, in.Exps+at, exps[:n*width]); err != nil {
					return err
				}
			}
			for i := range n {
				var x []float32
				if in.Exps >= 0 {
					x = exps[i*width:][:width]
				}
				do(code+i, r.Likelihood, table[i*width:][:width], x)
			}
			code += n
		}
	}
	return nil
}

// addTable writes the natural logs of the sums, or the largest, of the probabilities of a
// cell's codes, by unit.
func (e *Engine) addTable(ctx context.Context, in *layers.Input, s *softCell, logs []float64) error {
	sums, tops := make([]float64, len(logs)), make([]float64, len(logs)) // sums·2^tops
	err := e.eachCode(ctx, in, s, func(_ int, likelihood float64, m, exps []float32) {
		for u := range sums {
			x, exp := likelihood*float64(m[u]), 0.0
			if exps != nil {
				exp = float64(exps[u])
			}
			if x == 0 {
				continue
			}
			if sums[u] == 0 {
				tops[u] = exp
			} else if exp > tops[u] {
				sums[u], tops[u] = math.Ldexp(sums[u], int(max(tops[u]-exp, -4096))), exp
			} else {
				x = math.Ldexp(x, int(max(exp-tops[u], -4096)))
			}
			if s.most {
				sums[u] = max(sums[u], x)
			} else {
				sums[u] += x
			}
		}
	})
	for u, x := range sums {
		logs[u] = math.Log(x) + tops[u]*math.Ln2
	}
	return err
}
