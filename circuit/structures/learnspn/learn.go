package learnspn

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
)

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
	case l.ctx.Err() != nil:
		return &node{kind: productNode} // a tree over many columns would take long
	case len(s.vars) == 1:
		return l.leaf(s, s.vars[0])
	case len(s.rows) < l.opts.MinRows:
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

// bag returns the mixture of Components circuits, each of which is grown from a bootstrap sample:
// as many rows as the slice has, drawn from it with replacement. Their weights are equal.
func (l *learner) bag(s slice) *node {
	n := &node{kind: sumNode}
	samples := make([]slice, l.opts.Components)
	for i := range samples {
		rng := rand.New(rand.NewPCG(l.opts.Seed, uint64(i)))
		rows := make([]int32, len(s.rows))
		for k := range rows {
			rows[k] = s.rows[rng.IntN(len(s.rows))]
		}
		slices.Sort(rows)
		samples[i] = s.of(rows)
		n.weights = append(n.weights, 1/float64(len(samples)))
	}
	n.children = l.each(samples, 1)
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
