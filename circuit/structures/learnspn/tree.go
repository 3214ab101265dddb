package learnspn

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/pce-engine/pce/circuit/structures"
)

// tree is a Chow-Liu tree: each variable depends on its parent's code.
type tree struct {
	vars   []int
	parent []int  // place in vars, -1 for a root; those with children have a finite domain
	order  []int  // places, parents first
	inner  []bool // have children
	// table [codes of the parent, or 1][codes] holds the probabilities of variables with
	// children, params [codes of the parent, or 1] the leaf parameters of the others.
	table  [][][]float64
	params [][][]float64
	log    [][][]float64 // [..][codes] of both, where the domain is finite
}

// maxTreeCodes is the most codes of a variable that others depend on in a tree: each code
// needs rows to learn from.
const maxTreeCodes = 8

// joints gives the weights of the bins of pairs of variables of a slice, by place, as
// pairCounter.joint does.
type joints interface {
	joint(i, j int, dst []float64) []float64
}

// learnTree returns the Chow-Liu tree over the variables of a slice. Variables of few codes
// form the tree of largest mutual information, that of a pair counted by the share of rows in which both are
// observed, since a few rows seem to inform most. Each other one depends on the variable of the
// tree that tells most of it, if the G-test finds the two dependent, and else on none.
// weight holds the weights of the rows; nil: all 1.
func learnTree(s slice, w joints, weight []float64, f *leafFitter) *tree {
	t := &tree{vars: s.vars}
	n := len(s.vars)
	var few, many []int
	for i, v := range s.vars {
		if d := s.all[v].domain; d > 0 && d <= maxTreeCodes {
			few = append(few, i)
		} else {
			many = append(many, i)
		}
	}
	t.parent = make([]int, n)
	for i := range t.parent {
		t.parent[i] = -1
	}
	buf := make([]float64, maxBins*maxBins)
	share := s.together(few, weight)
	smooth := func(i, j int) float64 {
		a, b := s.all[s.vars[i]].count, s.all[s.vars[j]].count
		joint := w.joint(i, j, buf)
		for k := range joint {
			joint[k] += f.smoothing / float64(len(joint))
		}
		nats, _, _ := information(joint, a, b)
		return nats * share(i, j)
	}
	if len(few) > 0 {
		edges := structures.SpanningTree(len(few), func(i, j int) float64 { return smooth(few[i], few[j]) })
		shape, err := structures.NewTree(len(few), edges)
		if err != nil {
			panic("BUG: learnspn: a spanning tree that is none: " + err.Error())
		}
		for i, p := range shape.Parent {
			if p >= 0 {
				t.parent[few[i]] = few[p]
			}
		}
	}
	for _, i := range many {
		best, most := -1, 0.0
		for _, j := range few {
			a, b := s.all[s.vars[j]].count, s.all[s.vars[i]].count
			nats, total, freedom := information(w.joint(j, i, buf), a, b)
			if gain := nats*total - gTestThreshold*float64(freedom); freedom > 0 && gain > most {
				best, most = j, gain
			}
		}
		t.parent[i] = best
	}
	t.arrange()
	t.fit(s, weight, f)
	return t
}

// together returns the share of the rows of a slice in which the variables at two of some places are observed: exactly 1 where no
// cell of theirs is missing. weight holds the weights of the rows; nil: all 1.
func (s slice) together(places []int, weight []float64) func(i, j int) float64 {
	total := float64(len(s.rows))
	if weight != nil {
		total = floats.Sum(weight)
	}
	seen := map[int]rowSet{} // of variables with missing cells
	for _, i := range places {
		if x := &s.all[s.vars[i]]; x.gaps {
			seen[i] = x.observed(s.rows)
		}
	}
	return func(i, j int) float64 {
		a, b := seen[i], seen[j]
		switch {
		case a == nil && b == nil:
			return 1
		case a == nil:
			a = b
		case b == nil:
			b = a
		}
		if weight == nil {
			return float64(a.common(b)) / total
		}
		both := 0.0
		for k, w := range weight {
			if a.has(k) && b.has(k) {
				both += w
			}
		}
		return both / max(total, math.SmallestNonzeroFloat64) // of no weight, 0
	}
}

