package circuit

import "slices"

// Props says which structural properties a circuit has. StructuredDecomposable
// and Deterministic are found by sufficient tests on the structure alone: true
// is certain, false means not shown.
type Props struct {
	Smooth        bool // children of a sum have equal scopes
	Decomposable  bool // children of a product have disjoint scopes
	TotalScope    bool // the root's scope holds all variables
	Deterministic bool // at most one edge of a sum unit is positive for a complete row

	// StructuredDecomposable: all products of one scope split it alike, so a
	// variable tree exists that every product follows.
	StructuredDecomposable bool
}

// Properties finds the properties of what the root can reach. A graph that
// breaks another rule than smoothness and decomposability has none.
func Properties(g *Graph) Props {
	if checkWiring(g) != nil {
		return Props{}
	}
	used := Reachable(g)
	var p Props
	if sketch, _, _ := sketchScopes(g); sketch != nil {
		p.Smooth, p.Decomposable = true, true
		p.TotalScope = int(sketch.size[g.Root]) == g.NumVars
		scope, distinct := sketch.numbers()
		p.StructuredDecomposable = splitsAlike(g, scope, distinct, used)
		p.Deterministic = deterministic(g, nil, used)
		return p
	}
	s, faults, err := computeScopes(g, false, maxScopeWords)
	if err != nil {
		return Props{}
	}
	p.Smooth, p.Decomposable = faults.unsmooth == None, faults.undecomposable == None
	p.TotalScope = s.Of(g.Root).Len() == g.NumVars
	p.StructuredDecomposable = p.Smooth && p.Decomposable && splitsAlike(g, s.nodes, s.Distinct(), used)
	p.Deterministic = deterministic(g, s, used)
	return p
}

// splitsAlike reports whether all products of one scope split it into the same
// scopes. By induction from the root, the scopes then form a tree.
// scope numbers each node's scope, from 0 to distinct-1.
func splitsAlike(g *Graph, scope []int32, distinct int, used []bool) bool {
	splits := make([][]int32, distinct)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !used[i] || n.Kind != Product || len(n.Children) == 1 {
			continue
		}
		parts := make([]int32, len(n.Children))
		for k, c := range n.Children {
			parts[k] = scope[c]
		}
		slices.Sort(parts)
		have := &splits[scope[i]]
		if *have == nil {
			*have = parts
		} else if !slices.Equal(*have, parts) {
			return false
		}
	}
	return true
}
