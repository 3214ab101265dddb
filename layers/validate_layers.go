package layers

import (
	"fmt"
	"sort"
)

// layerCheck is what checkLayers keeps of the layers before.
type layerCheck struct {
	*Program
	written, nodes, back []bool   // element blocks with factors, node blocks with children, element blocks with parents
	user                 []int32  // element → the vector that reads it
	edges                []int64  // by sum: edges forward less edges backward
	prints               []uint64 // by sum: fingerprint of the edges forward less that backward
}

// checkLayers checks the tensors of the layers against the tables.
func (p *Program) checkLayers() error {
	listed := 0 // element blocks: bounds what is allocated by what is there
	for l := range p.Layers {
		for _, q := range p.Layers[l].Products {
			listed += len(q.ElementIDs)
		}
	}
	if listed != int(p.ElementBlocks)-1 {
		return fmt.Errorf("%w: %d element blocks, the layers write %d", ErrShape, p.ElementBlocks-1, listed)
	}
	rows, sums := 0, 0 // node blocks that are listed, and those of all sums
	for i := range p.Sums {
		sums += int(p.Vectors[p.Sums[i].Vector].Count)
	}
	for l := range p.Layers {
		for _, q := range p.Layers[l].Sums {
			rows += len(q.NodeIDs)
		}
	}
	if rows != sums {
		return fmt.Errorf("%w: %d node blocks of sums, the layers write %d", ErrShape, sums, rows)
	}
	c := &layerCheck{
		Program: p,
		written: make([]bool, p.ElementBlocks), nodes: make([]bool, p.NodeBlocks), back: make([]bool, p.ElementBlocks),
		user: make([]int32, len(p.Elements)), edges: make([]int64, len(p.Sums)), prints: make([]uint64, len(p.Sums)),
	}
	for i := range p.Sums {
		for e := p.Sums[i].ElemLo; e < p.Sums[i].ElemHi; e++ {
			c.user[e] = p.Sums[i].Vector
		}
	}
	for _, s := range p.Stored {
		c.user[s.Element] = s.Vector
	}
	depth := int32(0)
	for l := range p.Layers {
		layer := &p.Layers[l]
		if layer.Depth <= depth {
			return fmt.Errorf("%w: layer %d of depth %d follows depth %d", ErrIndex, l, layer.Depth, depth)
		}
		depth = layer.Depth
		if err := c.layer(layer); err != nil {
			return fmt.Errorf("%w (layer of depth %d)", err, depth)
		}
	}
	for i := range p.Sums {
		if c.edges[i] != 0 || c.prints[i] != 0 {
			return fmt.Errorf("%w: sum %d: the edges of the backward tensors are not those of the forward ones", ErrIndex, i)
		}
	}
	return nil
}

func (c *layerCheck) layer(l *Layer) error {
	for i := range l.Products {
		if err := c.products(l, &l.Products[i]); err != nil {
			return err
		}
	}
	for i := range l.Sums {
		if err := c.sums(l, &l.Sums[i]); err != nil {
			return err
		}
	}
	for i := range l.Elements {
		if err := c.elements(l, &l.Elements[i]); err != nil {
			return err
		}
	}
	return nil
}

// shape checks that tensors have rows rows of width entries.
func shape(what string, rows, width int, tensors ...[]int32) error {
	for _, t := range tensors {
		if width < 0 || rows > 0 && width > len(t) || len(t) != rows*width {
			return fmt.Errorf("%w: %s: %d entries, want %d blocks × %d", ErrShape, what, len(t), rows, width)
		}
	}
	return nil
}

// once notes that a block is listed.
func once(what string, seen []bool, id int32) error {
	if id < 1 || int(id) >= len(seen) {
		return fmt.Errorf("%w: %s block %d, want 1..%d", ErrIndex, what, id, len(seen)-1)
	}
	if seen[id] {
		return fmt.Errorf("%w: %s block %d is listed twice", ErrIndex, what, id)
	}
	seen[id] = true
	return nil
}

