package nest

import (
	"context"
	"fmt"
	"sync"

	"github.com/pce-engine/pce/kernels"
)

// What is on a device at a time: at most so many rows, and so many cells, words of trees included.
const (
	deviceRows  = 1 << 18
	deviceCells = 1 << 25
)

// deviceChunk is how many rows of a module are on a device at a time: a power of two, as the buffers are.
func deviceChunk(m *Module) int {
	cells := m.Features + m.Outputs
	if m.Kept {
		cells += m.Trees
	}
	rows := deviceRows
	for rows > 1 && rows*cells > deviceCells {
		rows /= 2
	}
	return rows
}

// device is what a program has on a device. All rows of a call are there at once, so its kernels are
// launched for all of them, and the loops around kernels go over trees.
type device struct {
	kernels.Device
	mu   sync.Mutex // guards all below: one call at a time
	code map[*Kernel]kernels.CodeProgram
	room int // rows that the buffers are for
	told span

	x, sums, first, end, kept kernels.Buffer
	list                      []int32 // of first or end
}

// NewOn makes a program whose kernels run on a device, as code of the modules that a function makes of them. The module
// has no loops over rows. Free the program.
func NewOn(ctx context.Context, dev kernels.Device, m *Module, module func(*Kernel) kernels.Module) (*Program, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if loopsOverRows(m.Body) {
		return nil, fmt.Errorf("%w: loops over rows, whose rows a device has all at once; leave them out", ErrModule)
	}
	d := &device{Device: dev, code: map[*Kernel]kernels.CodeProgram{}}
	p := &Program{m: m, threads: 1, chunk: deviceChunk(m), device: d}
	p.memory.New = func() any { return &memory{} }
	var err error
	m.Kernels(func(k *Kernel) {
		if d.code[k] == nil && err == nil { // a kernel may be in several places
			var code kernels.CodeProgram
			if code, err = kernels.LoadAs[kernels.CodeProgram](ctx, dev, module(k)); err == nil {
				d.code[k] = code
			}
		}
	})
	if err != nil {
		p.Free()
		return nil, err
	}
	return p, nil
}

func loopsOverRows(list []Item) bool {
	for i := range list {
		if l := list[i].Loop; l != nil && (l.Rows || loopsOverRows(l.Body)) || list[i].Kernel != nil && (list[i].Skip > 0 || list[i].Most > 0) {
			return true
		}
	}
	return false
}

// Path names how the first kernel runs on a device; "" where kernels run on the CPU, or their code has no name.
func (p *Program) Path() string {
	path := ""
	p.m.Kernels(func(k *Kernel) {
		if path != "" || p.device == nil {
			return
		}
		if named, ok := p.device.code[k].(interface{ Path() string }); ok {
			path = named.Path()
		}
	})
	return path
}

// Meter returns what the program's device measures of itself, nil if it does not or there is none.
func (p *Program) Meter() kernels.Meter {
	if p.device == nil {
		return nil
	}
	m, _ := p.device.Device.(kernels.Meter)
	return m
}

// Free gives back what the program has on a device, which stays open. No call may be running or follow.
func (p *Program) Free() {
	if p.device == nil {
		return
	}
	for _, code := range p.device.code {
		code.Free()
	}
	p.device.release()
	p.device.code = nil
}

// release frees the buffers.
func (d *device) release() {
	for _, b := range []*kernels.Buffer{&d.x, &d.sums, &d.first, &d.end, &d.kept} {
		if *b != nil {
			(*b).Free()
			*b = nil
		}
	}
	d.room = 0
}

// grow makes buffers for a number of rows, at least: for the next power of two, as kernels are prepared for buffers.
func (d *device) grow(ctx context.Context, m *Module, rows int) error {
	if rows <= d.room {
		return nil
	}
	d.release()
	room := 1
	for room < rows {
		room *= 2
	}
	types := []kernels.DType{kernels.Float32, kernels.Float64} // of F32, F64
	for _, b := range []struct {
		at *kernels.Buffer
		t  kernels.DType
		n  int
	}{
		{&d.x, types[m.Cell], room * m.Features}, {&d.sums, types[m.Sum], room * m.Outputs},
		{&d.first, kernels.Int32, room}, {&d.end, kernels.Int32, room}, {&d.kept, kernels.Int32, room * m.Trees * count(m.Kept)},
	} {
		if b.n == 0 {
			continue
		}
		var err error
		if *b.at, err = d.Alloc(ctx, b.t, b.n); err != nil {
			d.release()
			return err
		}
	}
	d.room, d.told, d.list = room, span{}, make([]int32, room)
	return nil
}

// run computes a call: its cells and sums go to the device, and the sums, or the words where they are wanted, come back.
func (d *device) run(ctx context.Context, c *call, words []int32) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.code == nil {
		return fmt.Errorf("%w: the program was freed", ErrModule)
	}
	if err := d.grow(ctx, c.m, c.rows); err != nil {
		return err
	}
	if err := d.Write(ctx, d.x, 0, c.x); err != nil {
		return err
	}
	if err := eachColumn(c, func(at int, column any) error { return d.Write(ctx, d.sums, at*d.room, column) }); err != nil {
		return err
	}
	if err := c.items(ctx, c.m.Body, span{0, c.rows}, span{0, c.m.Trees}); err != nil {
		return err
	}
	if words != nil {
		return d.Read(ctx, words, d.kept, 0)
	}
	return eachColumn(c, func(at int, column any) error { return d.Read(ctx, column, d.sums, at*d.room) })
}

// eachColumn calls do with the sums of each output.
func eachColumn(c *call, do func(at int, column any) error) error {
	for o := range c.m.Outputs {
		var column any
		switch s := c.sums.(type) {
		case []float32:
			column = s[o*c.rows : (o+1)*c.rows]
		case []float64:
			column = s[o*c.rows : (o+1)*c.rows]
		}
		if err := do(o, column); err != nil {
			return err
		}
	}
	return nil
}

// launch runs a kernel for all rows and some trees, which it is told in two columns.
func (d *device) launch(ctx context.Context, k *Kernel, rows int, trees span) error {
	in := []kernels.Buffer{d.x, d.sums}
	if k.Trees {
		if d.told != trees {
			d.told = span{}
			for _, side := range []struct {
				b kernels.Buffer
				v int
			}{{d.first, trees.lo}, {d.end, trees.hi}} {
				for i := range d.list {
					d.list[i] = int32(side.v)
				}
				if err := d.Write(ctx, side.b, 0, d.list); err != nil {
					return err
				}
			}
			d.told = trees
		}
		in = append(in, d.first, d.end)
	}
	if k.Adds {
		in = append(in, d.kept)
	}
	if k.Share > 0 { // of the thread's number, which nothing is read from
		in = append(in, d.first)
	}
	out := []kernels.Buffer{d.sums}
	if k.Keeps {
		out[0] = d.kept
	}
	return d.code[k].Run(ctx, rows, in, out)
}
