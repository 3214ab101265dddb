package circuit

// maxSupportSteps bounds the search for disjoint supports.
const maxSupportSteps = 1 << 22

// deterministic reports whether the supports of the weighted children of every
// sum unit are shown to be pairwise disjoint, whatever the parameters.
//
// Two nodes have disjoint supports if they are indicators of different values
// of one variable; if one is a sum, all of whose children are disjoint from the
// other; or if one is a product, one of whose children is. A unit with one
// weight needs no proof. Two units of one child are never shown to be disjoint.
// The scopes may be nil: they are computed when a pair of nodes first needs them,
// and no proof is found where they take too much memory.
func deterministic(g *Graph, s *Scopes, used []bool) bool {
	d := disjointness{g: g, scopes: s, known: map[[2]NodeID]bool{}}
	for i := range g.Nodes {
		if used[i] && g.Nodes[i].Kind == Sum && !d.sum(NodeID(i)) {
			return false
		}
	}
	return true
}

type disjointness struct {
	g      *Graph
	scopes *Scopes
	known  map[[2]NodeID]bool
	steps  int
}

// sum reports whether every unit of a sum has weights to at most one unit, or
// to units of children with pairwise disjoint supports.
func (d *disjointness) sum(id NodeID) bool {
	n := &d.g.Nodes[id]
	if n.Edges == nil {
		for _, c := range n.Children {
			if d.g.Nodes[c].Units != 1 {
				return false
			}
		}
		return d.pairwise(n.Children)
	}
	owner := make([]NodeID, 0, d.g.Columns(id)) // child of each column
	for _, c := range n.Children {
		for range d.g.Nodes[c].Units {
			owner = append(owner, c)
		}
	}
	e := n.Edges
	var children []NodeID
	for from := 0; from < len(e.Pairs); {
		to := from
		for to < len(e.Pairs) && e.Pairs[to][0] == e.Pairs[from][0] {
			to++
		}
		for r := range e.Rows {
			children = children[:0]
			for k := from; k < to; k++ {
				for c := range e.Cols {
					if e.Has((k*e.Rows+r)*e.Cols + c) {
						children = append(children, owner[int(e.Pairs[k][1])*e.Cols+c])
					}
				}
			}
			if !d.pairwise(children) {
				return false
			}
		}
		from = to
	}
	return true
}

func (d *disjointness) pairwise(nodes []NodeID) bool {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			if !d.disjoint(a, b) {
				return false
			}
		}
	}
	return true
}

func (d *disjointness) disjoint(a, b NodeID) bool {
	if a > b {
		a, b = b, a
	}
	d.steps++
	if a == b || d.steps > maxSupportSteps || !d.overlap(a, b) {
		return false
	}
	if answer, ok := d.known[[2]NodeID{a, b}]; ok {
		return answer
	}
	answer := d.prove(a, b) || d.prove(b, a)
	if d.steps <= maxSupportSteps {
		d.known[[2]NodeID{a, b}] = answer
	}
	return answer
}

// overlap reports whether two nodes share a variable; without that they have no
// disjoint supports.
func (d *disjointness) overlap(a, b NodeID) bool {
	if n, m := &d.g.Nodes[a], &d.g.Nodes[b]; n.Kind == Input && m.Kind == Input {
		return n.Var == m.Var
	}
	if d.scopes == nil {
		s, _, err := computeScopes(d.g, false, maxScopeWords)
		if err != nil {
			d.steps = maxSupportSteps
			return false
		}
		d.scopes = s
	}
	return d.scopes.Of(a).Overlaps(d.scopes.Of(b))
}

// prove reports whether the supports of a and b are disjoint as far as the structure of a
// shows it: indicators of different values of one variable are; a sum is if all its children
// are; a product is if one of its children is. False means that no proof was found this way;
// disjoint then tries with b.
func (d *disjointness) prove(a, b NodeID) bool {
	n, m := &d.g.Nodes[a], &d.g.Nodes[b]
	switch n.Kind {
	case Input:
		x, ok := n.Leaf.(Indicator)
		y, also := m.Leaf.(Indicator)
		return ok && also && n.Var == m.Var && x.Value != y.Value
	case Sum:
		for _, c := range n.Children {
			if !d.disjoint(c, b) {
				return false
			}
		}
		return true
	default:
		for _, c := range n.Children {
			if d.disjoint(c, b) {
				return true
			}
		}
		return false
	}
}
