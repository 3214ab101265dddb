package reference

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// axis is where a sum over the values of one variable looks: at values with weights.
type axis struct {
	variable        int
	values, weights []float64
}

// Points yields completions of the missing cells of a row, whose domains need not be
// finite, with weights: for a function f of rows that grows no faster than a polynomial,
// the sum of weight · exp(log-likelihood) · f is its integral over all completions, to a
// relative error below 1e-12.
//
// Codes have weight 1. Counts have weight 1 up to one that no leaf exceeds with a
// probability above 1e-15. Normal variables, and the logarithms of log-normal ones, lie on
// a grid of half the smallest standard deviation: the trapezoidal rule errs by
// exp(-2π²·4) there. Those of histograms with breaks of their own lie at two points of each piece between two
// breaks of any leaf, or at its whole numbers. Variables outside the scope stay missing. The yielded slice is used
// again. An error matches ErrDomain if there are too many points.
func (ev *Evaluator) Points(given []float64) (iter.Seq2[[]float64, float64], error) {
	if err := ev.CheckRow(given); err != nil {
		return nil, err
	}
	var axes []axis
	points := 1
	for v, codes := range circuit.Domains(ev.g) {
		if codes < 0 || !math.IsNaN(given[v]) {
			continue
		}
		a := axis{variable: v}
		if codes > 0 {
			a.count(codes)
		} else if err := ev.line(&a); err != nil {
			return nil, err
		}
		if points *= len(a.values); points > maxStates {
			return nil, fmt.Errorf("%w: more than %d points; fix some variables", ErrDomain, maxStates)
		}
		axes = append(axes, a)
	}
	return func(yield func([]float64, float64) bool) {
		row := append([]float64{}, given...)
		for s := range points {
			weight := 1.0
			for _, a := range axes {
				k := s % len(a.values)
				s /= len(a.values)
				row[a.variable] = a.values[k]
				weight *= a.weights[k]
			}
			if !yield(row, weight) {
				return
			}
		}
	}, nil
}

// count adds the values 0..n-1.
func (a *axis) count(n int) {
	for k := range n {
		a.values, a.weights = append(a.values, float64(k)), append(a.weights, 1)
	}
}

// line adds values and weights of a variable without codes to an axis, by the leaves that read
// it: all counts that have any probability, or a grid of half the smallest standard deviation,
// in the logarithm for log-normal leaves. A grid of maxStates points or more gives an error
// that matches ErrDomain.
func (ev *Evaluator) line(a *axis) error {
	const spread = 10 // standard deviations
	lo, hi, least := math.Inf(1), math.Inf(-1), math.Inf(1)
	logs, counts := false, 0.0
	var breaks []float64
	for i := range ev.g.Nodes {
		n := &ev.g.Nodes[i]
		if n.Kind != circuit.Input || n.Var != a.variable {
			continue
		}
		if l, ok := n.Leaf.(circuit.RealHistogram); ok {
			breaks = append(breaks, l.Breaks...)
			continue
		}
		for u := range n.Units {
			mean, variance := n.Leaf.Moments(leafParams(ev.g, ev.p, circuit.NodeID(i), u))
			switch n.Leaf.(type) {
			case circuit.Poisson:
				counts = max(counts, mean+spread*math.Sqrt(mean)+40)
			case circuit.LogNormal:
				logs = true
				variance = math.Log1p(variance / (mean * mean))
				mean = math.Log(mean) - variance/2
			}
			sd := math.Sqrt(variance)
			lo, hi, least = min(lo, mean-spread*sd), max(hi, mean+spread*sd), min(least, sd)
		}
	}
	if breaks != nil {
		a.pieces(breaks)
		return nil
	}
	if counts > 0 {
		a.count(min(int(counts)+1, maxStates+1))
		return nil
	}
	step := least / 2
	if !((hi-lo)/step < maxStates) {
		return fmt.Errorf("%w: variable %d needs a grid of %v points", ErrDomain, a.variable, (hi-lo)/step)
	}
	for x := lo; x <= hi; x += step {
		if logs { // dx = x·d(log x); moments weigh large values more
			a.values, a.weights = append(a.values, math.Exp(x)), append(a.weights, step*math.Exp(x))
		} else {
			a.values, a.weights = append(a.values, x), append(a.weights, step)
		}
	}
	return nil
}

// pieces adds two points of each piece between breaks, by Gauss's rule, which is exact for first and second
// moments; or its whole numbers, if all breaks are whole.
func (a *axis) pieces(breaks []float64) {
	slices.Sort(breaks)
	whole := !slices.ContainsFunc(breaks, func(b float64) bool { return b != math.Trunc(b) })
	for i, lo := range breaks[:len(breaks)-1] {
		w := breaks[i+1] - lo
		switch {
		case whole:
			for k := range int(w) {
				a.values, a.weights = append(a.values, lo+float64(k)), append(a.weights, 1)
			}
		case w > 0:
			for _, at := range []float64{0.5 - math.Sqrt(1./12), 0.5 + math.Sqrt(1./12)} {
				a.values, a.weights = append(a.values, lo+w*at), append(a.weights, w/2)
			}
		}
	}
}
