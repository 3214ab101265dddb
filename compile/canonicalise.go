package compile

import (
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// node is a vector in the making. Its operands are the products in front of a
// sum, or the one product that a stored vector keeps.
type node struct {
	id       circuit.NodeID
	kind     layers.VectorKind
	units    int
	operands [][]int32 // factors of each operand: indices into state.nodes
	depth    int32
}

// maxShared is the number of factors up to which a product that several nodes
// use is multiplied again for each of them instead of being stored.
const maxShared = 4

func validate(s *state) (string, error) {
	if err := s.opts.validate(); err != nil {
		return "", err
	}
	if err := circuit.Validate(s.graph); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d nodes, %d variables", len(s.graph.Nodes), s.graph.NumVars), nil
}

// canonicalise drops what the root cannot reach, flattens products of products
// and reads one-child products as their child. What remains are inputs, sums,
// and those products that are used more than once and have many factors.
func canonicalise(s *state) (string, error) {
	g := s.graph
	uses := make([]int32, len(g.Nodes))
	uses[g.Root] = 1
	for id := int(g.Root); id >= 0; id-- {
		if uses[id] > 0 {
			for _, c := range g.Nodes[id].Children {
				uses[c]++
			}
		}
	}
	s.index = make([]int32, len(g.Nodes))
	flat := make([][]int32, len(g.Nodes)) // factors of products that are not stored
	factors := func(id circuit.NodeID) []int32 {
		if v := s.index[id]; v >= 0 {
			return []int32{v}
		}
		return flat[id]
	}
	dropped, flattened, stored := 0, 0, 0
	for id := range g.Nodes {
		s.index[id] = -1
		n := &g.Nodes[id]
		isRoot := circuit.NodeID(id) == g.Root
		if uses[id] == 0 {
			dropped++
			continue
		}
		v := node{id: circuit.NodeID(id), units: n.Units}
		switch n.Kind {
		case circuit.Input:
			v.kind = layers.InputVector
		case circuit.Sum:
			v.kind = layers.SumVector
			for _, c := range n.Children {
				v.operands = append(v.operands, factors(c))
			}
		case circuit.Product:
			var fs []int32
			if len(n.Children) == 1 {
				fs = factors(n.Children[0])
			} else {
				for _, c := range n.Children {
					fs = append(fs, factors(c)...)
				}
			}
			if !isRoot && (uses[id] == 1 || len(fs) <= maxShared) {
				flat[id] = fs
				flattened++
				continue
			}
			v.kind = layers.StoredVector
			v.operands = [][]int32{fs}
			stored++
		}
		s.index[id] = int32(len(s.nodes))
		s.nodes = append(s.nodes, v)
	}
	if root := s.index[g.Root]; s.nodes[root].kind == layers.InputVector {
		s.nodes = append(s.nodes, node{id: circuit.None, kind: layers.StoredVector, units: 1, operands: [][]int32{{root}}})
	}
	return fmt.Sprintf("%d vectors, %d products formed in front of their sums, %d stored, %d nodes out of reach",
		len(s.nodes), flattened, stored, dropped), nil
}

// levelize gives each vector its depth: one more than its deepest operand. A
// product reads vectors of any lower depth, so nothing is passed through.
func levelize(s *state) (string, error) {
	deepest := int32(0)
	for i := range s.nodes {
		n := &s.nodes[i]
		for _, op := range n.operands {
			for _, f := range op {
				n.depth = max(n.depth, s.nodes[f].depth+1)
			}
		}
		deepest = max(deepest, n.depth)
	}
	return fmt.Sprintf("%d layers above the inputs", deepest), nil
}
