package reference

import (
	"github.com/pce-engine/pce/circuit"
)

// Step says how far an EM step goes: 1 replaces the parameters (full batch),
// less blends them (mini-batch). Pseudocount is added to every unit.
type Step struct {
	Size        float64
	Pseudocount float64
}

// EM returns the parameters after one step. For the weights of a sum unit, with
// F their flows and n how many are positive,
//
//	θ' = (1-size)·θ + size·(F + pseudocount/n) / (ΣF + pseudocount)
//
// A weight of exactly 0 is structural and stays 0; a positive one does not go
// below circuit.MinProb. A unit without flow and pseudocount keeps its weights.
// Inputs follow Leaf.MStep. Flows of tied nodes are pooled.
func (ev *Evaluator) EM(f *Flows, s Step) Params {
	next := ev.p.Clone()
	for i := range ev.g.Nodes {
		n, id := &ev.g.Nodes[i], circuit.NodeID(i)
		if !ev.g.OwnsParams(id) {
			continue
		}
		switch n.Kind {
		case circuit.Input:
			stats := n.Leaf.NumStats()
			for u := range n.Units {
				n.Leaf.MStep(leafParams(ev.g, next, id, u), f.Stats[i][u*stats:(u+1)*stats], f.Weights[i][u], s.Pseudocount, s.Size)
			}
		case circuit.Sum:
			for u := range n.Units {
				updateWeights(next[i], f.Params[i], ev.edges[i][u], s)
			}
		}
	}
	return next
}

// updateWeights updates the weights of one unit of a sum by a step of EM: theta ←
// (1-size)·theta + size·(flow + its part of the pseudocount)/total. Structural zeros stay 0,
// and no other weight falls below MinProb. A unit without flow and pseudocount keeps its
// weights.
func updateWeights(theta, flow []float64, edges []edge, s Step) {
	positive, total := 0.0, s.Pseudocount
	for _, e := range edges {
		if theta[e.param] > 0 {
			positive++
			total += flow[e.param]
		}
	}
	if !(total > 0) {
		return
	}
	mass := 0.0
	for _, e := range edges {
		if old := theta[e.param]; old > 0 {
			fresh := (flow[e.param] + s.Pseudocount/positive) / total
			theta[e.param] = max((1-s.Size)*old+s.Size*fresh, circuit.MinProb)
			mass += theta[e.param]
		}
	}
	for _, e := range edges {
		if theta[e.param] > 0 {
			theta[e.param] = max(theta[e.param]/mass, circuit.MinProb)
		}
	}
}
