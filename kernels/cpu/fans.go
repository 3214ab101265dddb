package cpu

// countWeights counts, for every unit of an owner, the weights or categories
// that are not 0: a pseudocount is spread over these. A 0 stays 0 and nothing
// else becomes 0, so it is done once for parameters that come from outside.
func (x *executor) countWeights(params *buffer) {
	if x.counted == params && x.countedAt == params.writes {
		return
	}
	x.counted, x.countedAt = params, params.writes
	if x.fans == nil {
		x.fans = make([]int32, int(x.prog.NodeBlocks)*x.size)
	}
	clear(x.fans)
	for i := range x.prog.Sums {
		if s := &x.prog.Sums[i]; s.Owner == int32(i) {
			fans := x.fans[x.firstUnit(s.Vector):]
			for _, run := range x.tasks[x.taskOf[s.Vector]].sum.back {
				at := x.prog.ParamOffset(run.param)
				for r := range run.n {
					row := params.f32[at+int64(r*x.size):][:x.size]
					fans[run.row+r] += positive(row)
				}
			}
		}
	}
	for i := range x.prog.Inputs {
		in := &x.prog.Inputs[i]
		if in.Owner != int32(i) || in.Table < 0 || in.Params >= 0 {
			continue
		}
		width := x.prog.Width(in.Vector)
		fans := x.fans[x.firstUnit(in.Vector):][:width]
		table := params.f32[in.Table:][:int(in.Codes)*width]
		for k, p := range table {
			if p > 0 {
				fans[k%width]++
			}
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
