package learnspn

import (
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/circuit"
)

// leafFitter fits the leaves of all variables. base are the parameters that describe all
// rows: the fit of a slice starts from them, so that the rows that Smoothing adds look like
// all rows where the domain is not finite, and codes that never occur keep what they have.
type leafFitter struct {
	all       []variable
	smoothing float64
	base      [][]float64
}

func newLeafFitter(all []variable, smoothing float64) *leafFitter {
	f := &leafFitter{all: all, smoothing: smoothing, base: make([][]float64, len(all))}
	s := whole(all)
	for v := range all {
		col, rng := all[v].describe(), rand.New(rand.NewPCG(0, uint64(v)))
		p := make([]float64, all[v].leaf.NumParams())
		all[v].leaf.Init(p, col, rng)
		e := f.observe(v, s.rows)
		sums := e.sums(0)
		if _, counts := all[v].leaf.(circuit.Poisson); counts && sums[0] == 0 {
			sums[0] = 0.5 // half an event, as the rate of none at all would leave a count that no row has 70 nats and more below the others
		}
		f.base[v] = p
		f.base[v] = f.maximise(v, sums, e.weight[0], 0) // else the rows that are added would look like the random start
		f.base[v] = f.maximise(v, sums, e.weight[0], smoothing)
	}
	return f
}

// describe returns what Leaf.Init may know of the variable.
func (x *variable) describe() circuit.ColumnStats {
	c := circuit.ColumnStats{Min: math.Inf(1), Max: math.Inf(-1)}
	n, squares := 0.0, 0.0
	for r := range int32(x.rows()) {
		if v, ok := x.at(r); ok { // Welford's update
			n++
			d := v - c.Mean
			c.Mean += d / n
			squares += d * (v - c.Mean)
			c.Min, c.Max = min(c.Min, v), max(c.Max, v)
		}
	}
	if n == 0 {
		return circuit.ColumnStats{}
	}
	c.Variance = squares / n
	return c
}

// rows returns the parameters of a variable's leaf for some rows.
func (f *leafFitter) rows(v int, rows []int32) []float64 {
	e := f.observe(v, rows)
	return f.maximise(v, e.sums(0), e.weight[0], f.smoothing)
}

// observe returns what some rows say of a variable.
func (f *leafFitter) observe(v int, rows []int32) *evidence {
	e := newEvidence(&f.all[v], 1)
	for _, r := range rows {
		e.add(0, r, 1)
	}
	return e
}

// evidence is what weighted rows say of a variable, apart for some states of another one.
type evidence struct {
	x      *variable
	weight []float64   // [states] of observed cells
	counts [][]float64 // [states][domain] of a finite domain
	stats  [][]float64 // [states][NumStats] of others
	t      []float64
}

func newEvidence(x *variable, states int) *evidence {
	e := &evidence{x: x, weight: make([]float64, states), counts: make([][]float64, states), stats: make([][]float64, states)}
	e.t = make([]float64, x.leaf.NumStats())
	for s := range states {
		e.counts[s], e.stats[s] = make([]float64, x.domain), make([]float64, len(e.t))
	}
	return e
}

// add adds the cell of a row, if it is observed.
func (e *evidence) add(state, row int32, weight float64) {
	if e.x.domain > 0 {
		if c := e.x.codes[row]; c != missing {
			e.counts[state][c] += weight
			e.weight[state] += weight
		}
		return
	}
	if value := e.x.values[row]; value == value {
		e.x.leaf.Stats(value, e.t)
		for i, t := range e.t {
			e.stats[state][i] += weight * t
		}
		e.weight[state] += weight
	}
}

// sums returns the sufficient statistics of a state.
func (e *evidence) sums(state int) []float64 {
	for c, n := range e.counts[state] {
		if n > 0 {
			e.x.leaf.Stats(float64(c), e.t)
			for i, t := range e.t {
				e.stats[state][i] += n * t
			}
		}
	}
	return e.stats[state]
}

// maximise returns the parameters of largest likelihood for some statistics and the rows that
// are added.
func (f *leafFitter) maximise(v int, sum []float64, weight, added float64) []float64 {
	p := append([]float64(nil), f.base[v]...)
	f.all[v].leaf.MStep(p, sum, weight, added, 1)
	for i := range p { // as the graph will have them
		p[i] = float64(float32(p[i]))
	}
	return p
}

// logTable returns the log probabilities of the codes of a finite domain.
func logTable(l circuit.Leaf, p []float64) []float64 {
	table := make([]float64, l.Codes())
	for c := range table {
		table[c] = l.LogProb(p, float64(c))
	}
	return table
}
