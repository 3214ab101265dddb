package reference

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
)

// Conditional returns the distribution over the codes of a variable given the
// other observed cells of a row: one likelihood for each code, normalised.
func (ev *Evaluator) Conditional(given []float64, v int) ([]float64, error) {
	if v < 0 || v >= ev.g.NumVars || circuit.Domains(ev.g)[v] < 1 {
		return nil, fmt.Errorf("%w: variable %d has no codes", ErrDomain, v)
	}
	row := append([]float64{}, given...)
	p := make([]float64, circuit.Domains(ev.g)[v])
	if v < len(row) {
		row[v] = math.NaN()
	}
	base, err := ev.LogLikelihood(row)
	if err != nil {
		return nil, err
	}
	if math.IsInf(base, -1) {
		return nil, fmt.Errorf("%w: the observed cells have probability 0", ErrRow)
	}
	for c := range p {
		row[v] = float64(c)
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			return nil, err
		}
		p[c] = math.Exp(ll - base)
	}
	return p, nil
}

// Conditionals returns the distributions of all variables given the observed cells of
// a row, [variable][code], at once: those of the leaves, mixed by their flows. An
// observed cell has all the mass at its code; a variable without codes has nil.
func (ev *Evaluator) Conditionals(given []float64) ([][]float64, error) {
	f, err := ev.Flows([][]float64{given})
	if err != nil {
		return nil, err
	}
	if f.Impossible > 0 {
		return nil, fmt.Errorf("%w: the observed cells have probability 0", ErrRow)
	}
	p := make([][]float64, ev.g.NumVars)
	for v, codes := range circuit.Domains(ev.g) {
		if codes > 0 {
			p[v] = make([]float64, codes)
			if x := given[v]; !math.IsNaN(x) {
				p[v][int(x)] = 1
			}
		}
	}
	for i := range ev.g.Nodes {
		n := &ev.g.Nodes[i]
		if n.Kind != circuit.Input || !math.IsNaN(given[n.Var]) {
			continue
		}
		for u, flow := range f.Nodes[i] {
			for c := range p[n.Var] {
				p[n.Var][c] += flow * math.Exp(n.Leaf.LogProb(leafParams(ev.g, ev.p, circuit.NodeID(i), u), float64(c)))
			}
		}
	}
	return p, nil
}

// Moments returns mean and variance of every variable given the observed cells:
// those of the leaves, mixed by their flows. An observed cell has its value and
// 0, a variable outside the scope NaN.
func (ev *Evaluator) Moments(given []float64) (mean, variance []float64, err error) {
	f, err := ev.Flows([][]float64{given})
	if err != nil {
		return nil, nil, err
	}
	if f.Impossible > 0 {
		return nil, nil, fmt.Errorf("%w: the observed cells have probability 0", ErrRow)
	}
	mean, variance = append([]float64{}, given...), MissingRow(ev.g.NumVars)
	square := make([]float64, ev.g.NumVars)
	for v, codes := range circuit.Domains(ev.g) {
		if !math.IsNaN(given[v]) {
			variance[v] = 0
		} else if codes >= 0 {
			mean[v], variance[v] = 0, 0
		}
	}
	for i := range ev.g.Nodes {
		n := &ev.g.Nodes[i]
		if n.Kind != circuit.Input || !math.IsNaN(given[n.Var]) {
			continue
		}
		for u, flow := range f.Nodes[i] {
			m, s := n.Leaf.Moments(leafParams(ev.g, ev.p, circuit.NodeID(i), u))
			mean[n.Var] += flow * m
			square[n.Var] += flow * (s + m*m)
		}
	}
	for v := range mean {
		if math.IsNaN(given[v]) && !math.IsNaN(mean[v]) {
			variance[v] = square[v] - mean[v]*mean[v]
		}
	}
	return mean, variance, nil
}

// MPE returns the most probable completion of a row and its log-likelihood, by
// trying every one; the first of equals.
func (ev *Evaluator) MPE(given []float64) ([]float64, float64, error) {
	states, err := States(ev.g, given)
	if err != nil {
		return nil, 0, err
	}
	var best []float64
	top := math.Inf(-1)
	for row := range states {
		ll, err := ev.LogLikelihood(row)
		if err != nil {
			return nil, 0, err
		}
		if best == nil || ll > top {
			best, top = append([]float64{}, row...), ll
		}
	}
	return best, top, nil
}
