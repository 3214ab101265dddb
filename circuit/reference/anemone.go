package reference

import (
	"github.com/pce-engine/pce/circuit"
)

// Anemone is the state of a run under the rule of that name: EM on flows that
// are averaged over updates, which blends the counts that a model would make of
// itself with those of the rows.
type Anemone struct {
	Momentum float64 // share of the averages that an update keeps, below 1
	averages *Flows
	weight   float64
}

// Step returns the parameters after an update by the flows f of that many rows.
// With F the averaged flows, divided by the weight that they have in the
// averages, V the visits of a unit without evidence and n the number of its
// positive weights,
//
//	G = (size/rows)·F + (1-size)·V·θ
//	θ' = (G + pseudocount/n) / (ΣG + pseudocount)
//
// Inputs follow Leaf.MStep, whose own blend gives the same: a step by the share
// that rows and pseudocount have in ΣG + pseudocount.
func (a *Anemone) Step(ev *Evaluator, f *Flows, rows int, s Step) Params {
	if a.averages == nil {
		a.averages = NewFlows(ev.g)
	}
	a.weight = a.Momentum*a.weight + 1 - a.Momentum
	a.blend(a.averages.Params, f.Params)
	a.blend(a.averages.Stats, f.Stats)
	a.blend(a.averages.Weights, f.Weights)
	scale := s.Size / (float64(rows) * a.weight)
	visits := ev.Visits()
	next := ev.p.Clone()
	for i := range ev.g.Nodes {
		n, id := &ev.g.Nodes[i], circuit.NodeID(i)
		if !ev.g.OwnsParams(id) {
			continue
		}
		for u := range n.Units {
			old := (1 - s.Size) * visits[i][u]
			if n.Kind == circuit.Sum {
				anemoneWeights(next[i], a.averages.Params[i], ev.edges[i][u], scale, old, s.Pseudocount)
				continue
			}
			sum := make([]float64, n.Leaf.NumStats())
			for k := range sum {
				sum[k] = scale * a.averages.Stats[i][u*len(sum)+k]
			}
			weight := scale * a.averages.Weights[i][u]
			if fresh := weight + s.Pseudocount; fresh > 0 {
				n.Leaf.MStep(leafParams(ev.g, next, id, u), sum, weight, s.Pseudocount, fresh/(fresh+old))
			}
		}
	}
	return next
}

func (a *Anemone) blend(averages, flows [][]float64) {
	for i := range averages {
		for k := range averages[i] {
			averages[i][k] = a.Momentum*averages[i][k] + (1-a.Momentum)*flows[i][k]
		}
	}
}

// anemoneWeights updates the weights of one unit of a sum by Anemone: theta becomes
// proportional to scale·averages + old·theta, with the pseudocount spread over the positive
// weights. Structural zeros stay 0, and no other weight falls below MinProb. A unit without
// counts and pseudocount keeps its weights.
func anemoneWeights(theta, averages []float64, edges []edge, scale, old, pseudocount float64) {
	positive, total := 0.0, pseudocount
	for _, e := range edges {
		if theta[e.param] > 0 {
			positive++
			total += scale*averages[e.param] + old*theta[e.param]
		}
	}
	if !(total > 0) {
		return
	}
	mass := 0.0
	for _, e := range edges {
		if t := theta[e.param]; t > 0 {
			g := scale*averages[e.param] + old*t
			theta[e.param] = max((g+pseudocount/positive)/total, circuit.MinProb)
			mass += theta[e.param]
		}
	}
	for _, e := range edges {
		if theta[e.param] > 0 {
			theta[e.param] = max(theta[e.param]/mass, circuit.MinProb)
		}
	}
}

// Visits returns the expected number of visits of every unit in a row without
// evidence, [node][unit]; those of tied nodes are pooled at their owner, and 0
// at the others.
func (ev *Evaluator) Visits() [][]float64 {
	own := make([][]float64, len(ev.g.Nodes))
	parents := make([][]circuit.NodeID, len(ev.g.Nodes)) // one for each edge of products, one for each sum
	for i := range ev.g.Nodes {
		if n := &ev.g.Nodes[i]; i <= int(ev.g.Root) {
			for _, c := range n.Children {
				parents[c] = append(parents[c], circuit.NodeID(i))
			}
		}
	}
	var visit func(id circuit.NodeID) []float64
	visit = func(id circuit.NodeID) []float64 {
		if own[id] != nil {
			return own[id]
		}
		v := make([]float64, ev.g.Nodes[id].Units)
		if id == ev.g.Root {
			v[0] = 1
		}
		seen := map[circuit.NodeID]bool{}
		for _, parent := range parents[id] {
			above := visit(parent)
			if ev.g.Nodes[parent].Kind == circuit.Product {
				for u := range v {
					v[u] += above[u]
				}
				continue
			}
			if seen[parent] { // its edges name the child, however often it is there
				continue
			}
			seen[parent] = true
			theta := ev.p[ev.g.Owner(parent)]
			for u, edges := range ev.edges[parent] {
				for _, e := range edges {
					if e.child == id {
						v[e.unit] += above[u] * theta[e.param]
					}
				}
			}
		}
		own[id] = v
		return v
	}
	pooled := make([][]float64, len(own))
	for i := range pooled {
		pooled[i] = make([]float64, ev.g.Nodes[i].Units)
	}
	for i := range own {
		for u, x := range visit(circuit.NodeID(i)) {
			pooled[ev.g.Owner(circuit.NodeID(i))][u] += x
		}
	}
	return pooled
}
