package polyhedron

import (
	"math/big"

	"github.com/pce-engine/pce/compile/reduction/simplex"
)

// Sample looks for an integer point of s whose coordinates lie between -reach and
// reach, trying at most budget values of variables. Where it returns nil, s may
// still hold points.
func (s *Set) Sample(reach int64, budget int) ([]int64, error) {
	b := s.Clone()
	for v := range b.Vars {
		low, high := make(Row, b.Vars+1), make(Row, b.Vars+1)
		low[v], low[b.Vars] = 1, reach
		high[v], high[b.Vars] = -1, reach
		b.Positive = append(b.Positive, low, high)
	}
	c, err := NewScan(b, 0)
	if err != nil {
		return nil, err
	}
	var found []int64
	c.limited, c.budget = true, budget
	c.Points(nil, func(x []int64) bool {
		found = append([]int64{}, x...)
		return false
	})
	return found, nil
}

// Corner returns an integer point of s, however far from 0 it is: the point at which a linear program over s ends or, if that is not of
// integers, one of the halves of s below and above its first coordinate that is not an integer. It solves at most budget programs. Where
// it returns nil, s may still hold points.
func (s *Set) Corner(budget int) []int64 {
	open := []*Set{s}
	for ; len(open) > 0 && budget > 0; budget-- {
		c := open[len(open)-1].Clone()
		open = open[:len(open)-1]
		if c.tidy() {
			continue
		}
		end := c.program().Maximise()
		if end.Status != simplex.Optimal {
			continue
		}
		x := make([]int64, s.Vars)
		broken, fits := -1, true
		for v, at := range end.Point {
			below := new(big.Int).Div(at.Num(), at.Denom())
			if fits = fits && below.IsInt64() && below.BitLen() < 62; !fits {
				break
			}
			if x[v] = below.Int64(); !at.IsInt() && broken < 0 {
				broken = v
			}
		}
		switch {
		case !fits:
		case broken >= 0:
			below, above := make(Row, s.Vars+1), make(Row, s.Vars+1)
			below[broken], below[s.Vars] = -1, x[broken]
			above[broken], above[s.Vars] = 1, -x[broken]-1
			open = append(open, c.with(above), c.with(below))
		case s.Contains(x):
			return x
		}
	}
	return nil
}
