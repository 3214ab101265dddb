package circuit

import "math/bits"

// Stats are the sizes of a circuit: what the root can reach, in units.
type Stats struct {
	InputUnits, ProductUnits, SumUnits int64
	SumEdges                           int64 // weights that exist; those of tied sums count each time
	ProductEdges                       int64 // units times children
	SumParams                          int64 // weights that exist; shared ones count once
	InputParams                        int64 // leaf parameters; shared ones count once
	Depth                              int   // nodes on the longest path
}

// Nodes returns the number of input and sum units, the root included.
func (s Stats) Nodes() int64 { return s.InputUnits + s.SumUnits }

// Edges returns the number of sum and product edges of all units; the weights of tied sums
// count each time.
func (s Stats) Edges() int64 { return s.SumEdges + s.ProductEdges }

// Params returns the number of different parameters, of sums and leaves; shared ones count
// once.
func (s Stats) Params() int64 { return s.SumParams + s.InputParams }

// Count counts what the root of a valid graph can reach. It is linear in nodes
// and child lists.
func Count(g *Graph) Stats {
	s := Stats{}
	used := Reachable(g)
	counted := make([]bool, len(g.Nodes)) // owners whose parameters are counted
	depth := make([]int32, len(g.Nodes))
	for i := range g.Nodes {
		if !used[i] {
			continue
		}
		n, id := &g.Nodes[i], NodeID(i)
		for _, c := range n.Children {
			depth[i] = max(depth[i], depth[c])
		}
		depth[i]++
		owner := g.Owner(id)
		first := !counted[owner]
		counted[owner] = true
		units := int64(n.Units)
		switch n.Kind {
		case Input:
			s.InputUnits += units
			if first {
				s.InputParams += int64(g.NumParams(id))
			}
		case Product:
			s.ProductUnits += units
			s.ProductEdges += units * int64(len(n.Children))
		case Sum:
			edges := g.weights(id)
			s.SumUnits += units
			s.SumEdges += edges
			if first {
				s.SumParams += edges
			}
		}
	}
	s.Depth = int(depth[g.Root])
	return s
}

// weights returns the number of weights of a sum that exist.
func (g *Graph) weights(id NodeID) int64 {
	e := g.Nodes[id].Edges
	if e == nil || e.Mask == nil {
		return int64(g.NumParams(id))
	}
	n := 0
	for _, w := range e.Mask {
		n += bits.OnesCount64(w)
	}
	return int64(n)
}

// Reachable reports for every node whether the root's value depends on it.
func Reachable(g *Graph) []bool {
	used := make([]bool, len(g.Nodes))
	used[g.Root] = true
	for i := int(g.Root); i >= 0; i-- {
		if used[i] {
			for _, c := range g.Nodes[i].Children {
				used[c] = true
			}
		}
	}
	return used
}
