package layers

import "fmt"

// Validate checks every tensor of a program: lengths, bounds, and that nothing
// reads what a later layer writes.
func (p *Program) Validate() error {
	switch p.BlockSize {
	case 1, 2, 4, 8, 16, 32:
	default:
		return fmt.Errorf("%w: block size %d, want a power of two up to 32", ErrShape, p.BlockSize)
	}
	if p.Root < 0 || int(p.Root) >= len(p.Vectors) {
		return fmt.Errorf("%w: root vector %d of %d", ErrIndex, p.Root, len(p.Vectors))
	}
	depth := make([]int32, p.NodeBlocks) // of each node block
	next := int32(1)
	for i := range p.Vectors {
		v := &p.Vectors[i]
		if v.First != next || v.Count < 1 || v.Units < 1 || int(v.Units) > int(v.Count)*p.BlockSize || v.First+v.Count > p.NodeBlocks {
			return fmt.Errorf("%w: vector %d is blocks %d..%d with %d units, want %d.. in %d blocks",
				ErrShape, i, v.First, v.First+v.Count-1, v.Units, next, p.NodeBlocks)
		}
		for b := range v.Count {
			depth[v.First+b] = v.Depth
		}
		next += v.Count
	}
	if next != p.NodeBlocks {
		return fmt.Errorf("%w: %d node blocks, the vectors fill %d", ErrShape, p.NodeBlocks, next)
	}
	elemDepth := make([]int32, p.ElementBlocks) // 1 + the depth of the deepest factor
	seen := make([]bool, p.ElementBlocks)
	for l := range p.Layers {
		layer := &p.Layers[l]
		for _, q := range layer.Products {
			if len(q.FactorIDs) != len(q.ElementIDs)*q.MaxFactors {
				return fmt.Errorf("%w: layer %d: %d factors, want %d blocks × %d", ErrShape, l, len(q.FactorIDs), len(q.ElementIDs), q.MaxFactors)
			}
			for i, e := range q.ElementIDs {
				if err := p.in("element", e, 1, p.ElementBlocks); err != nil {
					return err
				}
				if seen[e] {
					return fmt.Errorf("%w: element block %d is written twice", ErrIndex, e)
				}
				seen[e] = true
				for _, f := range q.FactorIDs[i*q.MaxFactors : (i+1)*q.MaxFactors] {
					if err := p.in("factor", f, 0, p.NodeBlocks); err != nil {
						return err
					}
					if f > 0 {
						elemDepth[e] = max(elemDepth[e], depth[f]+1)
					}
				}
				if elemDepth[e] > layer.Depth {
					return fmt.Errorf("%w: element block %d of layer %d reads depth %d", ErrIndex, e, layer.Depth, elemDepth[e]-1)
				}
			}
		}
		for _, q := range layer.Sums {
			if n := len(q.NodeIDs) * q.MaxChildren; len(q.ChildIDs) != n || len(q.ParamIDs) != n {
				return fmt.Errorf("%w: layer %d: %d children and %d weights, want %d blocks × %d", ErrShape, l, len(q.ChildIDs), len(q.ParamIDs), len(q.NodeIDs), q.MaxChildren)
			}
			if err := p.each("node", q.NodeIDs, 1, p.NodeBlocks); err != nil {
				return err
			}
			if err := p.each("child", q.ChildIDs, 0, p.ElementBlocks); err != nil {
				return err
			}
			if err := p.each("weight", q.ParamIDs, 0, p.ParamBlocks); err != nil {
				return err
			}
			for i, n := range q.NodeIDs {
				if depth[n] != layer.Depth {
					return fmt.Errorf("%w: node block %d of depth %d stands in layer %d", ErrIndex, n, depth[n], layer.Depth)
				}
				for _, c := range q.ChildIDs[i*q.MaxChildren : (i+1)*q.MaxChildren] {
					if c > 0 && (!seen[c] || elemDepth[c] > layer.Depth) {
						return fmt.Errorf("%w: node block %d reads element block %d before it is written", ErrIndex, n, c)
					}
				}
			}
		}
		for _, q := range layer.Elements {
			if n := len(q.ElementIDs) * q.MaxParents; len(q.ParentIDs) != n || len(q.ParentParamIDs) != n {
				return fmt.Errorf("%w: layer %d: %d parents and %d weights, want %d blocks × %d", ErrShape, l, len(q.ParentIDs), len(q.ParentParamIDs), len(q.ElementIDs), q.MaxParents)
			}
			if err := p.each("element", q.ElementIDs, 1, p.ElementBlocks); err != nil {
				return err
			}
			if err := p.each("parent", q.ParentIDs, 0, p.NodeBlocks); err != nil {
				return err
			}
			if err := p.each("weight", q.ParentParamIDs, 0, p.ParamBlocks); err != nil {
				return err
			}
		}
	}
	for e := int32(1); e < p.ElementBlocks; e++ {
		if !seen[e] {
			return fmt.Errorf("%w: element block %d is never written", ErrIndex, e)
		}
	}
	return p.validateTables()
}

