package cpu

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// Memory is what a loaded module takes besides its program and its buffers, in
// bytes.
type Memory struct {
	Values  int64 // of the vectors that keep some, with exponents
	Flows   int64 // through vectors that several elements read, for training
	Scratch int64 // of the threads, and shared gradients
}

// Plan returns the memory that Load would take for a module. It allocates
// nothing that grows with rows or parameters.
func Plan(m layers.Module, o Options) (Memory, error) {
	d, err := Open(o)
	if err != nil {
		return Memory{}, err
	}
	if m.Rows < 1 || m.Rows > 1<<20 {
		return Memory{}, fmt.Errorf("%w: cpu: %d rows a launch, want 1..%d", kernels.ErrDevice, m.Rows, 1<<20)
	}
	x := planned(m, d.set, d.threads)
	return x.memory(), nil
}

// planned returns an executor without its workspace.
func planned(m layers.Module, set *micro.Set, threads int) *executor {
	x := &executor{prog: m.Program, set: set, size: m.Program.BlockSize, rowsMax: m.Rows, train: m.Train, mixed: m.Mixed && set.BF16 != nil}
	x.plan()
	x.schedules(threads)
	return x
}

// memory counts what workspace allocates.
func (x *executor) memory() Memory {
	p := x.prog
	rows := int64(x.rowsMax)
	m := Memory{Values: 4 * rows * int64(len(p.Vectors)+len(p.Elements))}
	for i := range p.Vectors {
		v := &p.Vectors[i]
		bytes := 4 * rows * int64(p.Width(int32(i)))
		if !p.Tabulated(int32(i)) {
			m.Values += bytes
		}
		if x.train && (v.Kind == layers.StoredVector || v.Kind == layers.SumVector && x.users[i] > 1) {
			m.Flows += bytes
		}
	}
	m.Scratch = 4 * int64(len(p.Vectors)) * (rows + 1)
	var cols, tile, params, width, count int64
	for i := range x.tasks {
		t := &x.tasks[i]
		cols, width = max(cols, int64(t.cols)), max(width, int64(t.width))
		tile = max(tile, int64(t.cols*min(x.rowsMax, tileRows(t.cols))))
		if t.sum != nil {
			params = max(params, int64(p.Sums[t.sum.index].NumBlocks)*int64(x.size*x.size))
		}
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		count = max(count, int64(in.Codes+1)*int64(p.Width(in.Vector)))
	}
	width = max(width, cols)
	full := rows * cols
	if x.train {
		m.Flows += 4 * (int64(x.keptLen) + int64(p.ElementBlocks)*int64(x.size))
		for _, n := range x.groupParams {
			m.Scratch += 4 * int64(n)
		}
	}
	small := 4 * (9*width + rows)
	big := func(operands int64) int64 {
		n := operands + params
		if x.train {
			n += full + params + count
			if x.mixed {
				n += full/2 + cols + full/2 + width*rows/2 + width + params/2 + cols
			}
		}
		return 4 * n
	}
	threads := int64(len(x.forwardPlan.lists))
	m.Scratch += threads * small
	if x.forwardPlan.lockstep {
		m.Scratch += small + big(full)
	} else {
		m.Scratch += threads * big(tile)
	}
	return m
}
