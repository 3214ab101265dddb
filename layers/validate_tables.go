package layers

import "fmt"

// checkElements checks that the elements fill element space, and that each
// multiplies vectors of its own size.
func (p *Program) checkElements() error {
	next := int64(1)
	for i := range p.Elements {
		e := &p.Elements[i]
		if int64(e.First) != next || e.Count < 1 || e.FactorLo < 0 || e.FactorLo >= e.FactorHi || int(e.FactorHi) > len(p.Factors) {
			return fmt.Errorf("%w: element %d has factors %d..%d of %d and %d blocks from %d on, want blocks from %d on",
				ErrShape, i, e.FactorLo, e.FactorHi-1, len(p.Factors), e.Count, e.First, next)
		}
		next += int64(e.Count)
		var units int32
		for k, f := range p.ElementFactors(int32(i)) {
			if err := p.in("factor", f, 0, len(p.Vectors)); err != nil {
				return err
			}
			v := &p.Vectors[f]
			if k == 0 {
				units = v.Units
			}
			if v.Count != e.Count || v.Units != units {
				return fmt.Errorf("%w: element %d of %d blocks and %d units multiplies vector %d of %d blocks and %d units",
					ErrShape, i, e.Count, units, f, v.Count, v.Units)
			}
		}
	}
	if next != int64(p.ElementBlocks) {
		return fmt.Errorf("%w: %d element blocks, the elements fill %d", ErrShape, p.ElementBlocks, next)
	}
	return nil
}

// checkOperands checks that a vector alone uses the elements lo..hi-1 and
// stands above all that they multiply.
func (p *Program) checkOperands(vector, lo, hi int32, used []bool) error {
	if lo < 0 || lo >= hi || int(hi) > len(p.Elements) {
		return fmt.Errorf("%w: vector %d has elements %d..%d of %d", ErrShape, vector, lo, hi-1, len(p.Elements))
	}
	for e := lo; e < hi; e++ {
		if used[e] {
			return fmt.Errorf("%w: element %d has two users", ErrIndex, e)
		}
		used[e] = true
		for _, f := range p.ElementFactors(e) {
			if f >= vector || p.Vectors[f].Depth >= p.Vectors[vector].Depth {
				return fmt.Errorf("%w: vector %d of depth %d reads vector %d of depth %d before it is written",
					ErrIndex, vector, p.Vectors[vector].Depth, f, p.Vectors[f].Depth)
			}
		}
	}
	return nil
}

// checkSums checks the operands of sums and stored products, and that the edge
// blocks of the owning sums fill param space.
func (p *Program) checkSums() error {
	used := make([]bool, len(p.Elements))
	next := int64(1)
	for i := range p.Sums {
		s := &p.Sums[i]
		if err := p.vectorOf(s.Vector, SumVector, i); err != nil {
			return err
		}
		if err := p.checkOperands(s.Vector, s.ElemLo, s.ElemHi, used); err != nil {
			return err
		}
		if len(s.Fan) != int(p.Vectors[s.Vector].Units) {
			return fmt.Errorf("%w: sum %d has %d fans for %d units", ErrShape, i, len(s.Fan), p.Vectors[s.Vector].Units)
		}
		if err := p.in("owner of a sum", s.Owner, 0, i+1); err != nil {
			return err
		}
		if o := &p.Sums[s.Owner]; int(s.Owner) != i {
			if o.Owner != s.Owner || o.Param != s.Param || o.NumBlocks != s.NumBlocks || len(o.Fan) != len(s.Fan) {
				return fmt.Errorf("%w: sum %d and its owner %d differ in their %d and %d edge blocks", ErrShape, i, s.Owner, s.NumBlocks, o.NumBlocks)
			}
			continue
		}
		if int64(s.Param) != next || s.NumBlocks < 1 {
			return fmt.Errorf("%w: sum %d has %d edge blocks from %d on, want some from %d on", ErrShape, i, s.NumBlocks, s.Param, next)
		}
		next += int64(s.NumBlocks)
	}
	if next != int64(p.ParamBlocks) {
		return fmt.Errorf("%w: %d edge blocks, the sums fill %d", ErrShape, p.ParamBlocks, next)
	}
	for i := range p.Stored {
		s := &p.Stored[i]
		if err := p.vectorOf(s.Vector, StoredVector, i); err != nil {
			return err
		}
		if err := p.in("element of a stored product", s.Element, 0, len(p.Elements)); err != nil {
			return err
		}
		if err := p.checkOperands(s.Vector, s.Element, s.Element+1, used); err != nil {
			return err
		}
		if p.Elements[s.Element].Count != p.Vectors[s.Vector].Count {
			return fmt.Errorf("%w: stored product %d keeps an element of %d blocks in %d", ErrShape, i, p.Elements[s.Element].Count, p.Vectors[s.Vector].Count)
		}
	}
	for e := range used {
		if !used[e] {
			return fmt.Errorf("%w: element %d has no user", ErrIndex, e)
		}
	}
	return nil
}

