package tensor

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/internal/invariants"
	"github.com/pce-engine/pce/layers"
)

// checkLogs panics if a log-likelihood is NaN or positive where every leaf is
// tabulated: no outcome has a probability above 1.
func (x *executor) checkLogs(ll []float64) {
	if !invariants.Enabled {
		return
	}
	bounded := true
	for i := range x.prog.Inputs {
		bounded = bounded && x.prog.Inputs[i].Codes > 0
	}
	for r, l := range ll {
		if !(l <= 1e-3) && (bounded || l != l) {
			panic(fmt.Sprintf("BUG: cpu: log-likelihood %v in row %d", l, r))
		}
	}
}

// checkFlows panics unless, after a backward pass, each sum hands down the flow
// that it received, within the rounding of float32 sums.
func (x *executor) checkFlows() {
	if !invariants.Enabled {
		return
	}
	p := x.prog
	for i := range p.Vectors {
		v := &p.Vectors[i]
		if v.Kind != layers.SumVector {
			continue
		}
		in := make([]float32, p.Width(int32(i)))
		x.norm(int32(i), in)
		received, sent := 0.0, 0.0
		for _, n := range in {
			received += float64(n)
		}
		s := &p.Sums[v.Def]
		for e := s.ElemLo; e < s.ElemHi; e++ {
			at := int(p.Elements[e].First) * x.size
			for _, n := range x.norms[at : at+int(p.Elements[e].Count)*x.size] {
				sent += float64(n)
			}
		}
		// bfloat16 products are off by 2^-8 at most.
		tol := 1e-4
		if x.mixed != inFloats {
			tol = 0x1p-7
		}
		if !(math.Abs(received-sent) <= tol*received+1e-6*float64(x.call.rows)) {
			panic(fmt.Sprintf("BUG: cpu: sum %d received a flow of %v and sent %v", v.Def, received, sent))
		}
	}
}
