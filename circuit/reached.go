package circuit

import "slices"

// Reached returns the part of a valid graph that the root's value depends on, and the parameters of its nodes. Those of other nodes are not
// asked for, and files may leave them open. A graph that has no other nodes is returned as it is.
func Reached[F float32 | float64](g *Graph, params func(id NodeID, dst []F) error) (*Graph, func(id NodeID, dst []F) error) {
	used := Reachable(g)
	if !slices.Contains(used, false) {
		return g, params
	}
	part := &Graph{NumVars: g.NumVars}
	place := make([]NodeID, len(g.Nodes))  // in the part
	first := make(map[NodeID]NodeID)       // in the part, of the nodes that share the parameters of one of g
	owners := make([]NodeID, 0, len(used)) // in g, of the nodes of the part
	for i, n := range g.Nodes {
		if !used[i] {
			continue
		}
		n.Children = slices.Clone(n.Children)
		for k, c := range n.Children {
			n.Children[k] = place[c]
		}
		owner, id := g.Owner(NodeID(i)), NodeID(len(part.Nodes))
		to, shared := first[owner]
		if n.Tie = (Tie{}); shared {
			n.Tie = TieTo(to)
		} else {
			first[owner] = id
		}
		place[i], owners, part.Nodes = id, append(owners, owner), append(part.Nodes, n)
	}
	part.Root = place[g.Root]
	return part, func(id NodeID, dst []F) error { return params(owners[id], dst) }
}
