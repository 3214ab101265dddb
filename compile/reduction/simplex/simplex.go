package simplex

import "math/big"

// Problem is a linear program: maximise Objective over the points at which every row of
// Positive is at least 0 and every row of Zero is 0.
type Problem struct {
	Vars      int
	Zero      [][]int64
	Positive  [][]int64
	Objective []int64 // without a constant; nil: 0
}

// Status says what is known of a program.
type Status int

// The outcomes.
const (
	Optimal Status = iota
	Infeasible
	Unbounded
)

// Solution is what Maximise finds.
type Solution struct {
	Status Status
	Point  []*big.Rat // a point of the maximum, if the status is Optimal
}

// Maximise solves p. It computes with 64 bits and, if these overflow, again with big
// integers.
func (p *Problem) Maximise() Solution {
	constraints := append([][]int64{}, p.Positive...)
	for _, z := range p.Zero {
		negative := make([]int64, len(z))
		for j, x := range z {
			negative[j] = -x
		}
		constraints = append(constraints, z, negative)
	}
	objective := p.Objective
	if objective == nil {
		objective = make([]int64, p.Vars)
	}
	if s, ok := solve(machine{}, p.Vars, constraints, objective); ok {
		return s
	}
	s, _ := solve(unlimited{}, p.Vars, constraints, objective)
	return s
}

func solve[T any](a arithmetic[T], n int, constraints [][]int64, objective []int64) (Solution, bool) {
	d := newDictionary(a, n, constraints)
	if !d.release() {
		return Solution{}, false
	}
	status, ok := d.phaseOne()
	if !ok || status != Optimal {
		return Solution{Status: status}, ok
	}
	if !d.setObjective(objective) {
		return Solution{}, false
	}
	if status, ok = d.climb(); !ok || status != Optimal {
		return Solution{Status: status}, ok
	}
	return Solution{Optimal, d.point()}, true
}
