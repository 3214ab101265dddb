package tensor

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
)

// begin checks and keeps the arguments of a call over rows.
func (x *executor) begin(rows int, params, codes, values kernels.Buffer) (err error) {
	x.call.rows = rows
	if x.call.params, err = argument[float32](x.dev, "parameters", params, x.prog.NumParams); err != nil {
		return err
	}
	coded, valued := int64(0), int64(0)
	for _, c := range x.prog.Columns {
		if c.Codes > 0 {
			coded++
		} else {
			valued++
		}
	}
	x.call.codes = columnCodes{}
	if n := coded * int64(x.rowsMax); x.wideCodes {
		x.call.codes.wide, err = argument[uint32](x.dev, "codes", codes, n)
	} else {
		x.call.codes.narrow, err = argument[uint16](x.dev, "codes", codes, n)
	}
	if err != nil {
		return err
	}
	x.call.vals, err = argument[float32](x.dev, "values", values, valued*int64(x.rowsMax))
	return err
}

// argument returns the memory of a buffer that must hold n elements of type T; of
// none it may be any, or nil.
func argument[T kernels.Element](d *cpu.Device, what string, b kernels.Buffer, n int64) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	own, err := d.Own(b)
	if err != nil {
		return nil, err
	}
	if t := kernels.TypeOf[T](); own.DType() != t || int64(own.Len()) < n {
		return nil, fmt.Errorf("%w: cpu: buffer of %s has %d elements of %v, want %d of %v", kernels.ErrDevice, what, own.Len(), own.DType(), n, t)
	}
	return cpu.Elements[T](own), nil
}

func tooShort(what string, have, want int) error {
	return fmt.Errorf("%w: cpu: room for %d %s, want %d", kernels.ErrDevice, have, what, want)
}
