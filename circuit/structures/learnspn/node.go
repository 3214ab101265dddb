package learnspn

import "math"

// kind is what a learned node is.
type kind uint8

const (
	leafNode kind = iota
	productNode
	sumNode
	treeNode
)

// node is a node of the learned circuit, a tree of which no part is shared.
type node struct {
	kind     kind
	v        int       // leafNode
	params   []float64 // leafNode
	children []*node
	weights  []float64 // sumNode
	tree     *tree     // treeNode
}

// logLik returns the log-likelihoods of rows.
func (n *node) logLik(all []variable, rows []int32) []float64 {
	out := make([]float64, len(rows))
	switch n.kind {
	case leafNode:
		x := &all[n.v]
		var table []float64
		if x.domain > 0 {
			table = logTable(x.leaf, n.params)
		}
		for k, r := range rows {
			if value, ok := x.at(r); ok && table != nil {
				out[k] = table[x.codes[r]]
			} else if ok {
				out[k] = x.leaf.LogProb(n.params, value)
			}
		}
	case treeNode:
		n.tree.logLik(all, rows, out)
	case productNode:
		for _, c := range n.children {
			for k, ll := range c.logLik(all, rows) {
				out[k] += ll
			}
		}
	case sumNode:
		parts := make([][]float64, len(n.children))
		for i, c := range n.children {
			parts[i] = c.logLik(all, rows)
		}
		a, b := make([]float64, len(parts)), make([]float64, len(parts))
		for i, w := range n.weights {
			b[i] = math.Log(w)
		}
		for k := range out {
			for i := range parts {
				a[i] = parts[i][k]
			}
			out[k] = logSumExp(a, b)
		}
	}
	return out
}

// multipliers returns how many multipliers the circuit takes as hardware: one for each factor
// of a product after the first, one for each weight of a sum, and one for each edge of a tree,
// whose tables are selected, not multiplied.
func (n *node) multipliers() int {
	count := 0
	switch n.kind {
	case productNode:
		count = len(n.children) - 1
	case sumNode:
		count = len(n.children)
	case treeNode:
		return len(n.tree.vars) - 1
	}
	for _, c := range n.children {
		count += c.multipliers()
	}
	return count
}
