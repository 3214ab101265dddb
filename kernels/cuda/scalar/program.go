package scalar

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
)

// mostWorks is how many graphs a program keeps, each for a set of buffers and a power of two of rows.
const mostWorks = 16

// mostScratch is the most bytes of scratch memory unless options say.
const mostScratch = 64 << 20

// program is a module on a card.
type program struct {
	dev     *cuda.Device // nil once it is freed
	name    string       // of the device
	card    string       // its architecture
	module  *simt.Module
	low     *scalar.Program
	code    *cuda.Code
	control cuda.Span
	tables  cuda.Span
	scratch cuda.Span
	told    int     // the rows that the control word says; 0: it is not known
	last    int64   // the number of the last launch, which reads it
	rows    int     // that there is scratch memory for
	works   []*work // the last one recorded at the end
}

// work is a graph and what it was recorded for.
type work struct {
	*cuda.Work
	rows    int
	buffers []view
}

// view is what a graph knows of a buffer.
type view struct {
	at  cuda.Ptr
	len int
}

var _ kernels.CodeProgram = (*program)(nil)

// Load compiles a module for a device, with the options that the model of costs chooses. It is the
// loader of code.
func Load(ctx context.Context, d *cuda.Device, m kernels.Module) (kernels.Program, error) {
	return LoadWith(scalar.Options{})(ctx, d, m)
}

// LoadWith returns a loader of code that lowers modules with options, but those that have their own.
func LoadWith(o scalar.Options) kernels.Loader[*cuda.Device] {
	return func(_ context.Context, d *cuda.Device, m kernels.Module) (kernels.Program, error) {
		info := d.Info()
		name := info.Name
		o, mod := o, (*simt.Module)(nil)
		switch m := m.(type) {
		case *simt.Module:
			mod = m
		case scalar.Chosen:
			o, mod = m.Options, m.Module
		default:
			return nil, fmt.Errorf("%w: %s: module of kind %q is a %T, want %T", kernels.ErrDevice, name, m.ModuleKind(), m, mod)
		}
		low, err := scalar.Lower(mod, o)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", kernels.ErrDevice, name, err)
		}
		p := &program{dev: d, name: name, card: info.KernelPath, module: mod, low: low}
		if err := d.Do(func(t *cuda.Thread) error { return p.load(t, o.MaxScratch) }); err != nil {
			p.Free()
			return nil, err
		}
		return p, nil
	}
}

// Bytes plans what a module takes on a card beside its buffers, with the options of Load.
func Bytes(m *simt.Module) (int64, error) {
	low, err := scalar.Lower(m, scalar.Options{})
	if err != nil {
		return 0, err
	}
	return int64(len(low.Tables)) + int64(low.Scratch)*int64(capacity(low, 0)), nil
}

// capacity is the number of rows that a program has scratch memory for, of whole blocks, within a limit in bytes; 0: the usual one.
func capacity(low *scalar.Program, limit int) int {
	if low.Scratch == 0 {
		return 0
	}
	return max(cmp.Or(limit, mostScratch)/low.Scratch/low.Threads, 1) * low.Threads
}

// load makes what the program has on the card, with scratch memory within a limit in bytes.
func (p *program) load(t *cuda.Thread, limit int) (err error) {
	p.rows = capacity(p.low, limit)
	sizes := []int64{4, int64(len(p.low.Tables)), int64(p.low.Scratch) * int64(p.rows)}
	if err := t.CheckFree(sizes); err != nil {
		return err
	}
	if p.code, err = t.Load(p.low.Text.Text()); err != nil {
		return err
	}
	for i, s := range []*cuda.Span{&p.control, &p.tables, &p.scratch} {
		if sizes[i] == 0 {
			continue
		}
		if *s, err = t.Alloc(sizes[i]); err != nil {
			return err
		}
	}
	if len(p.low.Tables) > 0 {
		return t.CopyIn(p.tables, 0, p.low.Tables, 0)
	}
	return nil
}

// Path says how the code runs: as PTX on the card's architecture, and in how many parts if there are
// several.
func (p *program) Path() string {
	if n := len(p.low.Kernels); n > 1 {
		return fmt.Sprintf("ptx %s, %d parts", p.card, n)
	}
	return "ptx " + p.card
}

// Free gives back what the program has on the card, once what was started has ended. What goes wrong, the next call
// that waits says.
func (p *program) Free() {
	if p.dev == nil {
		return
	}
	_ = p.dev.Do(func(t *cuda.Thread) error { // fails when the device is closed
		errs := []error{t.Settle()}
		for _, w := range p.works {
			errs = append(errs, t.Drop(w.Work))
		}
		if p.code != nil {
			errs = append(errs, t.Unload(p.code))
		}
		for _, s := range []cuda.Span{p.control, p.tables, p.scratch} {
			if s.At != 0 {
				errs = append(errs, t.Free(s))
			}
		}
		t.Keep(errs...)
		return nil
	})
	p.dev, p.works = nil, nil
}

