package native

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/internal/safetensors"
)

// structure is a graph as the integer tensors of the native file, which the
// package documentation lists.
type structure struct {
	numVars int
	root    circuit.NodeID
	leaves  []circuit.LeafSpec

	childStart []int64
	kind       []uint8
	units      []int32
	variable   []int32
	leaf       []int32
	tiedTo     []int32
	children   []int32

	sparseNode []int32
	blockSize  []int64 // [S, 2]
	pairStart  []int64
	pairs      []int32 // [B, 2]
	maskStart  []int64
	mask       []uint64
}

// columns lists the tensors in the order of the file: wide types first, so that
// each starts on a multiple of its element size.
func (s *structure) columns() []column {
	return []column{
		typed[int64]{"node.child_start", 1, &s.childStart},
		typed[int64]{"sparse.block_size", 2, &s.blockSize},
		typed[int64]{"sparse.pair_start", 1, &s.pairStart},
		typed[int64]{"sparse.mask_start", 1, &s.maskStart},
		typed[uint64]{"sparse.mask", 1, &s.mask},
		typed[int32]{unitTensor, 1, &s.units},
		typed[int32]{"node.variable", 1, &s.variable},
		typed[int32]{"node.leaf", 1, &s.leaf},
		typed[int32]{"node.tied_to", 1, &s.tiedTo},
		typed[int32]{"children", 1, &s.children},
		typed[int32]{"sparse.node", 1, &s.sparseNode},
		typed[int32]{"sparse.pair", 2, &s.pairs},
		typed[uint8]{kindTensor, 1, &s.kind},
	}
}

// flatten turns a valid graph into tensors.
func flatten(g *circuit.Graph) (*structure, error) {
	s := &structure{
		numVars:    g.NumVars,
		root:       g.Root,
		childStart: []int64{0},
		pairStart:  []int64{0},
		maskStart:  []int64{0},
	}
	known := map[string]int32{} // JSON of a leaf spec to its entry
	var last circuit.Leaf       // neighbours often share their leaf
	lastEntry := int32(-1)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		entry, variable := int32(-1), int32(-1)
		if n.Kind == circuit.Input {
			if last == nil || !circuit.SameLeaf(last, n.Leaf) {
				spec, err := circuit.SpecOf(n.Leaf)
				if err != nil {
					return nil, fmt.Errorf("%w: input node %d: %w", format.ErrModel, i, err)
				}
				key, err := json.Marshal(spec)
				if err != nil {
					return nil, fmt.Errorf("%w: input node %d: %w", format.ErrModel, i, err)
				}
				k, ok := known[string(key)]
				if !ok {
					k = int32(len(s.leaves))
					known[string(key)] = k
					s.leaves = append(s.leaves, spec)
				}
				last, lastEntry = n.Leaf, k
			}
			entry, variable = lastEntry, int32(n.Var)
		}
		s.kind = append(s.kind, uint8(n.Kind))
		s.units = append(s.units, int32(n.Units))
		s.variable = append(s.variable, variable)
		s.leaf = append(s.leaf, entry)
		s.tiedTo = append(s.tiedTo, int32(n.Tie.Node()))
		for _, c := range n.Children {
			s.children = append(s.children, int32(c))
		}
		s.childStart = append(s.childStart, int64(len(s.children)))
		if e := n.Edges; e != nil {
			s.sparseNode = append(s.sparseNode, int32(i))
			s.blockSize = append(s.blockSize, int64(e.Rows), int64(e.Cols))
			for _, p := range e.Pairs {
				s.pairs = append(s.pairs, p[0], p[1])
			}
			s.pairStart = append(s.pairStart, int64(len(s.pairs)/2))
			s.mask = append(s.mask, e.Mask...)
			s.maskStart = append(s.maskStart, int64(len(s.mask)))
		}
	}
	return s, nil
}

// graph rebuilds the graph and validates it. The tensors come from a file and
// may say anything; what is built is proportional to them.
func (s *structure) graph() (*circuit.Graph, error) {
	n := len(s.kind)
	for _, c := range []struct {
		name      string
		len, want int
	}{
		{unitTensor, len(s.units), n},
		{"node.variable", len(s.variable), n},
		{"node.leaf", len(s.leaf), n},
		{"node.tied_to", len(s.tiedTo), n},
		{"node.child_start", len(s.childStart), n + 1},
		{"sparse.block_size", len(s.blockSize), 2 * len(s.sparseNode)},
		{"sparse.pair_start", len(s.pairStart), len(s.sparseNode) + 1},
		{"sparse.mask_start", len(s.maskStart), len(s.sparseNode) + 1},
	} {
		if c.len != c.want {
			return nil, fmt.Errorf("tensor %s has %d entries, want %d", c.name, c.len, c.want)
		}
	}
	if err := checkStarts("node.child_start", s.childStart, len(s.children)); err != nil {
		return nil, err
	}
	leaves := make([]circuit.Leaf, len(s.leaves))
	for i, spec := range s.leaves {
		leaf, err := circuit.ParseLeaf(spec)
		if err != nil {
			return nil, fmt.Errorf("leaf %d: %w", i, err)
		}
		leaves[i] = leaf
	}
	g := &circuit.Graph{NumVars: s.numVars, Root: s.root, Nodes: make([]circuit.Node, n)}
	children := make([]circuit.NodeID, len(s.children))
	for i, c := range s.children {
		children[i] = circuit.NodeID(c)
	}
	for i := range g.Nodes {
		from, to := s.childStart[i], s.childStart[i+1]
		node := circuit.Node{Kind: circuit.Kind(s.kind[i]), Units: int(s.units[i]), Tie: circuit.TieTo(circuit.NodeID(s.tiedTo[i]))}
		if from < to {
			node.Children = children[from:to:to]
		}
		if node.Kind == circuit.Input {
			if k := s.leaf[i]; k < 0 || int(k) >= len(leaves) {
				return nil, fmt.Errorf("input node %d has leaf %d of %d", i, k, len(leaves))
			}
			node.Var, node.Leaf = int(s.variable[i]), leaves[s.leaf[i]]
		}
		g.Nodes[i] = node
	}
	if err := s.addEdges(g); err != nil {
		return nil, err
	}
	return g, circuit.Validate(g)
}

