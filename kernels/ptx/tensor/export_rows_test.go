package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// RowModule holds the kernels that tests of this package start one by one.
func (v Variant) RowModule() *ptx.Module {
	return &ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: []*ptx.Kernel{
		v.badRows(), v.root(), v.logForward(), v.logBackward(),
		v.norms(), v.normsCount(), v.normsUpdate(), v.normsAverages(), v.visits(),
		v.coefficients(), v.coefficientsVisits(), v.update(), v.updateAverages(), v.normalise(), v.exponents(),
	}}
}

// exponents adds up the three exponents of each of 128 products in list, in their
// order and in pairs: what list has becomes both sums and a 0.
func (v Variant) exponents() *ptx.Kernel {
	k := v.begin("exponents", 128, 0, ArgList)
	at := k.At(k.arg(ArgList), k.Mad(k.Special("%ctaid.x"), 128, k.Special("%tid.x")), 12)
	var terms []ptx.Value
	e := exponentSum{k.Var(ptx.S32), k.Var(ptx.S32)}
	k.start(e)
	for i := range 3 {
		terms = append(terms, k.Load(ptx.S32, at, 4*i))
		k.addTo(e, terms[i])
	}
	pairs := k.addExponents(k.addExponents(terms[0], terms[1]), terms[2])
	k.Store(ptx.S32, at, 0, k.settle(e))
	k.Store(ptx.S32, at, 4, pairs)
	k.Store(ptx.S32, at, 8, 0)
	return k.Kernel()
}
