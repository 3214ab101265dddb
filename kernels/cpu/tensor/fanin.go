package tensor

import "github.com/pce-engine/pce/kernels"

// countWeights counts, for every unit of the owners lo to hi-1, the weights or
// categories that are not 0: a pseudocount is spread over these. A 0 stays 0 and
// nothing else becomes 0, so it is done once for parameters that come from
// outside.
func (x *executor) countWeights(params kernels.Buffer, lo, hi int) error {
	b, err := x.dev.Own(params)
	if err != nil {
		return err
	}
	if x.counted == b && x.countedAt == b.Writes() && x.countedLo <= lo && hi <= x.countedHi {
		return nil
	}
	x.counted, x.countedAt, x.countedLo, x.countedHi = b, b.Writes(), lo, hi
	if x.fanIn == nil {
		x.fanIn = make([]int32, int(x.prog.NodeBlocks)*x.size)
	}
	for i := range x.owners[lo:hi] {
		if o := &x.owners[lo+i]; o.Sum >= 0 {
			x.countSum(o.Sum)
		} else {
			x.countInput(o.Input)
		}
	}
	return nil
}

func (x *executor) countSum(sum int32) {
	v := x.prog.Sums[sum].Vector
	fanIn := x.fanIn[x.firstUnit(v):][:x.prog.Width(v)]
	clear(fanIn)
	for _, run := range x.tasks[x.taskOf[v]].sum.back {
		at := x.prog.ParamOffset(run.param)
		for r := range run.n {
			fanIn[run.row+r] += positive(x.call.params[at+int64(r*x.size):][:x.size])
		}
	}
}

// countInput counts for leaves whose table is what moves.
func (x *executor) countInput(input int32) {
	in := &x.prog.Inputs[input]
	if in.Table < 0 || in.Params >= 0 {
		return
	}
	width := x.prog.Width(in.Vector)
	fanIn := x.fanIn[x.firstUnit(in.Vector):][:width]
	clear(fanIn)
	for k, p := range x.call.params[in.Table:][:int(in.Codes)*width] {
		if p > 0 {
			fanIn[k%width]++
		}
	}
}

func positive(w []float32) (n int32) {
	for _, v := range w {
		if v > 0 {
			n++
		}
	}
	return n
}