// addEdges gives the block-sparse sums their edge blocks.
func (s *structure) addEdges(g *circuit.Graph) error {
	if len(s.pairs)%2 != 0 {
		return fmt.Errorf("tensor sparse.pair has %d entries, want pairs", len(s.pairs))
	}
	if err := checkStarts("sparse.pair_start", s.pairStart, len(s.pairs)/2); err != nil {
		return err
	}
	if err := checkStarts("sparse.mask_start", s.maskStart, len(s.mask)); err != nil {
		return err
	}
	pairs := make([][2]int32, len(s.pairs)/2)
	for i := range pairs {
		pairs[i] = [2]int32{s.pairs[2*i], s.pairs[2*i+1]}
	}
	last := int32(-1)
	for k, id := range s.sparseNode {
		if id <= last || int(id) >= len(g.Nodes) {
			return fmt.Errorf("tensor sparse.node has %d after %d of %d nodes", id, last, len(g.Nodes))
		}
		last = id
		rows, cols := s.blockSize[2*k], s.blockSize[2*k+1]
		if rows < 1 || rows > math.MaxInt32 || cols < 1 || cols > 1<<31 {
			return fmt.Errorf("sum node %d has edge blocks of %d × %d", id, rows, cols)
		}
		from, to := s.pairStart[k], s.pairStart[k+1]
		e := &circuit.Edges{Rows: int(rows), Cols: int(cols), Pairs: pairs[from:to:to]}
		if from, to := s.maskStart[k], s.maskStart[k+1]; from < to {
			e.Mask = s.mask[from:to:to]
		}
		g.Nodes[id].Edges = e
	}
	return nil
}

// checkStarts checks the offsets of rows that are stored one after another.
func checkStarts(name string, starts []int64, total int) error {
	if starts[0] != 0 || starts[len(starts)-1] != int64(total) || !slices.IsSorted(starts) {
		return fmt.Errorf("tensor %s does not ascend from 0 to %d", name, total)
	}
	return nil
}

// digest is the SHA-256 of the structure.
func (s *structure) digest() ([sha256.Size]byte, error) {
	leaves, err := json.Marshal(s.leaves)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("%w: %w", format.ErrModel, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %d %s\n", s.numVars, s.root, len(leaves), leaves)
	for _, c := range s.columns() {
		if err := c.hash(h); err != nil {
			return [sha256.Size]byte{}, err
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// column is one structure tensor of whatever element type.
type column interface {
	tensor() safetensors.Tensor
	write(*safetensors.Sink) error
	read(*safetensors.File) error
	hash(hash.Hash) error
}

// typed is a column of elements T: a vector, or a matrix of width columns.
type typed[T safetensors.Element] struct {
	name  string
	width int64
	data  *[]T
}

func (c typed[T]) tensor() safetensors.Tensor {
	shape := []int64{int64(len(*c.data)) / c.width}
	if c.width > 1 {
		shape = append(shape, c.width)
	}
	return safetensors.Tensor{Name: c.name, DType: safetensors.DTypeOf[T](), Shape: shape}
}

func (c typed[T]) write(s *safetensors.Sink) error { return safetensors.Append(s, *c.data) }

// read allocates what the file has: its header has been checked against its size.
func (c typed[T]) read(f *safetensors.File) error {
	t, ok := f.Tensor(c.name)
	if !ok {
		return fmt.Errorf("tensor %s is missing", c.name)
	}
	*c.data = make([]T, t.Len())
	return safetensors.Read(f, c.name, 0, *c.data)
}

func (c typed[T]) hash(h hash.Hash) error {
	fmt.Fprintf(h, "%s %d\n", c.name, len(*c.data))
	const chunk = 4096
	for v := *c.data; len(v) > 0; {
		n := min(chunk, len(v))
		if err := binary.Write(h, binary.LittleEndian, v[:n]); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}
