package resize

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// maxNoise bounds GrowOptions.Noise.
const maxNoise = 10

// GrowOptions say how the copies of a circuit's units differ.
type GrowOptions struct {
	// Noise is the standard deviation of the normal numbers whose exponentials the weights are multiplied by, 0
	// to 10. Without noise all copies learn the same.
	Noise float64
	Seed  uint64
}

// Check returns an error that matches ErrOptions if the options cannot work.
func (o GrowOptions) Check() error {
	if !(o.Noise >= 0 && o.Noise <= maxNoise) {
		return fmt.Errorf("%w: noise of %v; give 0 to %d", ErrOptions, o.Noise, maxNoise)
	}
	return nil
}

// Grow returns the circuit with every unit twice, but for the root and nodes that have to have as many units as it.
// A weight is there for both copies of its unit, and divided between both copies of the one it leads to, so
// without noise the distribution is the same. Leaves are copied as they are. Parameters are read a node at a
// time, and again by the result.
func Grow(g *circuit.Graph, params circuit.ParamFunc64, o GrowOptions) (*Circuit, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	gr := &grower{g: g, params: params, o: o, times: make([]int, len(g.Nodes))}
	sets := alike(g)
	for i, set := range sets {
		gr.times[i] = 2
		if set == sets[g.Root] {
			gr.times[i] = 1
		}
	}
	gr.rebuild()
	if err := circuit.Validate(gr.graph); err != nil {
		return nil, err
	}
	return &Circuit{Graph: gr.graph, Params: gr.read, Flow: 1}, nil
}

// grower is the state of Grow.
type grower struct {
	g      *circuit.Graph
	params circuit.ParamFunc64
	o      GrowOptions
	times  []int          // how often each unit of a node is there
	graph  *circuit.Graph // with the same nodes
}

// rebuild makes the larger graph.
func (gr *grower) rebuild() {
	gr.graph = &circuit.Graph{NumVars: gr.g.NumVars, Root: gr.g.Root, Nodes: slices.Clone(gr.g.Nodes)}
	for i := range gr.graph.Nodes {
		n := &gr.graph.Nodes[i]
		n.Units *= gr.times[i]
		if n.Edges == nil {
			continue
		}
		if to := n.Tie.Node(); to != circuit.None {
			n.Edges = gr.graph.Nodes[to].Edges
			continue
		}
		w := gr.grid(circuit.NodeID(i))
		n.Edges = w.edges(n.Units/w.rows, has(&gr.g.Nodes[i]))
	}
}

// grid returns the weights of a grown sum, by their old places.
func (gr *grower) grid(id circuit.NodeID) grid {
	n := &gr.g.Nodes[id]
	old := gridOf(gr.g, id, 0)
	child := childOf(gr.g, n, &old)
	firsts := make([]int, len(n.Children))
	w := grid{rows: old.rows, cols: old.cols}
	for k, c := range n.Children {
		firsts[k] = w.columns
		w.columns += gr.times[c] * gr.g.Nodes[c].Units / w.cols
	}
	for _, b := range old.blocks {
		k, unit := child(b.col)
		c := n.Children[k]
		for i := range gr.times[id] {
			for j := range gr.times[c] {
				copied := b
				copied.row += int32(i * n.Units / w.rows)
				copied.col = int32(firsts[k] + (j*gr.g.Nodes[c].Units+unit)/w.cols)
				w.blocks = append(w.blocks, copied)
			}
		}
	}
	slices.SortFunc(w.blocks, inOrder)
	return w
}

// read fills dst with the parameters of a node of the larger graph.
func (gr *grower) read(id circuit.NodeID, dst []float64) error {
	n := &gr.g.Nodes[id]
	src := make([]float64, gr.g.NumParams(id))
	if err := gr.params(gr.g.Owner(id), src); err != nil {
		return err
	}
	if n.Kind == circuit.Input {
		for i := range gr.times[id] {
			copy(dst[i*len(src):], src)
		}
		return nil
	}
	w := gr.grid(id)
	copies := make([]float64, w.columns) // of the unit that a column of blocks leads to
	at := 0
	for _, c := range n.Children {
		for range gr.times[c] * gr.g.Nodes[c].Units / w.cols {
			copies[at] = float64(gr.times[c])
			at++
		}
	}
	rng := rand.New(rand.NewPCG(gr.o.Seed, uint64(gr.g.Owner(id))))
	w.fill(&gr.graph.Nodes[id], has(n), dst, func(b block, at int) float64 {
		return src[at] / copies[b.col] * math.Exp(gr.o.Noise*rng.NormFloat64())
	})
	return nil
}
