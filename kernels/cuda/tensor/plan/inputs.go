package plan

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// families are the leaves that there are kernels for, other than those whose
// parameters are their table.
var families = map[string]uint32{
	"gaussian":             tensor.FamilyGaussian,
	"log-normal":           tensor.FamilyLogNormal,
	"poisson":              tensor.FamilyPoisson,
	"binomial":             tensor.FamilyBinomial,
	"discretised-logistic": tensor.FamilyLogistic,
	"histogram":            tensor.FamilyHistogram,
	"indicator":            tensor.FamilyIndicator,
	"real-histogram":       tensor.FamilyRealHistogram,
}

// makeInputs describes the leaves. scales holds the scales of statistics by column.
func (t *Tables) makeInputs(scales [][]float64, train bool) error {
	p := t.Program
	members := make([][]int, len(p.Inputs))
	for i := range p.Inputs {
		members[p.Inputs[i].Owner] = append(members[p.Inputs[i].Owner], i)
	}
	residue := int64(0)
	constants := make(map[string]uint32) // a family with its settings → its constants' place
	for i := range p.Inputs {
		in := &p.Inputs[i]
		family := uint32(tensor.FamilyMass)
		if in.Codes == 0 || in.Params >= 0 || in.Family.NumParams() == 0 {
			f, ok := families[in.Family.Name()]
			if !ok {
				return fmt.Errorf("%w: cuda: there are no kernels for %s leaves; use --device cpu", kernels.ErrDevice, in.Family.Name())
			}
			if f == tensor.FamilyRealHistogram && train {
				return fmt.Errorf("%w: cuda cannot train %s leaves; use --device cpu", kernels.ErrDevice, in.Family.Name())
			}
			family = f
		}
		out := tensor.Input{
			Table: tensor.NoParams, Params: tensor.NoParams, Val: t.Slot[in.Vector], Exp: uint32(int(in.Vector) * t.Rows),
			Codes: uint32(in.Codes), Width: uint32(p.Width(in.Vector)), Units: uint32(p.Vectors[in.Vector].Units),
			Family: family, At: t.CodesAt(in), Unit: t.firstUnit(in.Vector), Stats: uint32(in.Family.NumStats()),
			Taken: t.Taken[in.Vector], Modes: t.modes[i],
		}
		out.Exps = t.ownExps(in)
		if in.Codes > 0 {
			out.Table = uint64(in.Table)
		}
		if in.Params >= 0 {
			out.Params = uint64(in.Params)
		}
		if in.Owner == int32(i) {
			if in.Codes > tensor.SharedCodes {
				out.Counts = uint64(t.countsLen)
				t.countsLen += int64(in.Codes) * int64(p.Width(in.Vector))
			}
			out.Residue = uint32(residue)
			residue += p.Residues(int32(i))
			for _, m := range members[i] {
				first, n := t.use(p.Inputs[m].Vector, t.CodesAt(&p.Inputs[m]))
				if out.Uses == 0 {
					out.Use = first
				}
				out.Uses += n
			}
		}
		name := fmt.Sprintf("%s%+v", in.Family.Name(), in.Family)
		at, ok := constants[name]
		if !ok {
			at = uint32(len(t.Constants))
			constants[name] = at
			t.Constants = append(t.Constants, in.Family.Constants()...)
		}
		out.Constant = at
		out.Scales = t.scales(in, scales)
		t.Inputs = append(t.Inputs, out)
	}
	return nil
}

// ownExps is the floats from a value of an input to the exponent that it has of its
// own, 0 if it has none.
func (t *Tables) ownExps(in *layers.Input) uint32 {
	switch {
	case in.Exps >= 0:
		return uint32(in.Exps - in.Table)
	case in.Codes == 0 && t.spread[in.Vector]:
		return uint32(t.span(t.Program.Width(in.Vector))) // they stand behind the values
	}
	return 0
}

// scales puts the scales of an input's statistics among the constants.
func (t *Tables) scales(in *layers.Input, scales [][]float64) uint32 {
	at := uint32(len(t.Constants))
	if in.Codes > 0 {
		return at
	}
	for k := range in.Family.NumStats() {
		t.Constants = append(t.Constants, layers.StatScale(scales, in, k))
	}
	return at
}