// checkInputs checks the inputs, and that the areas of the owning ones fill the
// parameter buffer behind the edge blocks.
func (p *Program) checkInputs() error {
	next := p.ParamOffset(p.ParamBlocks)
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if err := p.vectorOf(in.Vector, InputVector, i); err != nil {
			return err
		}
		if err := p.in("column", in.Column, 0, len(p.Columns)); err != nil {
			return err
		}
		if err := p.in("owner of an input", in.Owner, 0, i+1); err != nil {
			return err
		}
		if in.Family == nil || in.Family.Codes() != int(in.Codes) || p.Columns[in.Column].Codes != in.Codes {
			return fmt.Errorf("%w: input %d with %d codes reads column %d with %d codes", ErrShape, i, in.Codes, in.Column, p.Columns[in.Column].Codes)
		}
		width := int64(p.Width(in.Vector))
		o := &p.Inputs[in.Owner]
		table, params, exps := in.Table, in.Params, in.Exps
		if int(in.Owner) == i {
			if in.Codes > 0 {
				table, next = next, next+p.TableRows(in)*width
			}
			if in.Params >= 0 {
				params, next = next, next+int64(in.Family.NumParams())*width
			}
			if in.Exps >= 0 {
				exps, next = next, next+p.TableRows(in)*width
			}
		} else {
			table, params, exps = o.Table, o.Params, o.Exps
		}
		if in.Table != table || in.Params != params || in.Exps != exps || (in.Codes > 0) != (in.Table >= 0) || in.Table < 0 && in.Params < 0 ||
			in.Exps >= 0 && (in.Table < 0 || in.Params < 0 && !p.Columns[in.Column].Beside) {
			return fmt.Errorf("%w: input %d with %d codes has its table at %d, its parameters at %d and exponents at %d, want %d, %d and %d",
				ErrShape, i, in.Codes, in.Table, in.Params, in.Exps, table, params, exps)
		}
		if o.Owner != in.Owner || o.Codes != in.Codes || p.TableRows(o) != p.TableRows(in) || p.Width(o.Vector) != p.Width(in.Vector) || o.Family.Name() != in.Family.Name() {
			return fmt.Errorf("%w: input %d and its owner %d differ", ErrShape, i, in.Owner)
		}
	}
	if next != p.NumParams {
		return fmt.Errorf("%w: %d floats of parameters, sums and inputs fill %d", ErrShape, p.NumParams, next)
	}
	return nil
}

// vectorOf checks that definition def of a kind is that of its vector.
func (p *Program) vectorOf(vector int32, kind VectorKind, def int) error {
	if err := p.in("vector of a definition", vector, 0, len(p.Vectors)); err != nil {
		return err
	}
	if v := &p.Vectors[vector]; v.Kind != kind || int(v.Def) != def {
		return fmt.Errorf("%w: definition %d belongs to vector %d, which has definition %d of kind %d", ErrIndex, def, vector, v.Def, v.Kind)
	}
	return nil
}
