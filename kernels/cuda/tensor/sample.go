package tensor

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
)

// sample draws the missing cells of the rows that forward has evaluated.
func (x *executor) sample(rows int, a *contract.SampleArgs) error {
	watched := len(x.prog.Watched())
	if len(a.Units) < rows*watched {
		return fmt.Errorf("%w: %s: Units has %d elements, want %d", kernels.ErrDevice, x.name, len(a.Units), rows*watched)
	}
	c := &call{}
	if err := x.inputs(c, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	x.draws = contract.NewDraws(a.Seed, a.First)
	if err := x.run("sample", rows, nil, c, phase{phaseSample, x.taken(), x.schedule.Sample}); err != nil {
		return err
	}
	return x.readUnits(rows, a.Units)
}

// taken is the memory of the units that rows take.
func (x *executor) taken() cuda.Span {
	return cuda.Span{At: x.fixed[tensor.ArgTaken], Bytes: 4 * int64(x.tables.Rows) * int64(len(x.prog.Vectors))}
}

// readUnits waits for the last launch and reads the units of the watched inputs that rows have
// taken.
func (x *executor) readUnits(rows int, to []int32) error {
	watched := len(x.prog.Watched())
	units := make([]uint32, x.tables.Rows*watched)
	if err := x.card.CopyOut(kernels.Memory(units), x.fixed[tensor.ArgTaken], x.last); err != nil {
		return err
	}
	for i := range watched {
		for r := range rows {
			to[i*rows+r] = int32(units[i*x.tables.Rows+r]) - 1
		}
	}
	return nil
}
