package circuit

import "math"

// maxUnitSteps bounds the search for disjoint supports of units, maxUnitDepth the levels that it goes down, and
// maxSupportCodes the codes that it asks leaves about.
const (
	maxUnitSteps    = 1 << 26
	maxUnitDepth    = 1 << 12
	maxSupportCodes = 1 << 26
)

// DeterministicUnder reports whether at most one edge of every sum unit is positive for a complete row under the
// parameters p: what Properties shows of the structure, or what leaves show that give no mass to
// some codes, as those of a decision tree's circuit do. True is certain, false means not shown: children of a sum are
// compared pair by pair, and after a few seconds the search is given up, with trees of more than some thousand leaves.
// Training can destroy the property, since zero parameters are not kept at zero. The graph must be valid.
//
// Units have disjoint supports if they are units of inputs of one variable that allow no code in common; if one is of
// a product, and one of its children's is disjoint from the other; or if one is of a sum, and all that it weighs are.
func DeterministicUnder(g *Graph, p ParamFunc) (bool, error) {
	used := Reachable(g)
	d := &unitDisjointness{g: g, params: p, supports: make([][]uint64, len(g.Nodes)), weights: make([][]float32, len(g.Nodes))}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !used[i] || n.Kind != Sum {
			continue
		}
		if n.Edges != nil {
			return false, nil // of a sum that leaves edges out only the structure is looked at
		}
		for u := range n.Units {
			children, err := d.weighed(unit{NodeID(i), u})
			if err != nil {
				return false, err
			}
			for k, a := range children {
				for _, b := range children[:k] {
					if ok, err := d.disjoint(a, b); err != nil || !ok {
						return false, err
					}
				}
			}
		}
	}
	return true, nil
}

// unit is a unit of a node.
type unit struct {
	node NodeID
	at   int
}

type unitDisjointness struct {
	g        *Graph
	params   ParamFunc
	supports [][]uint64  // of inputs: [units][words], a bit for each code that has mass; nil before they are asked for
	weights  [][]float32 // of sums; likewise
	steps    int
	depth    int
	codes    int
}

// weighed lists the units that a unit of a sum weighs with a positive number; none of a sum that leaves edges out.
func (d *unitDisjointness) weighed(s unit) ([]unit, error) {
	n := &d.g.Nodes[s.node]
	w := &d.weights[s.node]
	if *w == nil {
		*w = make([]float32, d.g.NumParams(s.node))
		if err := d.params(d.g.Owner(s.node), *w); err != nil {
			return nil, err
		}
	}
	d.steps += d.g.Columns(s.node)
	row := (*w)[s.at*d.g.Columns(s.node):]
	var out []unit
	column := 0
	for _, c := range n.Children {
		for u := range d.g.Nodes[c].Units {
			if row[column] > 0 {
				out = append(out, unit{c, u})
			}
			column++
		}
	}
	return out, nil
}

func (d *unitDisjointness) disjoint(a, b unit) (bool, error) {
	if d.steps++; a == b || d.steps > maxUnitSteps || d.depth == maxUnitDepth {
		return false, nil
	}
	d.depth++
	defer func() { d.depth-- }()
	n, m := &d.g.Nodes[a.node], &d.g.Nodes[b.node]
	if n.Kind == Input && m.Kind == Input {
		return d.inputs(a, b)
	}
	if n.Kind == Product && a.node == b.node { // of which only the same child's units can be disjoint
		for _, c := range n.Children {
			if ok, err := d.disjoint(unit{c, a.at}, unit{c, b.at}); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	if n.Kind == Input || n.Kind == Sum && m.Kind == Product {
		a, b, n = b, a, m
	}
	if n.Kind == Product {
		for _, c := range n.Children {
			if ok, err := d.disjoint(unit{c, a.at}, b); ok || err != nil {
				return ok, err
			}
		}
		return false, nil
	}
	if n.Edges != nil {
		return false, nil
	}
	children, err := d.weighed(a)
	if err != nil {
		return false, err
	}
	for _, c := range children {
		if ok, err := d.disjoint(c, b); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// inputs reports whether no code has mass in both.
func (d *unitDisjointness) inputs(a, b unit) (bool, error) {
	n, m := &d.g.Nodes[a.node], &d.g.Nodes[b.node]
	if n.Var != m.Var || n.Leaf.Codes() == 0 || n.Leaf.Codes() != m.Leaf.Codes() {
		return false, nil
	}
	x, err := d.support(a)
	if err != nil || x == nil {
		return false, err
	}
	y, err := d.support(b)
	if err != nil || y == nil {
		return false, err
	}
	d.steps += len(x)
	for w := range x {
		if x[w]&y[w] != 0 {
			return false, nil
		}
	}
	return true, nil
}

// support returns the codes to which a unit of an input gives mass, nil where they are too many to be asked about.
func (d *unitDisjointness) support(a unit) ([]uint64, error) {
	n := &d.g.Nodes[a.node]
	codes, k := n.Leaf.Codes(), n.Leaf.NumParams()
	words := (codes + 63) / 64
	if s := d.supports[a.node]; s != nil {
		return s[a.at*words:][:words], nil
	}
	if d.codes += n.Units * codes; d.codes > maxSupportCodes {
		return nil, nil
	}
	narrow, p := make([]float32, n.Units*k), make([]float64, k)
	if len(narrow) > 0 {
		if err := d.params(d.g.Owner(a.node), narrow); err != nil {
			return nil, err
		}
	}
	s := make([]uint64, n.Units*words)
	for u := range n.Units {
		for i := range p {
			p[i] = float64(narrow[u*k+i])
		}
		for c := range codes {
			if !math.IsInf(n.Leaf.LogProb(p, float64(c)), -1) {
				s[u*words+c/64] |= 1 << (c % 64)
			}
		}
	}
	d.supports[a.node] = s
	return s[a.at*words:][:words], nil
}
