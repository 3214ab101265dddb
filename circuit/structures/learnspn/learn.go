package learnspn

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
)

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

// learner cuts slices until they are small or their columns independent.
type learner struct {
	ctx  context.Context
	opts *Options
	fit  *leafFitter
	idle chan struct{} // a token for each worker that could be started
}

// grow returns the circuit of a slice. Its columns are cut apart where they are independent;
// if they are not, its rows are clustered. seed is that of the slice: it follows from the
// place of the slice in the circuit alone, so that workers do not change the result. When the
// context ends, what it returns is of no use.
func (l *learner) grow(s slice, seed uint64) *node {
	switch {
	case len(s.vars) == 1:
		return l.leaf(s, s.vars[0])
	case len(s.rows) < l.opts.MinRows || l.ctx.Err() != nil:
		return l.uncut(s)
	}
	rng := rand.New(rand.NewPCG(l.opts.Seed, seed))
	if parts := components(len(s.vars), l.dependence(s, rng)); len(parts) > 1 {
		n := &node{kind: productNode}
		slices := make([]slice, len(parts))
		for i, part := range parts {
			vars := make([]int, len(part))
			for k, at := range part {
				vars[k] = s.vars[at]
			}
			slices[i] = s.over(vars)
		}
		n.children = l.each(slices, seed)
		return n
	}
	parts := l.cluster(s, rng)
	if len(parts) < 2 {
		return l.uncut(s)
	}
	n := &node{kind: sumNode}
	slices := make([]slice, len(parts))
	for i, rows := range parts {
		slices[i] = s.of(rows)
		n.weights = append(n.weights, float64(len(rows))/float64(len(s.rows)))
	}
	n.children = l.each(slices, seed)
	return n
}

// each returns the circuits of slices. Idle workers take some of them.
func (l *learner) each(slices []slice, seed uint64) []*node {
	out := make([]*node, len(slices))
	var wg sync.WaitGroup
	for i, s := range slices {
		below := seed*0x9e3779b97f4a7c15 + uint64(i) + 1
		if i+1 < len(slices) {
			select {
			case <-l.idle:
				wg.Go(func() {
					out[i] = l.grow(s, below)
					l.idle <- struct{}{}
				})
				continue
			default:
			}
		}
		out[i] = l.grow(s, below)
	}
	wg.Wait()
	return out
}

// dependence returns the test that Options ask for, over places of a slice.
func (l *learner) dependence(s slice, rng *rand.Rand) func(i, j int) bool {
	if l.opts.Columns == RDC {
		return rdcTest(s, l.opts.Threshold, rng)
	}
	return gTest(newPairCounter(s), l.opts.Threshold)
}

// cluster parts the rows of a slice as Options ask.
func (l *learner) cluster(s slice, rng *rand.Rand) [][]int32 {
	if l.opts.Rows == KMeans {
		return clusterKMeans(s, l.opts.Clusters, rng)
	}
	return clusterEM(s, l.opts.Clusters, rng)
}

// leaf returns the distribution of one variable.
func (l *learner) leaf(s slice, v int) *node {
	return &node{kind: leafNode, v: v, params: l.fit.rows(v, s.rows)}
}

// uncut returns the model of a slice that is not cut further.
func (l *learner) uncut(s slice) *node {
	if l.opts.Leaf == ChowLiu {
		return &node{kind: treeNode, tree: learnTree(s, newPairCounter(s), nil, l.fit)}
	}
	n := &node{kind: productNode}
	for _, v := range s.vars {
		n.children = append(n.children, l.leaf(s, v))
	}
	return n
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
