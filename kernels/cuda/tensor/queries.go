package tensor

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
)

// posteriors sends the flows of the rows that forward has evaluated down and writes the
// distributions of columns.
func (x *executor) posteriors(rows int, a *contract.PosteriorsArgs) error {
	offsets, err := x.prog.PosteriorOffsets(a.Of)
	if err != nil {
		return fmt.Errorf("%w: %s: Posteriors: %w", kernels.ErrDevice, x.name, err)
	}
	length := int64(offsets[len(a.Of)])
	if length == 0 {
		return nil
	}
	c := &call{}
	if err := x.inputs(c, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	if err := x.use(c, tensor.ArgOut, a.Out, kernels.Float32, int64(rows)*length); err != nil {
		return err
	}
	if err := x.choose(a.Of, offsets); err != nil {
		return err
	}
	return x.run("posteriors", rows, nil, c,
		phase{phaseBackward, cuda.Span{}, x.schedule.Backward}, phase{phaseQuery, cuda.Span{}, x.schedule.Posteriors})
}

// choose tells the card which columns a call asks for, unless it has asked for them last.
func (x *executor) choose(columns []int32, offsets []int) error {
	if slices.Equal(columns, x.chosen) {
		return nil
	}
	x.chosen = nil
	data := kernels.Memory(x.tables.Offsets(columns, offsets))
	to := cuda.Span{At: x.fixed[tensor.ArgOffsets], Bytes: int64(len(data))}
	if err := x.card.CopyIn(to, 0, data, x.last); err != nil { // the last launch may still read those of its call
		return err
	}
	x.chosen = slices.Clone(columns)
	return nil
}

// maximise evaluates rows by maxima, and for their bounds by sums of maxima before that, and
// leads each down to its choice.
func (x *executor) maximise(rows int, a *contract.MaximiseArgs) error {
	functions, modes := x.prog.Functions(), 0
	for _, f := range functions {
		modes += int(x.prog.Vectors[x.prog.Inputs[f].Vector].Units)
	}
	bounds := 0
	if a.Bound != nil {
		bounds = rows
	}
	for _, given := range []struct {
		name    string
		n, want int
	}{
		{"Modes", len(a.Modes), modes}, {"Log", len(a.Log), rows}, {"Bound", len(a.Bound), bounds}, {"Units", len(a.Units), rows * len(x.prog.Watched())},
	} {
		if given.n < given.want {
			return fmt.Errorf("%w: %s: %s has %d elements, want %d", kernels.ErrDevice, x.name, given.name, given.n, given.want)
		}
	}
	c := &call{recomputed: &a.Recomputed}
	if err := x.inputs(c, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	data := kernels.Memory(a.Modes[:modes])
	to := cuda.Span{At: x.fixed[tensor.ArgModes], Bytes: int64(len(data))}
	if err := x.card.CopyIn(to, 0, data, x.last); err != nil {
		return err
	}
	up := func(work []plan.Work) phase { p := x.evaluation(); p.work = work; return p }
	if a.Bound != nil {
		if err := x.run("bound", rows, nil, c, up(x.schedule.Bound)); err != nil {
			return err
		}
		if err := x.readLogs(a.Bound[:rows]); err != nil {
			return err
		}
	}
	if err := x.run("maximise", rows, nil, c, up(x.schedule.Maximise), phase{phaseSample, x.taken(), x.schedule.Choose}); err != nil {
		return err
	}
	if err := x.readLogs(a.Log[:rows]); err != nil {
		return err
	}
	return x.readUnits(rows, a.Units)
}

// readLogs waits for the last launch and reads the logs that it has left of the root.
func (x *executor) readLogs(logs []float64) error {
	return x.card.CopyOut(kernels.Memory(logs), x.fixed[tensor.ArgLL], x.last)
}
