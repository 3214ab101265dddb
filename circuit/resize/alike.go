package resize

import "github.com/pce-engine/pce/circuit"

// alike divides the nodes of a graph into sets whose units come and go together, and gives each
// node a member of its set, by which the set is named: a product multiplies its children unit by unit,
// and nodes that share parameters have one shape.
func alike(g *circuit.Graph) []circuit.NodeID {
	of := make([]circuit.NodeID, len(g.Nodes))
	for i := range of {
		of[i] = circuit.NodeID(i)
	}
	find := func(id circuit.NodeID) circuit.NodeID {
		for of[id] != id {
			of[id] = of[of[id]]
			id = of[id]
		}
		return id
	}
	join := func(a, b circuit.NodeID) { of[find(a)] = find(b) }
	for i := range g.Nodes {
		id, n := circuit.NodeID(i), &g.Nodes[i]
		if n.Kind == circuit.Product {
			for _, c := range n.Children {
				join(c, id)
			}
		}
		if owner := g.Owner(id); owner != id {
			join(id, owner)
			for k, c := range n.Children {
				join(c, g.Nodes[owner].Children[k])
			}
		}
	}
	for i := range of {
		of[i] = find(circuit.NodeID(i))
	}
	return of
}
