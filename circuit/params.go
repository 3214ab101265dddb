package circuit

import "fmt"

// CheckParams returns an error if p, in canonical order, are not parameters of a
// node: a weight that is negative or not finite, a row whose sum is not 1
// within 1e-3, a weight where the mask has none, or leaf parameters that the
// leaf refuses. The graph is valid.
func CheckParams[F float32 | float64](g *Graph, id NodeID, p []F) error {
	if err := g.checkID(id); err != nil {
		return err
	}
	n := &g.Nodes[id]
	if want := g.NumParams(id); len(p) != want {
		return fault(g, id, "has %d parameters; want %d", len(p), want)
	}
	switch {
	case n.Kind == Input:
		return checkInputParams(g, id, p)
	case n.Kind == Sum && n.Edges == nil:
		columns := len(p) / n.Units
		for u := range n.Units {
			if err := checkRow(g, id, u, p[u*columns:(u+1)*columns], 0, nil); err != nil {
				return err
			}
		}
	case n.Kind == Sum:
		return checkBlockParams(g, id, p)
	}
	return nil
}

func checkInputParams[F float32 | float64](g *Graph, id NodeID, p []F) error {
	n := &g.Nodes[id]
	q := make([]float64, n.Leaf.NumParams())
	for u := range n.Units {
		for i := range q {
			q[i] = float64(p[u*len(q)+i])
		}
		if err := n.Leaf.CheckParams(q); err != nil {
			return fmt.Errorf("%w: input node %d, unit %d: %w", ErrGraph, id, u, err)
		}
	}
	return nil
}

func checkBlockParams[F float32 | float64](g *Graph, id NodeID, p []F) error {
	n := &g.Nodes[id]
	e := n.Edges
	sums := make([]float64, n.Units)
	for k, pair := range e.Pairs {
		for r := range e.Rows {
			u := int(pair[0])*e.Rows + r
			from := (k*e.Rows + r) * e.Cols
			if err := checkRow(g, id, u, p[from:from+e.Cols], from, &sums[u]); err != nil {
				return err
			}
		}
	}
	for u, sum := range sums {
		if err := checkMass(g, id, u, sum); err != nil {
			return err
		}
	}
	return nil
}

// checkRow checks weights of unit u that start at place from of the canonical
// order. With a nil total they are the whole row; else it adds them to total.
func checkRow[F float32 | float64](g *Graph, id NodeID, u int, w []F, from int, total *float64) error {
	e := g.Nodes[id].Edges
	sum := 0.0
	for i, v := range w {
		if !(v >= 0 && v <= 1+massTolerance) {
			return fault(g, id, "has a weight of %v in unit %d; want a probability", v, u)
		}
		if v != 0 && e != nil && !e.Has(from+i) {
			return fault(g, id, "has a weight of %v in unit %d where the mask has none; set it to 0", v, u)
		}
		sum += float64(v)
	}
	if total != nil {
		*total += sum
		return nil
	}
	return checkMass(g, id, u, sum)
}

func checkMass(g *Graph, id NodeID, u int, sum float64) error {
	if !(sum >= 1-massTolerance && sum <= 1+massTolerance) {
		return fault(g, id, "has weights of unit %d that sum to %v; normalise them to 1", u, sum)
	}
	return nil
}

// Parameters returns a function that gives the parameters of a node: those of the node that it is tied to, which params
// fills and CheckParams accepts, once. A node without parameters has nil.
func Parameters(g *Graph, params ParamFunc64) func(id NodeID) ([]float64, error) {
	known := map[NodeID][]float64{}
	return func(id NodeID) ([]float64, error) {
		owner := g.Owner(id)
		if p, ok := known[owner]; ok || g.NumParams(id) == 0 {
			return p, nil
		}
		p := make([]float64, g.NumParams(owner))
		if err := params(owner, p); err != nil {
			return nil, err
		}
		if err := CheckParams(g, owner, p); err != nil {
			return nil, err
		}
		known[owner] = p
		return p, nil
	}
}

// FloorParams raises the positive weights of a sum, and the positive probabilities of a leaf whose parameters are a table of
// them, to at least MinProb, as updates leave them: flows are divided by them, which float32 does not hold for smaller ones.
func FloorParams[F float32 | float64](g *Graph, id NodeID, p []F) {
	if n := &g.Nodes[id]; n.Kind == Input && !ParamsAreTable(n.Leaf) {
		return
	}
	for i, v := range p {
		if v > 0 && v < MinProb {
			p[i] = MinProb
		}
	}
}