// Run enqueues the program on rows.
func (p *program) Run(ctx context.Context, rows int, in, out []kernels.Buffer) error {
	if p.dev == nil {
		return fmt.Errorf("%w: run of a program that was freed", kernels.ErrDevice)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if rows < 1 || len(in) != len(p.module.Inputs) || len(out) != len(p.module.Outputs) {
		return fmt.Errorf("%w: %s: run of %d rows with %d inputs and %d outputs, want at least 1, %d and %d",
			kernels.ErrDevice, p.name, rows, len(in), len(out), len(p.module.Inputs), len(p.module.Outputs))
	}
	var buffers []*cuda.Buffer
	var views []view
	for i, b := range slices.Concat(in, out) {
		own, err := p.dev.Own(b)
		if err != nil {
			return err
		}
		q := p.param(i)
		if n := own.Len() / q.Width; own.DType() != types[q.Type] || n < rows || int64(n)*int64(q.Type.Bits()/8) >= 1<<32 {
			return fmt.Errorf("%w: %s: %s has %d elements of %v, want %d columns of %v for %d rows, and less than 4 GiB in a column",
				kernels.ErrDevice, p.name, q.Name, own.Len(), own.DType(), q.Width, q.Type, rows)
		}
		buffers, views = append(buffers, own), append(views, view{own.At(), own.Len()})
	}
	return p.dev.Do(func(t *cuda.Thread) error {
		w, err := p.work(t, rows, views)
		if err != nil {
			return err
		}
		if err := p.tell(t, rows); err != nil {
			return err
		}
		if err := t.Ready(w); err != nil {
			return err
		}
		start := func() error {
			last, err := t.Start(w, buffers, nil)
			if err == nil { // else the launch before is still the last that reads the number of rows
				p.last = last
			}
			return err
		}
		if t.Measured() == kernels.MeasureNothing {
			return start()
		}
		return t.Time(phase, start)
	})
}

// tell writes the number of rows to the card, unless the run before had as many: a copy within the
// graph would take as long as a small kernel.
func (p *program) tell(t *cuda.Thread, rows int) error {
	if p.told == rows {
		return nil
	}
	p.told = 0
	if err := t.CopyIn(p.control, 0, binary.LittleEndian.AppendUint32(nil, uint32(rows)), p.last); err != nil {
		return err
	}
	p.told = rows
	return nil
}

// phase is what a run of a program is to a meter: all of its kernels.
const phase = "code"

// types are those of buffers for the elements of inputs and outputs.
var types = map[simt.Type]kernels.DType{
	simt.F32: kernels.Float32, simt.F64: kernels.Float64, simt.I32: kernels.Int32,
	simt.I64: kernels.Int64, simt.U8: kernels.Uint8, simt.U16: kernels.Uint16,
}

// param is input i, or behind these an output.
func (p *program) param(i int) *simt.Param {
	if n := len(p.module.Inputs); i >= n {
		return &p.module.Outputs[i-n]
	}
	return &p.module.Inputs[i]
}

// work returns the graph for some buffers and at least so many rows. Of more graphs than are kept,
// that which was recorded first is dropped.
func (p *program) work(t *cuda.Thread, rows int, buffers []view) (*cuda.Work, error) {
	rows = 1 << bits.Len(uint(rows-1))
	for _, w := range p.works {
		if w.rows == rows && slices.Equal(w.buffers, buffers) {
			return w.Work, nil
		}
	}
	if len(p.works) == mostWorks {
		first := p.works[0]
		p.works = p.works[1:] // before anything can fail: a graph is dropped once
		if err := errors.Join(t.Settle(), t.Drop(first.Work)); err != nil {
			return nil, err
		}
	}
	var functions []cuda.Function
	for _, k := range p.low.Kernels {
		f, err := t.Function(p.code, k.Name, p.low.Threads, 0)
		if err != nil {
			return nil, err
		}
		functions = append(functions, f)
	}
	w, err := t.Record(cuda.Span{}, cuda.Span{}, func() error {
		once := rows
		if p.rows > 0 {
			once = min(rows, p.rows)
		}
		for base := 0; base < rows; base += once {
			grid := [3]int{(min(once, rows-base) + p.low.Rows - 1) / p.low.Rows, max(p.low.Ranges, 1), 1}
			for i, k := range p.low.Kernels {
				if err := t.Launch(cuda.Launch{Function: functions[i], Grid: grid, Block: p.low.Threads, Args: p.args(k, base, buffers)}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		p.works = append(p.works, &work{w, rows, buffers})
	}
	return w, err
}

// args are the arguments of a kernel for the rows from base on.
func (p *program) args(k scalar.Kernel, base int, buffers []view) []uint64 {
	args := make([]uint64, len(k.Args))
	for i, a := range k.Args {
		n := a.Index
		if a.Kind == scalar.Output || a.Kind == scalar.OutputStep {
			n += len(p.module.Inputs)
		}
		switch a.Kind {
		case scalar.Control:
			args[i] = uint64(p.control.At)
		case scalar.Tables:
			args[i] = uint64(p.tables.At)
		case scalar.Base:
			args[i] = uint64(base)
		case scalar.Scratch:
			args[i] = uint64(p.scratch.At)
		case scalar.Input, scalar.Output:
			args[i] = uint64(buffers[n].at)
		case scalar.InputStep, scalar.OutputStep:
			q := p.param(n)
			args[i] = uint64(buffers[n].len / q.Width * q.Type.Bits() / 8)
		}
	}
	return args
}
