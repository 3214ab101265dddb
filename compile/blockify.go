package compile

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// edgeCost is the time of one padded edge relative to a block of 32, as measured
// on CPUs with AVX-512: blocks below 16 do not fill a vector register.
var edgeCost = map[int]float64{32: 1, 16: 1.15, 1: 25}

// Limits of a program: they keep block indices and the memory that compilation
// takes far from overflow, whatever a small file asks for.
const (
	maxUnits      = 1 << 28 // of all vectors, and of all elements, padding included
	maxEdgeBlocks = 1 << 27
	maxBlockSize  = 32
)

// blockify chooses the block size and lays the vectors and elements out in
// whole blocks. Units that only pad have probability 0.
func blockify(s *state) (string, error) {
	size := s.opts.BlockSize
	if size == 0 {
		best := math.Inf(1)
		for _, b := range []int{32, 16, 1} {
			if c := float64(s.paddedEdges(b)) * edgeCost[b]; c <= best {
				best, size = c, b
			}
		}
	}
	p := &layers.Program{NumVars: s.graph.NumVars, BlockSize: size, NodeBlocks: 1, ElementBlocks: 1, ParamBlocks: 1, Factors: s.factors}
	s.prog = p
	var pad, real int64
	if err := s.checkUnits(size); err != nil {
		return "", err
	}
	var kinds [3]int
	for i := range s.nodes {
		kinds[s.nodes[i].kind]++
	}
	p.Vectors, p.Elements = make([]layers.Vector, 0, len(s.nodes)), make([]layers.Element, 0, len(s.cuts)-1)
	p.Inputs, p.Sums = make([]layers.Input, 0, kinds[layers.InputVector]), make([]layers.Sum, 0, kinds[layers.SumVector])
	for i := range s.nodes {
		n := &s.nodes[i]
		count := int32((n.units + size - 1) / size)
		v := layers.Vector{Kind: n.kind, First: p.NodeBlocks, Count: count, Units: int32(n.units), Depth: n.depth}
		p.NodeBlocks += count
		real += int64(n.units)
		pad += int64(count)*int64(size) - int64(n.units)
		for k := n.lo; k < n.hi; k++ {
			e := layers.Element{First: p.ElementBlocks, Count: p.Vectors[s.operand(k)[0]].Count, FactorLo: s.cuts[k], FactorHi: s.cuts[k+1]}
			p.ElementBlocks += e.Count
			p.Elements = append(p.Elements, e)
		}
		switch n.kind {
		case layers.InputVector:
			v.Def = int32(len(p.Inputs))
			in := layers.Input{Vector: int32(i)}
			if n.beside {
				in.Family, in.Codes, in.Column = layers.Beside{}, 1, s.besideColumn(p.Inputs[v.Def-1].Column)
			} else {
				gn := &s.graph.Nodes[n.id]
				in.Family, in.Codes = gn.Leaf, int32(gn.Leaf.Codes())
				in.Column = s.column(int32(gn.Var), in.Codes)
			}
			p.Inputs = append(p.Inputs, in)
		case layers.SumVector:
			v.Def = int32(len(p.Sums))
			p.Sums = append(p.Sums, layers.Sum{Vector: int32(i), ElemLo: n.lo, ElemHi: n.hi})
		case layers.StoredVector:
			v.Def = int32(len(p.Stored))
			p.Stored = append(p.Stored, layers.Stored{Vector: int32(i), Element: n.lo})
		}
		p.Vectors = append(p.Vectors, v)
	}
	p.Root = int32(len(s.nodes) - 1)
	if r := s.index[s.graph.Root]; s.nodes[r].kind != layers.InputVector {
		p.Root = r
	}
	return fmt.Sprintf("blocks of %d units, %d node blocks, %.1f %% of the units are padding",
		size, p.NodeBlocks-1, 100*float64(pad)/float64(max(1, real+pad))), nil
}

// checkUnits returns an error if the blocks would be too many.
func (s *state) checkUnits(size int) error {
	up := func(units int) int64 { return int64((units + size - 1) / size * size) }
	var vectors, elements int64
	for i := range s.nodes {
		vectors += up(s.nodes[i].units)
		for k := s.nodes[i].lo; k < s.nodes[i].hi; k++ {
			elements += up(s.nodes[s.operand(k)[0]].units)
		}
	}
	if max(vectors, elements) > maxUnits {
		return fmt.Errorf("%w: %d units and %d units of products in blocks of %d, at most %d are allowed; use a smaller circuit",
			circuit.ErrGraph, vectors, elements, size, maxUnits)
	}
	return nil
}

// column returns the column of a batch that holds a variable as codes codes, or
// as values if codes is 0.
func (s *state) column(v, codes int32) int32 {
	key := [2]int32{v, codes}
	if c, ok := s.columns[key]; ok {
		return c
	}
	next := &s.codeSlots
	if codes == 0 {
		next = &s.valueSlots
	}
	c := int32(len(s.prog.Columns))
	s.columns[key] = c
	s.prog.Columns = append(s.prog.Columns, layers.Column{Var: v, Codes: codes, Slot: *next})
	*next++
	return c
}

// paddedEdges counts the weights that kernels would multiply with blocks of b
// units. Block-sparse sums are counted as if blocks smaller than b filled whole
// ones, at most the dense sum.
func (s *state) paddedEdges(b int) int64 {
	up := func(n int) int64 { return int64((n + b - 1) / b * b) }
	var total int64
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.kind != layers.SumVector {
			continue
		}
		var cols int64
		for k := n.lo; k < n.hi; k++ {
			cols += up(s.nodes[s.operand(k)[0]].units)
		}
		dense := up(n.units) * cols
		if e := s.graph.Nodes[n.id].Edges; e != nil {
			dense = min(dense, int64(len(e.Pairs))*up(e.Rows)*up(e.Cols))
		}
		total += dense
	}
	return total
}