// fit sets the distributions of a tree to those of the rows of a slice. weight holds the
// weights of the rows; nil: all 1. What is added to a table of pairs is Smoothing rows in all,
// so each state of the parent gets its share of them.
func (t *tree) fit(s slice, weight []float64, f *leafFitter) {
	n := len(t.vars)
	t.table, t.params, t.log = make([][][]float64, n), make([][][]float64, n), make([][][]float64, n)
	for i, v := range t.vars {
		x := &s.all[v]
		states, state := 1, []int32(nil)
		if p := t.parent[i]; p >= 0 {
			states, state = s.all[t.vars[p]].domain, s.all[t.vars[p]].codes
		}
		share := f.smoothing / float64(states)
		evidence := newEvidence(x, states)
		for k, r := range s.rows {
			at, w := int32(0), 1.0
			if state != nil {
				at = state[r]
			}
			if weight != nil {
				w = weight[k]
			}
			if at != missing {
				evidence.add(at, r, w)
			}
		}
		for at := range states {
			var log []float64
			if t.inner[i] {
				row := shares(evidence.counts[at], share)
				t.table[i] = append(t.table[i], row)
				for _, q := range row {
					log = append(log, math.Log(q))
				}
			} else {
				q := f.maximise(v, evidence.sums(at), evidence.weight[at], share)
				t.params[i] = append(t.params[i], q)
				if x.domain > 0 {
					log = logTable(x.leaf, q)
				}
			}
			t.log[i] = append(t.log[i], log)
		}
	}
}

// shares returns the probabilities of codes of some weights, to which rows are added that
// are spread evenly. They are rounded as the weights of a graph are.
func shares(counts []float64, added float64) []float64 {
	total := added
	for _, n := range counts {
		total += n
	}
	out := make([]float64, len(counts))
	for c, n := range counts {
		out[c] = float64(float32((n + added/float64(len(counts))) / total))
	}
	return out
}

// arrange finds which variables have children, and an order of parents before children.
func (t *tree) arrange() {
	t.inner, t.order = make([]bool, len(t.vars)), t.order[:0]
	children := make([][]int, len(t.vars))
	for i, p := range t.parent {
		if p >= 0 {
			t.inner[p] = true
			children[p] = append(children[p], i)
		} else {
			t.order = append(t.order, i)
		}
	}
	for at := 0; at < len(t.order); at++ {
		t.order = append(t.order, children[t.order[at]]...)
	}
}

// logLik adds the log-likelihoods of rows to out. A missing cell of a variable with children
// is summed out.
func (t *tree) logLik(all []variable, rows []int32, out []float64) {
	messages := make([][]float64, len(t.vars)) // log, of each state of the parent
	for i := range t.vars {
		messages[i] = make([]float64, len(t.log[i]))
	}
	below := make([][]float64, len(t.vars)) // log, of the children for each code
	for i, v := range t.vars {
		if t.inner[i] {
			below[i] = make([]float64, all[v].domain)
		}
	}
	for k, r := range rows {
		for i := range below {
			clear(below[i])
		}
		for at := len(t.order) - 1; at >= 0; at-- {
			i := t.order[at]
			t.message(&all[t.vars[i]], r, i, below[i], messages[i])
			if p := t.parent[i]; p >= 0 {
				for c, m := range messages[i] {
					below[p][c] += m
				}
			} else {
				out[k] += messages[i][0]
			}
		}
	}
}

// message writes the log probability of a row's cells of variable i and all below it, for
// each state of its parent. below holds those of its children for each of its codes.
func (t *tree) message(x *variable, r int32, i int, below, to []float64) {
	value, observed := x.at(r)
	for state := range to {
		switch {
		case !t.inner[i] && !observed:
			to[state] = 0
		case !t.inner[i] && x.domain == 0:
			to[state] = x.leaf.LogProb(t.params[i][state], value)
		case !t.inner[i]:
			to[state] = t.log[i][state][x.codes[r]]
		case observed:
			to[state] = t.log[i][state][x.codes[r]] + below[x.codes[r]]
		default:
			to[state] = logSumExp(t.log[i][state], below)
		}
	}
}

// logSumExp returns the log of Σ exp(a + b).
func logSumExp(a, b []float64) float64 {
	most := math.Inf(-1)
	for i := range a {
		most = max(most, a[i]+b[i])
	}
	if math.IsInf(most, -1) {
		return most
	}
	sum := 0.0
	for i := range a {
		sum += math.Exp(a[i] + b[i] - most)
	}
	return most + math.Log(sum)
}
