package tensor

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

// trace is what an average of flows becomes 0 below, far under the grid: without
// it, those of weights that no flow reaches any more would end as denormal
// numbers, which are slow.
const trace = 0x1p-64

// anemone checks and keeps the arguments that an update by Anemone alone has.
func (x *executor) anemone(a *tensor.UpdateArgs) error {
	visits, err := argument[float32](x.dev, "visits", a.Visits, x.prog.VisitLen())
	if err != nil {
		return err
	}
	averages, err := argument[float32](x.dev, "averages", a.Averages, x.prog.AverageLen())
	if err != nil {
		return err
	}
	m := a.Rule.Anemone
	if !(m.Momentum >= 0 && float32(m.Momentum) < 1 && m.Weight >= 0) || m.Rows < 1 || m.Impossible < 0 || m.Impossible > m.Rows {
		return fmt.Errorf("%w: cpu: Anemone over %d rows, %d of them impossible, with momentum %v, weight %v; want rows, a momentum of 0 to below 1 and a weight of 0 or more",
			kernels.ErrDevice, m.Rows, m.Impossible, m.Momentum, m.Weight)
	}
	r := &x.call.rule
	r.visits, r.averages = visits, averages
	r.keep = float64(float32(m.Momentum)) // shares that add up to 1 in float32 too
	r.take = 1 - r.keep
	if m.Weight == 0 {
		r.keep = 0
	}
	r.scale = m.Scale(r.step)
	return nil
}

// average moves the averages from at on by counts, and turns these into them.
// The conversions keep compilers from fusing the products with the sum.
func (r *ruleArgs) average(counts []float32, at int64) {
	averages := r.averages[at : at+int64(len(counts))]
	keep, take := float32(r.keep), float32(r.take)
	for i, old := range averages {
		a := float32(old*keep) + float32(counts[i]*take)
		if a < trace {
			a = 0
		}
		averages[i], counts[i] = a, a
	}
}

// averagePair is average for one count that is kept as a pair of float32.
func (r *ruleArgs) averagePair(count float64, at, residue int64) float64 {
	high, low := &r.averages[at], &r.averages[residue]
	a := float64((float64(*high)+float64(*low))*r.keep) + float64(count*r.take)
	*high = float32(a)
	*low = float32(a - float64(*high))
	return float64(*high) + float64(*low)
}

// visits writes the flow through each unit that owns parameters, with that of
// the units which share them.
func (x *executor) visits(out []float32) {
	p := x.prog
	clear(out[:p.VisitLen()])
	for o, members := range x.members {
		x.addFlows(p.Sums[o].Vector, members, out)
	}
	for o, members := range x.inputMembers {
		x.addFlows(p.Inputs[o].Vector, members, out)
	}
}

func (x *executor) addFlows(owner int32, members []int32, out []float32) {
	at := x.firstUnit(owner)
	for _, v := range members {
		x.addFlow(v, out[at:at+x.prog.Width(owner)])
	}
}

// firstUnit is the place of a vector's first unit in node space.
func (x *executor) firstUnit(v int32) int { return int(x.prog.Vectors[v].First) * x.size }
