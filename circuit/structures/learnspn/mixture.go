package learnspn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/circuit/structures"
)

// mixtureRounds bounds the rounds of EM of a mixture of trees.
const mixtureRounds = 30

// patience is how many mixtures of more and more trees may be no better than one of fewer
// before no more are tried.
const patience = 4

// weightedPairs counts pairs of bins of a slice by weights of its rows.
type weightedPairs struct {
	s      slice
	weight []float64 // [rows]
}

func (w weightedPairs) joint(i, j int, dst []float64) []float64 {
	a, b := &w.s.all[w.s.vars[i]], &w.s.all[w.s.vars[j]]
	dst = dst[:a.count*b.count]
	clear(dst)
	for k, r := range w.s.rows {
		if c, d := a.bins[r], b.bins[r]; c != missing && d != missing {
			dst[int(c)*b.count+int(d)] += w.weight[k]
		}
	}
	return dst
}

// learnMixture returns the mixture of Chow-Liu trees that MaxMultipliers allows: of one tree,
// two, and so on, the likeliest on the rows of valid or, without any, that of the most
// trees. A tree over d columns takes d - 1 multipliers, and a mixture one more for each tree.
func learnMixture(ctx context.Context, all, valid []variable, opts *Options) (*node, error) {
	d, most := len(all), opts.trees()
	if opts.MaxMultipliers < d-1 {
		return nil, fmt.Errorf("%w: learnspn with max_multipliers %d over %d columns, whose product alone takes %d; allow as many, or drop columns",
			structures.ErrOptions, opts.MaxMultipliers, d, d-1)
	}
	m := &treeMixture{s: whole(all), fit: newLeafFitter(all, opts.Smoothing), valid: valid}
	best, bestScore := m.single(), math.Inf(-1)
	if valid != nil {
		bestScore = m.score(best)
	}
	k := 2
	if valid == nil {
		k = max(k, most)
	}
	for worse := 0; k <= most && worse < patience && ctx.Err() == nil; k = min(k+max(1, k/4), max(most, k+1)) {
		n, score := m.learn(ctx, k, rand.New(rand.NewPCG(opts.Seed, uint64(k))))
		if worse++; valid == nil || score > bestScore {
			best, bestScore, worse = n, score, 0
		}
	}
	return best, nil
}

// treeMixture learns mixtures of trees over all rows.
type treeMixture struct {
	s     slice
	fit   *leafFitter
	valid []variable // nil: none
}

// single returns the circuit of one tree.
func (m *treeMixture) single() *node {
	return &node{kind: treeNode, tree: learnTree(m.s, newPairCounter(m.s), nil, m.fit)}
}

// learn does EM of a mixture of k trees from a clustering of the rows, and returns the
// mixture of the round that was the likeliest on the rows of valid, or else on those that it
// learns from. The trees' shapes are learned in rounds 0, 1, 2, 4, 8 and so on: a shape costs
// far more than its tables, and soon stays what it is.
func (m *treeMixture) learn(ctx context.Context, k int, rng *rand.Rand) (*node, float64) {
	n := &node{kind: sumNode}
	clusters := clusterEM(m.s, k, rng)
	k = len(clusters) // which may be fewer: the weights of a row sum to 1
	weight := make([][]float64, 0, k)
	for _, rows := range clusters {
		w := make([]float64, len(m.s.rows))
		for i := range w {
			w[i] = 0.1 / float64(k)
		}
		for _, r := range rows {
			w[r] += 0.9
		}
		weight = append(weight, w)
	}
	n.children, n.weights = make([]*node, k), make([]float64, k)
	for c := range n.children {
		n.children[c] = &node{kind: treeNode}
	}
	var best *node
	bestScore, before := math.Inf(-1), math.Inf(-1)
	for round := range mixtureRounds {
		for c, child := range n.children {
			if round&(round-1) == 0 {
				child.tree = learnTree(m.s, weightedPairs{m.s, weight[c]}, weight[c], m.fit)
			} else {
				t := *child.tree // the best round keeps its own
				t.fit(m.s, weight[c], m.fit)
				child.tree = &t
			}
			sum := 0.0
			for _, w := range weight[c] {
				sum += w
			}
			n.weights[c] = float64(float32(sum / float64(len(m.s.rows))))
		}
		train := m.expect(n, weight)
		score := train
		if m.valid != nil {
			score = m.score(n)
		}
		if score > bestScore {
			best, bestScore = n.copyMixture(), score
		}
		if ctx.Err() != nil || train-before < enoughGain*math.Abs(train)/10 {
			break
		}
		before = train
	}
	return best, bestScore
}

// copyMixture copies a mixture of trees as far as later rounds change it.
func (n *node) copyMixture() *node {
	c := &node{kind: n.kind, weights: slices.Clone(n.weights)}
	for _, child := range n.children {
		same := *child
		c.children = append(c.children, &same)
	}
	return c
}

// expect sets the weights of the rows for each tree to the probability that the tree has made
// the row, and returns the mean log-likelihood of the rows.
func (m *treeMixture) expect(n *node, weight [][]float64) float64 {
	logWeight := make([]float64, len(n.children))
	for c, child := range n.children {
		weight[c] = child.logLik(m.s.all, m.s.rows)
		logWeight[c] = math.Log(n.weights[c])
	}
	total, part := 0.0, make([]float64, len(weight))
	for i := range m.s.rows {
		for c := range weight {
			part[c] = weight[c][i]
		}
		ll := logSumExp(part, logWeight)
		for c := range weight {
			weight[c][i] = math.Exp(part[c] + logWeight[c] - ll)
		}
		total += ll
	}
	return total / float64(len(m.s.rows))
}

// score returns the mean log-likelihood of the rows of valid.
func (m *treeMixture) score(n *node) float64 { return mean(n.logLik(m.valid, whole(m.valid).rows)) }

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
