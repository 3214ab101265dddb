package circuit

import "fmt"

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

// RootDomains is Domains of what the root reaches: -1, too, for a variable that other leaves alone read, since the circuit says
// nothing of it.
func RootDomains(g *Graph) []int {
	codes, used, read := Domains(g), Reachable(g), make([]bool, g.NumVars)
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == Input && used[i] {
			read[n.Var] = true
		}
	}
	for v := range codes {
		if !read[v] {
			codes[v] = -1
		}
	}
	return codes
}

// leafDomain is the size of a finite domain, or one of those that are not finite; 0 is none.
type leafDomain int32

const (
	realNumbers leafDomain = -1 - iota // some leaves have no density at some of them
	counts
)

func domainOf(l Leaf) leafDomain {
	switch {
	case l.Codes() > 0:
		return leafDomain(l.Codes())
	case l.Check(0.5) != nil:
		return counts
	}
	return realNumbers
}

func (d leafDomain) String() string {
	switch d {
	case realNumbers:
		return "real numbers"
	case counts:
		return "counts"
	}
	return fmt.Sprintf("%d codes", int32(d))
}

// domainCheck compares the domains of the leaves of each variable: the probability of a count is not comparable with a
// density, and is not defined between two counts. It grows with the highest variable, so that a graph of few nodes takes
// little memory.
type domainCheck struct{ of []leafDomain }

func (d *domainCheck) add(g *Graph, id NodeID) error {
	n := &g.Nodes[id]
	if n.Var >= len(d.of) {
		d.of = append(d.of, make([]leafDomain, n.Var+1-len(d.of))...)
	}
	is := domainOf(n.Leaf)
	if was := d.of[n.Var]; was != 0 && was != is {
		return fault(g, id, "gives variable %d %v and an earlier leaf %v; give all leaves of a variable one domain", n.Var, is, was)
	}
	d.of[n.Var] = is
	return nil
}
