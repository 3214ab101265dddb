package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/ptx"
)

// root writes the log-likelihoods of rows, in nats.
func (v Variant) root() *ptx.Kernel {
	k := v.begin(KernelRoot, 256, 0, ArgControl, ArgVal, ArgExp, ArgBad, ArgLL, ArgSums, ArgList)
	row := k.Mad(k.Special("%ctaid.x"), 256, k.Special("%tid.x"))
	k.ReturnIf(k.Ge(row, k.control(ptx.U32, ControlRows)))
	sum := k.record(ArgSums, k.Load(ptx.U32, k.arg(ArgList), 0), SumSize)
	first := k.MadWide(row, k.Load(ptx.U32, sum, SumWidth), k.Load(ptx.U64, sum, SumVal))
	value := k.Load(ptx.F32, k.element(ArgVal, first), 0)
	whole := k.Load(ptx.S32, k.At(k.arg(ArgExp), k.Add(k.Load(ptx.U32, sum, SumExp), row), 4), 0)
	exp := k.Select(k.Eq(whole, Lost), math.Inf(-1), k.Cvt(ptx.F64, whole, "rn"))
	marked := k.Ne(k.Load(ptx.U32, k.At(k.arg(ArgBad), row, 4), 0), 0)
	ll := k.At(k.arg(ArgLL), row, 8)
	k.IfElse(marked, func() {
		k.Store(ptx.F64, ll, 0, k.Mul(k.Add(k.Cvt(ptx.F64, value), exp), math.Ln2))
	}, func() {
		k.Store(ptx.F64, ll, 0, k.FMA(exp, math.Ln2, k.log(k.Cvt(ptx.F64, value))))
	})
	return k.Kernel()
}
