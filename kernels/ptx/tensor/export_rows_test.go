package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// RowModule holds the kernels that tests of this package start one by one.
func (v Variant) RowModule() *ptx.Module {
	return &ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: []*ptx.Kernel{
		v.badRows(), v.root(), v.logForward(), v.logBackward(),
		v.norms(), v.normsCount(), v.normsUpdate(), v.normsAverages(), v.visits(),
		v.coefficients(), v.coefficientsVisits(), v.update(), v.updateAverages(), v.normalise(),
	}}
}
