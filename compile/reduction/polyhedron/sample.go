package polyhedron

import "github.com/pce-engine/pce/compile/reduction/simplex"

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

// Corner returns a point at which a linear program over s ends, if it is of integers, however far from 0 it is. Where it
// returns nil, s may still hold points.
func (s *Set) Corner() []int64 {
	c := s.Clone()
	if c.tidy() {
		return nil
	}
	end := c.program().Maximise()
	if end.Status != simplex.Optimal {
		return nil
	}
	x := make([]int64, s.Vars)
	for v, at := range end.Point {
		if !at.IsInt() || !at.Num().IsInt64() {
			return nil
		}
		x[v] = at.Num().Int64()
	}
	if !s.Contains(x) {
		return nil
	}
	return x
}
