package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// normalise makes the weights of each unit of a group add up to 1. A warp does as
// many units at a time as blocks of S columns fit on its lanes, which read 32 weights
// that follow each other; each lane adds up one column of every step in order, and a
// butterfly adds the lanes of a unit.
func (v Variant) normalise() *ptx.Kernel {
	const warps = 8
	s := v.Block
	k := v.begin(KernelNormalise, 32*warps, 0, ArgParams, ArgGroups, ArgSteps, ArgList)
	tid := k.Special("%tid.x")
	group := k.record(ArgGroups, k.entry(k.Special("%ctaid.x")), GroupSize)
	step := k.Load(ptx.U32, group, GroupStep)
	end := k.Add(step, k.Load(ptx.U32, group, GroupSteps))
	units := k.Mul(k.Load(ptx.U32, group, GroupBlocks), s)
	weights := k.Mul(units, s) // of a step
	k.For(ptx.U32, k.And(tid, ^31), weights, 32*warps, func(first ptx.Value) {
		i := k.Add(first, k.And(tid, 31)) // of the weights of a step
		exists := k.Lt(i, weights)
		each := func(do func(at ptx.Value)) {
			k.For(ptx.U32, step, end, 1, func(st ptx.Value) {
				param := k.Load(ptx.U32, k.record(ArgSteps, st, StepSize), StepParam)
				do(k.At(k.element(ArgParams, k.MulWide(param, s*s)), i, 4))
			})
		}
		total := k.Mov(ptx.F32, 0)
		k.If(exists, func() {
			each(func(at ptx.Value) { k.Into(total).Add(total, k.Load(ptx.F32, at, 0)) })
		})
		for m := s / 2; m > 0; m /= 2 {
			k.Into(total).Add(total, k.Shuffle("bfly", total, m))
		}
		// The total of units that do not exist is 0.
		usable := k.And(k.Gt(total, 0), k.Lt(total, math.Inf(1)))
		k.If(usable, func() {
			scale := k.Rcp(total)
			each(func(at ptx.Value) { k.Store(ptx.F32, at, 0, k.Mul(k.Load(ptx.F32, at, 0), scale)) })
		})
	})
	return k.Kernel()
}
