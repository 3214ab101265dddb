package tensor

import (
	"math"

	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// maximise evaluates the rows by maxima and takes them from the root down.
func (x *executor) maximise(rows int, a *tensor.MaximiseArgs) error {
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if err := x.roomForUnits(rows, a.Units); err != nil {
		return err
	}
	switch {
	case len(a.Modes) < x.peaks.functions:
		return tooShort("modes", len(a.Modes), x.peaks.functions)
	case len(a.Log) < rows:
		return tooShort("log values", len(a.Log), rows)
	case a.Bound != nil && len(a.Bound) < rows:
		return tooShort("bounds", len(a.Bound), rows)
	}
	x.peaks.modes = a.Modes
	x.share(len(x.prog.Inputs), func(_ *worker, i int) { x.findPeaks(int32(i)) })
	if x.singles != nil {
		x.singles.stale = false
	}
	x.call.peaks = &x.peaks
	defer func() { x.call.peaks, x.call.most = nil, false }()
	if a.Bound != nil {
		x.up(a.Bound[:rows])
	}
	x.call.most = true
	x.up(a.Log[:rows])
	a.Recomputed = x.recomputed.Load()
	x.walk(x.largest)
	x.share(len(x.prog.Inputs), func(_ *worker, i int) { x.fillPeaks(&x.prog.Inputs[i]) })
	x.unitsTaken(a.Units)
	return nil
}

// largest is the choice of the operand with the largest weight times value.
func (x *executor) largest(_ *worker, t *task, _, unit int, o operands) int {
	most, pick := 0.0, -1
	if o.logs != nil {
		most = math.Inf(-1)
	}
	runs := t.sum.rowOf(unit / x.size * x.size)
	for k := range runs {
		run := &runs[k]
		for i, tile := range run.tiles {
			col := run.col + i*x.size
			for j, theta := range x.call.params[x.prog.ParamOffset(tile)+int64(unit%x.size*x.size):][:x.size] {
				y := float64(theta)
				if o.logs != nil {
					y = math.Log(y) + o.logs[col+j]
				} else {
					y *= float64(o.values[col+j])
				}
				if y > most {
					most, pick = y, col+j
				}
			}
		}
	}
	return pick
}

// fillPeaks writes the codes of an input in rows that take one of its units.
func (x *executor) fillPeaks(in *layers.Input) {
	if in.Codes == 0 {
		return
	}
	best := make([]int, x.prog.Vectors[in.Vector].Units) // codes of units, from 1
	codes, taken := x.columnCodes(in), x.takenOf(in.Vector)
	for r := range x.call.rows { // other inputs of the column write the codes of rows that take them
		u := int(taken[r]) - 1
		if u < 0 || codes.at(r) != in.Codes {
			continue
		}
		if best[u] == 0 {
			best[u] = x.peakCode(in, u) + 1
		}
		codes.set(r, best[u]-1)
	}
}
