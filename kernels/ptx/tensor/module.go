package tensor

import (
	"sync"

	"github.com/pce-engine/pce/kernels/ptx"
)

// printed holds the kernels of variants and their texts: Variant → func() (kernels, text).
var printed sync.Map

// Printed returns the kernels of a variant, without their bodies, and the text of its
// module. Both are made when a variant is first asked for, and shared from then on: no
// caller may change them. A device takes variants from a few dozen at most, and each text
// has some hundred kilobytes; the bodies, which only the printer reads, would take ten
// times that.
func (v Variant) Printed() ([]ptx.Kernel, []byte) {
	once, ok := printed.Load(v)
	if !ok {
		once, _ = printed.LoadOrStore(v, sync.OnceValues(func() ([]ptx.Kernel, []byte) {
			m := v.Module()
			heads := make([]ptx.Kernel, len(m.Kernels))
			for i, k := range m.Kernels {
				heads[i] = *k
				heads[i].Body = nil
			}
			return heads, m.Text()
		}))
	}
	return once.(func() ([]ptx.Kernel, []byte))()
}

// Module returns the kernels of a variant, for the target that its compute
// capability has.
func (v Variant) Module() *ptx.Module {
	m := &ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: v.kernels()}
	if v.Major >= 9 {
		m.Minor, m.Target = 8, "sm_90"
	}
	v.addResident(m)
	return m
}

// addResident adds KernelForwardResident and the kernels on wide patches if the variant
// has them, with the dynamic shared memory.
func (v Variant) addResident(m *ptx.Module) {
	if v.Resident() {
		m.Dynamic = &ptx.Var{Name: room, Align: 16}
		m.Kernels = append(m.Kernels, v.forwardResident(), v.fit(), v.forwardWide(), v.backwardWide(), v.moveWide(), v.countWide())
	}
}

func (v Variant) kernels() []*ptx.Kernel {
	list := []*ptx.Kernel{
		v.leaf(), v.forward(), v.stored(), v.badRows(), v.logForward(), v.root(),
		v.sample(), v.sampleLeaf(),
		v.gather(), v.backward(), v.move(), v.count(),
		v.logBackward(), v.norms(), v.normsCount(), v.visits(), v.coefficients(), v.normalise(),
		v.leafMove(), v.leafGather(), v.leafCount(), v.leafVisits(),
		v.normsUpdate(), v.update(), v.leafUpdate(),
		v.normsAverages(), v.coefficientsVisits(), v.updateAverages(), v.leafUpdateAverages(),
	}
	if v.Queries {
		list = append(list, v.posterior(), v.posteriorUnits())
		list = append(list, v.maxima()...)
	}
	return list
}

// DynamicShared is the most dynamic shared memory, in bytes, that launches of a kernel
// ask for on a card whose blocks may have limit bytes of shared memory in all.
func (v Variant) DynamicShared(kernel string, limit int) int {
	most, fixed := 0, 0
	switch kernel {
	case KernelForwardResident:
		most, fixed = v.ResidentBytes(ResidentColumns), v.ResidentShared()
	case KernelForwardWide:
		most = ForwardWideShared
	case KernelBackwardWide:
		most = WideShared
	case KernelMoveWide, KernelCountWide:
		most, fixed = PatchTotals(WidePatch), PatchShared(WidePatch)
	case KernelMove, KernelCount:
		if v.Patches() {
			most, fixed = PatchTotals(NarrowPatch), PatchShared(NarrowPatch)
		}
	}
	return min(most, limit-fixed)
}
