package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// KernelCoefficientsVisits is KernelCoefficients for Anemone, where each unit takes a
// step of its own, by its visits.
const KernelCoefficientsVisits = "coefficients_visits"

// coefficients turns the flow through each unit, norm, into what moves its weights,
// θ·keep + count·gain + prior. With d = scale·norm + pseudocount and fan the number
// of weights that are not 0,
//
//	keep = 1-step, gain = step·scale/d, prior = step·pseudocount/(fan·d)
//
// and nothing moves where d or fan is 0.
func (v Variant) coefficients() *ptx.Kernel {
	k := v.begin(KernelCoefficients, 256, 0, coefficientArgs...)
	k.coefficients(func(_, _, step ptx.Value) ptx.Value { return step })
	return k.Kernel()
}

// coefficientsVisits is coefficients with the step d / ((1-step)·visits + d).
func (v Variant) coefficientsVisits() *ptx.Kernel {
	k := v.begin(KernelCoefficientsVisits, 256, 0, append([]string{ArgVisits}, coefficientArgs...)...)
	k.coefficients(func(unit, d, step ptx.Value) ptx.Value {
		visits := k.Cvt(ptx.F64, k.Load(ptx.F32, k.At(k.arg(ArgVisits), unit, 4), 0))
		return k.Div(d, k.Add(k.Mul(k.Sub(1.0, step), visits), d))
	})
	return k.Kernel()
}

var coefficientArgs = []string{ArgControl, ArgNorms, ArgFans, ArgKeep, ArgGain, ArgPrior}

// coefficients writes the coefficients of a unit, whose step stepOf gives.
func (k *kernel) coefficients(stepOf func(unit, d, step ptx.Value) ptx.Value) {
	unit := k.Mad(k.Special("%ctaid.x"), 256, k.Special("%tid.x"))
	k.ReturnIf(k.Ge(unit, k.control(ptx.U32, ControlUnits)))
	scale, pseudocount := k.control(ptx.F64, ControlScale), k.control(ptx.F64, ControlPseudocount)
	norm := k.Cvt(ptx.F64, k.Load(ptx.F32, k.At(k.arg(ArgNorms), unit, 4), 0))
	fan := k.Load(ptx.U32, k.At(k.arg(ArgFans), unit, 4), 0)
	d := k.Add(k.Mul(scale, norm), pseudocount)
	keep, gain, prior := k.Mov(ptx.F32, 1), k.Mov(ptx.F32, 0), k.Mov(ptx.F32, 0)
	k.If(k.And(k.Gt(d, 0), k.Ne(fan, 0)), func() {
		step := stepOf(unit, d, k.control(ptx.F64, ControlStep))
		k.Into(keep).Cvt(ptx.F32, k.Sub(1.0, step), "rn")
		k.Into(gain).Cvt(ptx.F32, k.Div(k.Mul(step, scale), d), "rn")
		share := k.Mul(k.Cvt(ptx.F64, fan, "rn"), d)
		k.Into(prior).Cvt(ptx.F32, k.Div(k.Mul(step, pseudocount), share), "rn")
	})
	k.Store(ptx.F32, k.At(k.arg(ArgKeep), unit, 4), 0, keep)
	k.Store(ptx.F32, k.At(k.arg(ArgGain), unit, 4), 0, gain)
	k.Store(ptx.F32, k.At(k.arg(ArgPrior), unit, 4), 0, prior)
}
