package reference

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// SoftLogLikelihood returns the log density of a row's observed cells and of what is known of
// others: Σ λ(x)·p(x) over the values x that complete the row, an integral over the numbers of a
// range. soft has an element for each variable, nil for one of which nothing is known; its
// cell in the row is missing.
func (ev *Evaluator) SoftLogLikelihood(row []float64, soft []*dataset.Evidence) (float64, error) {
	if len(soft) != ev.g.NumVars {
		return 0, fmt.Errorf("%w: evidence about %d cells; want %d", ErrRow, len(soft), ev.g.NumVars)
	}
	values, err := ev.evaluate(row, logSumExp, func(v int, l circuit.Leaf, p []float64) float64 {
		if soft[v] == nil {
			return 0
		}
		return softLog(l, p, soft[v])
	})
	if err != nil {
		return 0, err
	}
	return values[ev.g.Root][0], nil
}

// softLog is the log probability of evidence under a unit of a leaf.
func softLog(l circuit.Leaf, p []float64, e *dataset.Evidence) float64 {
	if e.Runs == nil {
		if r, ok := l.(circuit.Ranged); ok {
			return r.LogRange(p, e.Low, e.High)
		}
		return math.NaN()
	}
	var terms []float64
	for _, r := range e.Runs {
		for x := r.First; x <= r.Last; x++ {
			terms = append(terms, circuit.Log(r.Likelihood)+l.LogProb(p, float64(x)))
		}
	}
	return logSumExp(terms)
}

// SoftStates yields the completions of a row that evidence about its cells allows, each with
// its likelihood, as States does.
func SoftStates(g *circuit.Graph, given []float64, soft []*dataset.Evidence) (iter.Seq2[[]float64, float64], error) {
	states, err := States(g, given)
	if err != nil {
		return nil, err
	}
	return func(yield func([]float64, float64) bool) {
		for row := range states {
			likelihood := 1.0
			for v, e := range soft {
				if e != nil && !math.IsNaN(row[v]) {
					likelihood *= e.Likelihood(int(row[v]))
				}
			}
			if likelihood > 0 && !yield(row, likelihood) {
				return
			}
		}
	}, nil
}

// RandomSoft makes some cells of rows missing but for random evidence, which it returns:
// [row][variable], nil for the other cells. Ranges of numbers have the cell near one end.
func RandomSoft(g *circuit.Graph, rng *rand.Rand, rows [][]float64, share float64) [][]*dataset.Evidence {
	s, domains := Schema(g), circuit.Domains(g)
	soft := make([][]*dataset.Evidence, len(rows))
	for r, row := range rows {
		soft[r] = make([]*dataset.Evidence, g.NumVars)
		for v, codes := range domains {
			if codes < 0 || rng.Float64() >= share {
				continue
			}
			soft[r][v] = randomEvidence(&s.Columns[v], rng, row[v])
			row[v] = math.NaN()
		}
	}
	return soft
}

// randomEvidence draws evidence of any kind that the column takes and that does not exclude
// everything; ranges of continuous columns begin near x.
func randomEvidence(c *dataset.Column, rng *rand.Rand, x float64) *dataset.Evidence {
	var e *dataset.Evidence
	var err error
	kind := rng.IntN(4)
	switch n := c.Categories; {
	case c.Kind == dataset.Continuous:
		if math.IsNaN(x) {
			x = 0
		}
		low, high := x-0.1, x+2*rng.ExpFloat64()
		if kind == 0 {
			low = math.Inf(-1)
		} else if kind == 1 {
			high = math.Inf(1)
		}
		e, err = c.RangeEvidence(low, high)
	case kind == 0:
		low := rng.IntN(n)
		e, err = c.RangeEvidence(float64(low)-0.5, float64(low+rng.IntN(n-low)))
	case kind == 1:
		e, err = c.SetEvidence(rng.Perm(n)[:1+rng.IntN(n)])
	default:
		likelihoods := make([]float64, n)
		for i := range likelihoods {
			if rng.IntN(3) > 0 {
				likelihoods[i] = math.Exp(min(25, max(-25, 10*rng.NormFloat64())))
			}
		}
		likelihoods[rng.IntN(n)] = 0.5
		e, err = c.LikelihoodEvidence(likelihoods)
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return e
}

// SoftBatch is Batch of rows with evidence about some of their cells.
func SoftBatch(s *dataset.Schema, rows [][]float64, soft [][]*dataset.Evidence) *dataset.Batch {
	b := Batch(s, rows)
	for r := range soft {
		for v, e := range soft[r] {
			if e != nil {
				b.Columns[v].SetSoft(r, e)
			}
		}
	}
	return b
}