// validateTables checks inputs, sums and elements.
func (p *Program) validateTables() error {
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if err := p.in("input vector", in.Vector, 0, int32(len(p.Vectors))); err != nil {
			return err
		}
		if err := p.in("column", in.Column, 0, int32(len(p.Columns))); err != nil {
			return err
		}
		if c := p.Columns[in.Column]; c.Codes != in.Codes || c.Var < 0 || int(c.Var) >= p.NumVars {
			return fmt.Errorf("%w: input %d with %d codes reads variable %d of %d with %d codes", ErrIndex, i, in.Codes, c.Var, p.NumVars, c.Codes)
		}
		width := int64(p.Width(in.Vector))
		end := int64(0)
		if in.Table >= 0 {
			end = in.Table + int64(in.Codes+1)*width
		}
		if in.Params >= 0 {
			end = max(end, in.Params+int64(in.Family.NumParams())*width)
		}
		if (in.Table < 0 && in.Params < 0) || (in.Codes > 0) != (in.Table >= 0) || end > p.NumParams {
			return fmt.Errorf("%w: input %d: table %d, parameters %d, %d codes in %d floats", ErrShape, i, in.Table, in.Params, in.Codes, p.NumParams)
		}
	}
	for i := range p.Sums {
		s := &p.Sums[i]
		if err := p.in("sum vector", s.Vector, 0, int32(len(p.Vectors))); err != nil {
			return err
		}
		if s.ElemLo < 0 || s.ElemLo >= s.ElemHi || int(s.ElemHi) > len(p.Elements) || s.Param < 1 || s.Param+s.NumBlocks > p.ParamBlocks ||
			len(s.Fan) != int(p.Vectors[s.Vector].Units) || s.Owner < 0 || int(s.Owner) > i {
			return fmt.Errorf("%w: sum %d: elements %d..%d, edge blocks %d..%d, %d fans, owner %d", ErrShape, i, s.ElemLo, s.ElemHi, s.Param, s.Param+s.NumBlocks-1, len(s.Fan), s.Owner)
		}
	}
	for i := range p.Elements {
		e := &p.Elements[i]
		if e.FactorLo < 0 || e.FactorLo >= e.FactorHi || int(e.FactorHi) > len(p.Factors) || e.First < 1 || e.First+e.Count > p.ElementBlocks {
			return fmt.Errorf("%w: element %d: factors %d..%d, blocks %d..%d", ErrShape, i, e.FactorLo, e.FactorHi, e.First, e.First+e.Count-1)
		}
	}
	return p.each("factor", p.Factors, 0, int32(len(p.Vectors)))
}

func (p *Program) in(what string, id, lo, hi int32) error {
	if id < lo || id >= hi {
		return fmt.Errorf("%w: %s %d, want %d..%d", ErrIndex, what, id, lo, hi-1)
	}
	return nil
}

func (p *Program) each(what string, ids []int32, lo, hi int32) error {
	for _, id := range ids {
		if id < lo || id >= hi {
			return p.in(what, id, lo, hi)
		}
	}
	return nil
}
