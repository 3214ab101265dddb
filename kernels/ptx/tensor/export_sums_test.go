package tensor

import "github.com/pce-engine/pce/kernels/ptx"

// SumModule holds the kernels on sums.
func (v Variant) SumModule() *ptx.Module {
	m := &ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: []*ptx.Kernel{
		v.forward(), v.stored(), v.backward(), v.gather(), v.move(), v.count(),
	}}
	v.addResident(m)
	m.Kernels = append(m.Kernels, v.maxima()...)
	return m
}
