package tensor

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/tensor"
)

// floorWeight is the least a positive weight can become: it keeps flow over
// weight finite in float32.
const floorWeight = 0x1p-100

// ruleArgs is a rule in the form that the update reads. Anemone is EM with scaled
// flows whose step each unit has for itself.
type ruleArgs struct {
	step, pseudocount float64
	scale             float64   // of the flows
	visits            []float32 // by unit of node space, for Anemone
	averages          []float32 // of the flows, for Anemone
	keep, take        float64   // shares of the averages and of the flows in the new averages
}

func newRule(r tensor.Rule) ruleArgs {
	return ruleArgs{step: r.Step, pseudocount: r.Pseudocount, scale: 1}
}

// stepOf returns how far a unit of node space goes, given its normaliser.
func (r *ruleArgs) stepOf(norm float64, unit int) float64 {
	if r.visits == nil {
		return r.step
	}
	d := r.scale*norm + r.pseudocount
	if !(d > 0) {
		return 0
	}
	return d / ((1-r.step)*float64(r.visits[unit]) + d)
}

// coefficients returns what moves the weights of a unit of node space: t·keep +
// f·gain + prior, given its normaliser and the number of its weights.
func (r *ruleArgs) coefficients(norm float32, unit, fan int) (keep, gain, prior float32) {
	d := r.scale*float64(norm) + r.pseudocount
	if !(d > 0) || fan == 0 {
		return 1, 0, 0
	}
	step := r.stepOf(float64(norm), unit)
	return float32(1 - step), float32(step * r.scale / d), float32(step * r.pseudocount / (float64(fan) * d))
}

// moveSum ends the backward pass of a sum: its weights move, or the shard's
// flows are added to those of the call.
func (x *executor) moveSum(w *worker, t *task, grad []float32, base int32) {
	p := x.prog
	owner := t.sum.owner
	norm := w.row[:t.width]
	x.ownerNorm(owner, norm)
	if x.call.flows == nil {
		x.updateSum(w, owner, t, grad, norm, false)
		return
	}
	off := p.ParamOffset(base)
	total := int(p.Sums[owner].NumBlocks) * x.size * x.size
	lo, hi := split(total, 64, w.part, w.parts)
	if lo < hi {
		x.set.Quantize(&x.call.flows[off+int64(lo)], &x.call.params[off+int64(lo)], &grad[lo], hi-lo, x.grid)
	}
	if w.part == 0 {
		x.set.Quantize(&x.call.flows[p.SumNorm(owner)], &norm[0], nil, t.width, x.grid)
	}
}

// ownerNorm adds up the normalisers of all sums that share an owner's weights.
func (x *executor) ownerNorm(owner int32, out []float32) {
	members := x.members[owner]
	if len(members) == 1 {
		x.norm(members[0], out)
		return
	}
	clear(out)
	one := make([]float32, len(out))
	for _, v := range members {
		x.norm(v, one)
		for i, n := range one {
			out[i] += n
		}
	}
	for i := range out {
		out[i] = x.round(out[i])
	}
}

// updateSum moves the weights of a sum. counts holds flow over weight, or with
// plain the flows themselves, in the layout of the weights.
func (x *executor) updateSum(w *worker, owner int32, t *task, counts, norm []float32, plain bool) {
	p := x.prog
	sum := &p.Sums[owner]
	width := t.width
	keep, gain, prior := w.row[width:2*width], w.row[2*width:3*width], w.row[3*width:4*width]
	total := w.row[4*width : 5*width]
	first := x.firstUnit(sum.Vector)
	lo, hi := split(width, x.size, w.part, w.parts)
	for u := lo; u < hi; u++ {
		keep[u], gain[u], prior[u] = x.call.rule.coefficients(norm[u], first+u, int(x.fanIn[first+u]))
		total[u] = 0
	}
	base := p.ParamOffset(sum.Param)
	each := func(do func(at int64, row, n int)) {
		for k := range t.sum.back {
			run := &t.sum.back[k]
			a, b := max(lo, run.row), min(hi, run.row+run.n)
			if a < b {
				do(p.ParamOffset(run.param)+int64((a-run.row)*x.size), a, b-a)
			}
		}
	}
	each(func(at int64, row, n int) {
		w.update = micro.UpdateArgs{
			Rows: n, W: x.size, T: &x.call.params[at], G: &counts[at-base],
			Keep: &keep[row], Gain: &gain[row], Prior: &prior[row], Sum: &total[row],
			Grid: x.fine, Floor: floorWeight, Plain: plain,
		}
		x.set.UpdatePanel(&w.update)
	})
	for u := lo; u < hi; u++ {
		if total[u] > 0 && !math.IsInf(float64(total[u]), 0) {
			total[u] = 1 / total[u]
		} else {
			total[u] = 1
		}
	}
	each(func(at int64, row, n int) { x.set.ScalePanel(&x.call.params[at], &total[row], n, x.size) })
}

// update moves the parameters of a range of owners by the flows of all shards,
// and clears these.
func (x *executor) update(a *tensor.UpdateArgs) error {
	params, err := argument[float32](x.dev, "parameters", a.Params, x.prog.NumParams)
	if err != nil {
		return err
	}
	flows, err := argument[int64](x.dev, "flows", a.Flows, x.prog.FlowLen())
	if err != nil {
		return err
	}
	lo, hi, err := a.Part(len(x.owners))
	if err != nil {
		return err
	}
	x.call.params, x.call.rule = params, newRule(a.Rule)
	if err := x.countWeights(a.Params, lo, hi); err != nil {
		return err
	}
	if a.Rule.Anemone != nil {
		if err := x.anemone(a); err != nil {
			return err
		}
	}
	jobs := make([]func(w *worker), 0, hi-lo)
	for i := range x.owners[lo:hi] {
		o := &x.owners[lo+i]
		if o.Sum >= 0 {
			jobs = append(jobs, func(w *worker) { x.applySum(w, o.Sum, flows) })
		} else {
			jobs = append(jobs, func(w *worker) { x.applyInput(w, o, flows) })
		}
	}
	x.shareOut(jobs)
	x.call.rule = ruleArgs{}
	return nil
}

// shareOut does jobs that do not depend on each other, each on one thread. Where
// the threads share their scratch memory the first does all.
func (x *executor) shareOut(jobs []func(w *worker)) {
	if x.backwardPlan.lockstep {
		solo := *x.workers[0]
		solo.part, solo.parts = 0, 1
		for _, do := range jobs {
			do(&solo)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, w := range x.workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(jobs)); i = next.Add(1) - 1 {
				jobs[i](w)
			}
		})
	}
	wg.Wait()
}

// counts turns the integer flows from at on back into float32 counts, or into
// their averages, and clears them.
func (x *executor) counts(dst []float32, flows []int64, at int64) {
	src := flows[at : at+int64(len(dst))]
	for i, f := range src {
		dst[i] = float32(f) * x.grid
	}
	clear(src)
	if x.call.rule.averages != nil {
		x.call.rule.average(dst, at)
	}
}

func (x *executor) applySum(w *worker, owner int32, flows []int64) {
	if x.singles != nil {
		x.singles.applySum(x, w, owner, flows)
		return
	}
	p := x.prog
	sum := &p.Sums[owner]
	t := &x.tasks[x.taskOf[sum.Vector]]
	off := p.ParamOffset(sum.Param)
	n := int(sum.NumBlocks) * x.size * x.size
	x.counts(w.grad[:n], flows, off)
	norm := w.row[:t.width]
	x.counts(norm, flows, p.SumNorm(owner))
	x.updateSum(w, owner, t, w.grad, norm, true)
}
