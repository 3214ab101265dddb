package tensor

import (
	"fmt"
	"slices"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
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
