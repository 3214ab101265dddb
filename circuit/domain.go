package circuit

// Domains returns for every variable the size of its finite domain, 0 if its
// domain is not finite, and -1 if no leaf reads it. The graph is valid.
func Domains(g *Graph) []int {
	codes := make([]int, g.NumVars)
	for v := range codes {
		codes[v] = -1
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == Input {
			codes[n.Var] = n.Leaf.Codes()
		}
	}
	return codes
}

// domainCheck compares the domains of the leaves of each variable. codes holds
// one more than the domain, 0 where no leaf was seen; it grows with the highest
// variable, so that a graph of few nodes takes little memory.
type domainCheck struct{ codes []int32 }

func (d *domainCheck) add(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	if n.Var >= len(d.codes) {
		d.codes = append(d.codes, make([]int32, n.Var+1-len(d.codes))...)
	}
	codes := int32(n.Leaf.Codes()) + 1
	if have := d.codes[n.Var]; have != 0 && have != codes {
		return fault(g, id, "gives variable %d %d codes and an earlier leaf %d (0: not finite); give all leaves of a variable one domain",
			n.Var, codes-1, have-1)
	}
	d.codes[n.Var] = codes
	return nil
}
