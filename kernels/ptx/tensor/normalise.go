package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// NormaliseSteps is how many steps of a group a lane of KernelNormalise has in flight.
const NormaliseSteps = 4

// normalise makes the weights of each unit of a group add up to 1. A warp does as
// many units at a time as blocks of S columns fit on its lanes, which read 32 weights
// that follow each other; each lane adds up one column of every step in order, and a
// butterfly adds the lanes of a unit. The places of several steps are read before their
// weights, and these before the first is used.
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
		own := k.At(k.arg(ArgParams), i, 4)
		each := func(do func(oks, ats, thetas []ptx.Value)) {
			k.For(ptx.U32, step, end, NormaliseSteps, func(first ptx.Value) {
				at := k.record(ArgSteps, first, StepSize)
				params, thetas := k.Vars(ptx.U32, NormaliseSteps), k.Vars(ptx.F32, NormaliseSteps)
				var oks, ats []ptx.Value
				for n, p := range params {
					oks = append(oks, k.Lt(k.Add(first, n), end))
					k.Set(p, 0)
					k.Guard(oks[n], func() { k.Into(p).Load(ptx.U32, at, n*StepSize+StepParam) })
				}
				for n, p := range params {
					ats = append(ats, k.MadWide(p, 4*s*s, own))
					k.Set(thetas[n], 0)
					k.Guard(oks[n], func() { k.Into(thetas[n]).Load(ptx.F32, ats[n], 0) })
				}
				do(oks, ats, thetas)
			})
		}
		total := k.Mov(ptx.F32, 0)
		k.If(exists, func() {
			each(func(_, _, thetas []ptx.Value) {
				for _, theta := range thetas {
					k.Into(total).Add(total, theta)
				}
			})
		})
		for m := s / 2; m > 0; m /= 2 {
			k.Into(total).Add(total, k.Shuffle("bfly", total, m))
		}
		// The total of units that do not exist is 0.
		usable := k.And(k.Gt(total, 0), k.Lt(total, math.Inf(1)))
		k.If(usable, func() {
			scale := k.Rcp(total)
			each(func(oks, ats, thetas []ptx.Value) {
				for n, theta := range thetas {
					k.Guard(oks[n], func() { k.Store(ptx.F32, ats[n], 0, k.Mul(theta, scale)) })
				}
			})
		})
	})
	return k.Kernel()
}