// products wants the factors that the table of elements names, then padding.
func (c *layerCheck) products(l *Layer, q *ProductPartition) error {
	if err := shape("factors", len(q.ElementIDs), q.MaxFactors, q.FactorIDs); err != nil {
		return err
	}
	for i, id := range q.ElementIDs {
		if err := once("element", c.written, id); err != nil {
			return err
		}
		e := sort.Search(len(c.Elements), func(k int) bool { return c.Elements[k].First > id }) - 1
		if d := c.Vectors[c.user[e]].Depth; d != l.Depth {
			return fmt.Errorf("%w: element block %d belongs to depth %d", ErrIndex, id, d)
		}
		row := q.FactorIDs[i*q.MaxFactors : (i+1)*q.MaxFactors]
		fs := c.ElementFactors(int32(e))
		for k, f := range row {
			want := int32(0)
			if k < len(fs) {
				want = c.Vectors[fs[k]].First + id - c.Elements[e].First
			}
			if f != want {
				return fmt.Errorf("%w: element block %d has factor block %d in place %d, want %d", ErrIndex, id, f, k, want)
			}
		}
		if len(row) < len(fs) {
			return fmt.Errorf("%w: element block %d has %d factors in a row of %d", ErrShape, id, len(fs), len(row))
		}
	}
	return nil
}

func (c *layerCheck) sums(l *Layer, q *SumPartition) error {
	if err := shape("children and weights", len(q.NodeIDs), q.MaxChildren, q.ChildIDs, q.ParamIDs); err != nil {
		return err
	}
	for i, id := range q.NodeIDs {
		if err := once("node", c.nodes, id); err != nil {
			return err
		}
		v := &c.Vectors[c.vectorAt(id)]
		if v.Kind != SumVector || v.Depth != l.Depth {
			return fmt.Errorf("%w: node block %d is of kind %d and depth %d", ErrIndex, id, v.Kind, v.Depth)
		}
		children, params := q.ChildIDs[i*q.MaxChildren:(i+1)*q.MaxChildren], q.ParamIDs[i*q.MaxChildren:(i+1)*q.MaxChildren]
		for k := range children {
			end, err := c.edge(v.Def, id, children[k], params[k], k > 0 && children[k-1] == 0, 1)
			if err != nil {
				return err
			}
			if !end && !c.written[children[k]] {
				return fmt.Errorf("%w: node block %d reads element block %d before it is written", ErrIndex, id, children[k])
			}
		}
	}
	return nil
}

func (c *layerCheck) elements(l *Layer, q *ElementPartition) error {
	if err := shape("parents and weights", len(q.ElementIDs), q.MaxParents, q.ParentIDs, q.ParentParamIDs); err != nil {
		return err
	}
	for i, id := range q.ElementIDs {
		if err := once("element", c.back, id); err != nil {
			return err
		}
		parents, params := q.ParentIDs[i*q.MaxParents:(i+1)*q.MaxParents], q.ParentParamIDs[i*q.MaxParents:(i+1)*q.MaxParents]
		for k, n := range parents {
			sum := int32(-1)
			if n != 0 {
				if err := c.in("parent block", n, 1, int(c.NodeBlocks)); err != nil {
					return err
				}
				v := &c.Vectors[c.vectorAt(n)]
				if v.Kind != SumVector || v.Depth != l.Depth {
					return fmt.Errorf("%w: parent block %d is of kind %d and depth %d", ErrIndex, n, v.Kind, v.Depth)
				}
				sum = v.Def
			}
			child := id
			if n == 0 {
				child = 0
			}
			if _, err := c.edge(sum, n, child, params[k], k > 0 && parents[k-1] == 0, -1); err != nil {
				return err
			}
		}
	}
	return nil
}

// edge checks one entry of a row and counts it, sign +1 forward and -1 backward.
// It reports whether the entry is padding, behind which only padding may stand.
func (c *layerCheck) edge(sum, node, child, param int32, padding bool, sign int64) (end bool, err error) {
	if node == 0 || child == 0 {
		if param != 0 {
			return true, fmt.Errorf("%w: weight block %d on padding", ErrIndex, param)
		}
		return true, nil
	}
	s := &c.Sums[sum]
	first, last := c.Elements[s.ElemLo].First, c.Elements[s.ElemHi-1]
	if padding || child < first || child >= last.First+last.Count || param < s.Param || param >= s.Param+s.NumBlocks {
		return false, fmt.Errorf("%w: node block %d takes element block %d by weight block %d; want %d..%d by %d..%d, padding last",
			ErrIndex, node, child, param, first, last.First+last.Count-1, s.Param, s.Param+s.NumBlocks-1)
	}
	c.edges[sum] += sign
	x := uint64(node)<<32 ^ uint64(child)
	x = (x ^ x>>29) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>32 ^ uint64(param)) * 0x94D049BB133111EB
	c.prints[sum] += uint64(sign) * (x ^ x>>31)
	return false, nil
}

// vectorAt returns the vector of a node block.
func (p *Program) vectorAt(block int32) int {
	return sort.Search(len(p.Vectors), func(k int) bool { return p.Vectors[k].First > block }) - 1
}
