package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// LeafModule holds the kernels on leaves, and those of functionKernels.
func (v Variant) LeafModule() *ptx.Module {
	return &ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: append([]*ptx.Kernel{
		v.leaf(), v.leafMove(), v.leafGather(), v.leafCount(), v.leafUpdate(), v.leafUpdateAverages(), v.leafVisits(), v.leafLog2s(), v.posterior(), v.posteriorUnits(), v.modesOfTables(), v.modeCodes(),
	}, v.functionKernels()...)}
}

// functionKernels apply a function of float64 to x, [rows], each.
func (v Variant) functionKernels() (ks []*ptx.Kernel) {
	for name, f := range map[string]func(k *kernel, x ptx.Value) ptx.Value{
		"log": (*kernel).log, "log1p": (*kernel).log1p, "exp": (*kernel).exp, "exp2": (*kernel).exp2,
		"log1mexp": (*kernel).log1mexp, "softplus": (*kernel).softplus, "factorial": (*kernel).logFactorial,
	} {
		k := v.begin("function_"+name, 128, 0, ArgControl, "x", "y")
		i := k.Mad(k.Special("%ctaid.x"), 128, k.Special("%tid.x"))
		k.ReturnIf(k.Ge(i, k.control(ptx.U32, ControlRows)))
		k.Store(ptx.F64, k.At(k.arg("y"), i, 8), 0, f(k, k.Load(ptx.F64, k.At(k.arg("x"), i, 8), 0)))
		ks = append(ks, k.Kernel())
	}
	return ks
}

// leafLog2s writes the log2 densities of the units of a function, list's first, at
// the first value of its column to y: a thread each.
func (v Variant) leafLog2s() *ptx.Kernel {
	k := v.begin("leaf_log2s", 128, 0, ArgParams, ArgValues, ArgInputs, ArgConstants, ArgList, "y")
	unit := k.Special("%tid.x")
	in := k.record(ArgInputs, k.entry(k.Mov(ptx.U32, 0)), InputSize)
	x := k.Load(ptx.F32, k.At(k.arg(ArgValues), k.Load(ptx.U32, in, InputAt), 4), 0)
	k.ReturnIf(k.Ge(unit, k.Load(ptx.U32, in, InputUnits)))
	k.Store(ptx.F64, k.At(k.arg("y"), unit, 8), 0, k.leafLog2(in, x, unit))
	return k.Kernel()
}
