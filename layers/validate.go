package layers

import (
	"fmt"
	"math"
)

// Validate checks every tensor of a program: lengths and bounds, that nothing
// reads what a later layer writes, that each block is written once, that
// parameters do not overlap, and that the backward tensors list the edges of the
// forward ones. What it has passed is safe to run.
func (p *Program) Validate() error {
	for _, check := range []func() error{
		p.checkSpaces, p.checkVectors, p.checkColumns, p.checkElements, p.checkSums, p.checkInputs, p.checkLayers,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Program) checkSpaces() error {
	switch p.BlockSize {
	case 1, 2, 4, 8, 16, 32:
	default:
		return fmt.Errorf("%w: block size %d, want a power of two up to 32", ErrShape, p.BlockSize)
	}
	if p.NodeBlocks < 1 || p.ElementBlocks < 1 || p.ParamBlocks < 1 {
		return fmt.Errorf("%w: spaces of %d node, %d element and %d edge blocks, want a padding slot in each",
			ErrShape, p.NodeBlocks, p.ElementBlocks, p.ParamBlocks)
	}
	if p.NumVars < 1 || p.NumVars > math.MaxInt32 {
		return fmt.Errorf("%w: %d variables", ErrShape, p.NumVars)
	}
	return p.in("root vector", p.Root, 0, len(p.Vectors))
}

// checkVectors checks that the vectors fill node space and that each has its
// definition.
func (p *Program) checkVectors() error {
	next := int64(1)
	for i := range p.Vectors {
		v := &p.Vectors[i]
		room := int64(v.Count) * int64(p.BlockSize)
		if int64(v.First) != next || v.Units < 1 || int64(v.Units) > room || int64(v.Units) <= room-int64(p.BlockSize) {
			return fmt.Errorf("%w: vector %d has %d units in %d blocks from %d on, want blocks from %d on", ErrShape, i, v.Units, v.Count, v.First, next)
		}
		next += int64(v.Count)
		back := int32(-1)
		switch {
		case v.Kind == InputVector && v.Def >= 0 && int(v.Def) < len(p.Inputs):
			back = p.Inputs[v.Def].Vector
		case v.Kind == SumVector && v.Def >= 0 && int(v.Def) < len(p.Sums):
			back = p.Sums[v.Def].Vector
		case v.Kind == StoredVector && v.Def >= 0 && int(v.Def) < len(p.Stored):
			back = p.Stored[v.Def].Vector
		}
		if int(back) != i {
			return fmt.Errorf("%w: vector %d of kind %d has definition %d, which belongs to vector %d", ErrIndex, i, v.Kind, v.Def, back)
		}
	}
	if next != int64(p.NodeBlocks) {
		return fmt.Errorf("%w: %d node blocks, the vectors fill %d", ErrShape, p.NodeBlocks, next)
	}
	if n := len(p.Inputs) + len(p.Sums) + len(p.Stored); n != len(p.Vectors) {
		return fmt.Errorf("%w: %d inputs, sums and stored products for %d vectors", ErrShape, n, len(p.Vectors))
	}
	if r := &p.Vectors[p.Root]; r.Units != 1 || r.Kind == InputVector {
		return fmt.Errorf("%w: the root is a vector of kind %d with %d units, want a sum or a stored product of 1", ErrShape, r.Kind, r.Units)
	}
	return nil
}

// checkColumns checks that the columns of each sort are counted up.
func (p *Program) checkColumns() error {
	var slots [2]int32
	for i, c := range p.Columns {
		if c.Var < 0 || int(c.Var) >= p.NumVars || c.Codes < 0 || c.Codes > MaxCodes {
			return fmt.Errorf("%w: column %d holds variable %d of %d with %d codes", ErrIndex, i, c.Var, p.NumVars, c.Codes)
		}
		if c.Soft < 0 || c.Soft > MaxSoft || c.Soft > 0 && c.Codes == 0 || c.Beside && (c.Codes != 1 || c.Soft == 0) {
			return fmt.Errorf("%w: column %d with %d codes has %d rows of evidence, want 0..%d, and none for values", ErrShape, i, c.Codes, c.Soft, MaxSoft)
		}
		sort := min(c.Codes, 1)
		if c.Slot != slots[sort] {
			return fmt.Errorf("%w: column %d stands in slot %d, want %d", ErrIndex, i, c.Slot, slots[sort])
		}
		slots[sort]++
	}
	return nil
}

func (p *Program) in(what string, id int32, lo, hi int) error {
	if int(id) < lo || int(id) >= hi {
		return fmt.Errorf("%w: %s %d, want %d..%d", ErrIndex, what, id, lo, hi-1)
	}
	return nil
}
