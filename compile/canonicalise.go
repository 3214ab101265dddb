package compile

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// node is a vector in the making. Its operands, lo to hi-1, are the products in
// front of a sum, or the one product that a stored vector keeps.
type node struct {
	id     circuit.NodeID // None for what no node of the graph is
	kind   layers.VectorKind
	units  int
	beside bool // evidence about the values of the input before it
	lo, hi int32
	depth  int32
}

// operand returns the factors of operand k.
func (s *state) operand(k int32) []int32 { return s.factors[s.cuts[k]:s.cuts[k+1]] }

// maxShared is the number of factors up to which a product that several nodes
// use is multiplied again for each of them instead of being stored.
const maxShared = 4

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
	f := flattener{state: s, sizes: make([]int32, len(g.Nodes)), short: make(map[circuit.NodeID][]int32)}
	dropped, flattened, stored := 0, 0, 0
	for i := range g.Nodes {
		id, n := circuit.NodeID(i), &g.Nodes[i]
		s.index[i] = -1
		if uses[i] == 0 {
			dropped++
			continue
		}
		v := node{id: id, units: n.Units, lo: int32(len(s.cuts) - 1)}
		f.sizes[i] = 1
		switch n.Kind {
		case circuit.Input:
			v.kind = layers.InputVector
		case circuit.Sum:
			v.kind = layers.SumVector
			for _, c := range n.Children {
				if err := f.operand(c); err != nil {
					return "", err
				}
			}
		case circuit.Product:
			if size := f.size(id); id != g.Root && (uses[i] == 1 || size <= maxShared) {
				f.sizes[i] = size
				if uses[i] > 1 {
					f.short[id] = f.flatten(nil, id)
				}
				flattened++
				continue
			}
			v.kind = layers.StoredVector
			if err := f.operand(id); err != nil {
				return "", err
			}
			stored++
		}
		v.hi = int32(len(s.cuts) - 1)
		s.index[i] = int32(len(s.nodes))
		s.nodes = append(s.nodes, v)
		if s.hasBeside(s.index[i]) {
			s.nodes = append(s.nodes, node{id: circuit.None, kind: layers.InputVector, units: n.Units, lo: v.hi, hi: v.hi, beside: true})
		}
	}
	if root := s.index[g.Root]; s.nodes[root].kind == layers.InputVector {
		k := int32(len(s.cuts) - 1)
		s.factors = s.appendFactor(s.factors, root)
		s.cuts = append(s.cuts, int32(len(s.factors)))
		s.nodes = append(s.nodes, node{id: circuit.None, kind: layers.StoredVector, units: 1, lo: k, hi: k + 1})
	}
	return fmt.Sprintf("%d vectors, %d products formed in front of their sums, %d stored, %d nodes out of reach",
		len(s.nodes), flattened, stored, dropped), nil
}

// flattener lists the factors of products. A product that is used once is
// walked once, by the operand that it ends up in, so that a long chain of
// products takes time that is linear in its length; what is used more often is
// short and kept as a list.
type flattener struct {
	*state
	sizes []int32                    // by node: its factors as part of an operand, 1 for a vector
	short map[circuit.NodeID][]int32 // factors of products that are used more than once and are not stored
	stack []circuit.NodeID
}

// size returns the number of factors of a product.
func (f *flattener) size(id circuit.NodeID) int32 {
	n := int64(0)
	for _, c := range f.graph.Nodes[id].Children {
		n += int64(f.sizes[c])
	}
	return int32(min(n, math.MaxInt32))
}

// operand adds the factors of a node as the next operand.
func (f *flattener) operand(id circuit.NodeID) error {
	f.factors = f.flatten(f.factors, id)
	if len(f.factors) > math.MaxInt32 {
		return fmt.Errorf("%w: the products multiply more than 2^31 factors; use a smaller circuit", circuit.ErrGraph)
	}
	f.cuts = append(f.cuts, int32(len(f.factors)))
	return nil
}

// flatten appends the factors of a node in the order of the products' children.
func (f *flattener) flatten(to []int32, id circuit.NodeID) []int32 {
	f.stack = append(f.stack[:0], id)
	for len(f.stack) > 0 {
		id := f.stack[len(f.stack)-1]
		f.stack = f.stack[:len(f.stack)-1]
		if v := f.index[id]; v >= 0 {
			to = f.appendFactor(to, v)
		} else if list, ok := f.short[id]; ok {
			to = append(to, list...)
		} else {
			for _, c := range slices.Backward(f.graph.Nodes[id].Children) {
				f.stack = append(f.stack, c)
			}
		}
	}
	return to
}
