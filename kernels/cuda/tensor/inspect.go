package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	contract "github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// inspect copies the log values of a vector.
func (x *executor) inspect(rows int, a *contract.InspectArgs) error {
	p := x.prog
	if a.Vector < 0 || a.Vector >= len(p.Vectors) {
		return fmt.Errorf("%w: %s: inspection of vector %d of %d", kernels.ErrDevice, x.name, a.Vector, len(p.Vectors))
	}
	v := &p.Vectors[a.Vector]
	units := int(v.Units)
	if len(a.Log) < rows*units {
		return fmt.Errorf("%w: %s: Log has %d elements, want %d", kernels.ErrDevice, x.name, len(a.Log), rows*units)
	}
	if p.Tabulated(int32(a.Vector)) {
		return x.inspectTable(rows, &p.Inputs[v.Def], a)
	}
	width := p.Width(int32(a.Vector))
	values, exps, bad := make([]float32, rows*width), make([]int32, rows), make([]uint32, rows)
	if err := x.card.CopyOut(kernels.Memory(values), x.fixed[tensor.ArgVal]+cuda.Ptr(4*x.tables.Slot[a.Vector]), x.last); err != nil {
		return err
	}
	if err := x.card.CopyOut(unsafe.Slice((*byte)(unsafe.Pointer(&exps[0])), 4*rows), x.fixed[tensor.ArgExp]+cuda.Ptr(4*a.Vector*x.tables.Rows), x.last); err != nil {
		return err
	}
	if err := x.card.CopyOut(kernels.Memory(bad), x.fixed[tensor.ArgBad], x.last); err != nil {
		return err
	}
	own, err := x.ownExps(int32(a.Vector), len(values))
	if err != nil {
		return err
	}
	for r := range rows {
		for u := range units {
			l := float64(values[r*width+u])
			if bad[r] == 0 {
				l = math.Log2(l) + float64(own[r*width+u])
			}
			if exps[r] == tensor.Lost {
				l = math.Inf(-1)
			}
			a.Log[r*units+u] = (l + float64(exps[r])) * math.Ln2
		}
	}
	return nil
}

// ownExps returns the exponents that the units of a vector have of their own in its
// first n values, zeros if they have none.
func (x *executor) ownExps(vector int32, n int) ([]float32, error) {
	own := make([]float32, n)
	v := &x.prog.Vectors[vector]
	if v.Kind != layers.InputVector || x.tables.Inputs[v.Def].Exps == 0 {
		return own, nil
	}
	at := x.tables.Slot[vector] + uint64(x.tables.Inputs[v.Def].Exps)
	return own, x.card.CopyOut(kernels.Memory(own), x.fixed[tensor.ArgVal]+cuda.Ptr(4*at), x.last)
}

// inspectTable looks the logs of a tabulated leaf up.
func (x *executor) inspectTable(rows int, in *layers.Input, a *contract.InspectArgs) error {
	width, units := x.prog.Width(in.Vector), int(x.prog.Vectors[in.Vector].Units)
	params, err := x.dev.Own(a.Params)
	if err != nil {
		return err
	}
	codes, err := x.dev.Own(a.Codes)
	if err != nil {
		return err
	}
	last := max(params.Used(), codes.Used())
	table, exps := make([]float32, (int(in.Codes)+1)*width), make([]float32, (int(in.Codes)+1)*width)
	if err := x.card.CopyOut(kernels.Memory(table), params.At()+cuda.Ptr(4*in.Table), last); err != nil {
		return err
	}
	if in.Exps >= 0 {
		if err := x.card.CopyOut(kernels.Memory(exps), params.At()+cuda.Ptr(4*in.Exps), last); err != nil {
			return err
		}
	}
	size := x.codeType.Bytes()
	cells := make([]byte, rows*size)
	if err := x.card.CopyOut(cells, codes.At()+cuda.Ptr(size*int(x.tables.CodesAt(in))), last); err != nil {
		return err
	}
	for r := range rows {
		var c int
		if cell := cells[r*size:]; size == 4 {
			c = int(binary.NativeEndian.Uint32(cell))
		} else {
			c = int(binary.NativeEndian.Uint16(cell))
		}
		for u := range units {
			at := c*width + u
			a.Log[r*units+u] = math.Log(float64(table[at])) + float64(exps[at])*math.Ln2
		}
	}
	return nil
}
