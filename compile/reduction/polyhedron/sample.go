package polyhedron

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
