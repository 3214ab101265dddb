package cpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

// codeRows is the least number of rows that a thread takes: fewer are not worth starting one.
const codeRows = 512

// portable is the set of kernels without machine code.
const portable = "generic"

// codeRunner runs a module: native code, or the interpreter.
type codeRunner interface {
	Run(ctx context.Context, lo, hi int, in, out []any) error
	Bytes() int64 // of a call
}

// Code is a module of code that is ready to run. It is safe for concurrent use.
type Code struct {
	codeRunner
	path string
}

// CompileCode makes native code of a module where the kernels are those of a path of the CPU device, with up to idle
// frames for later calls, and an interpreter where they are the portable ones or there is no native code for the module:
// Path tells. Free it once nothing runs.
func CompileCode(m *simt.Module, kernels string, idle int) (*Code, error) {
	if kernels != portable {
		native, err := x86.Compile(m, idle, x86.Allowed(kernels))
		if err == nil {
			return &Code{native, native.Path()}, nil
		}
		if !errors.Is(err, x86.ErrUnsupported) {
			return nil, err
		}
	}
	run, err := simt.Compile(m, idle)
	if err != nil {
		return nil, err
	}
	return &Code{run, "interpreter"}, nil
}

// PlanCode returns about what a call of the code that CompileCode makes takes in memory, and what the code itself does. Machine code
// is not made for it, so that both are rather too much: its calls keep what registers have no room for, of up to 64 rows, where the
// interpreter has up to 256 rows of each value and each constant.
func PlanCode(m *simt.Module, kernels string) (call, program int64, err error) {
	run, err := simt.Compile(m, 1)
	if err != nil {
		return 0, 0, err
	}
	call, program = run.Bytes(), run.ProgramBytes()
	if kernels == portable || x86.Allowed(kernels) == "" || slices.ContainsFunc(m.Body, func(in simt.Instr) bool { return within(&in) > certain }) {
		return call, program, nil
	}
	const value = 4 * 64 // bytes, of four registers
	native := value * int64(run.Live())
	for _, q := range slices.Concat(m.Inputs, m.Outputs) {
		native += value * int64(q.Width*q.Type.Bits()/8)
	}
	if instructions(m.Body) > x86.DefaultPart { // what parts keep, of 64 rows: what a part reads, and what the next one does
		native += max(1<<20, 64*2*8*int64(run.Live()))
	}
	return native, program, nil
}

// instructions counts those of a block and within it, as simt.Split does.
func instructions(b simt.Block) (n int) {
	for i := range b {
		n++
		if in := b[i].If; in != nil {
			n += instructions(in.Then) + instructions(in.Else)
		}
		if in := b[i].Loop; in != nil {
			n += instructions(in.Body)
		}
	}
	return n
}

// certain bounds what a branch or loop takes for machine code to be within its limit, with room for the rest of a part.
const certain = 300_000

// within returns how many instructions of a processor a branch or loop takes at most, in all its turns; 0 of other instructions.
func within(in *simt.Instr) int64 {
	count := func(b simt.Block) (n int64) {
		for i := range b {
			each := int64(8)
			switch b[i].Op {
			case simt.Load, simt.LoadAt, simt.Store, simt.StoreAt, simt.Gather, simt.Convert: // of each lane on its own, perhaps
				each = 60
			}
			n = min(n+each+within(&b[i]), certain+1)
		}
		return n
	}
	switch {
	case in.If != nil:
		return count(in.If.Then) + count(in.If.Else)
	case in.Loop != nil:
		return count(in.Loop.Body) * int64(in.Loop.Most)
	}
	return 0
}

// Path names what runs the code: the set of instructions of native code, or "interpreter".
func (c *Code) Path() string { return c.path }

// Free gives the memory of native code back. No call may be running or follow.
func (c *Code) Free() {
	if native, ok := c.codeRunner.(*x86.Program); ok {
		native.Free()
	}
}

// codeProgram runs code as a program of the device.
type codeProgram struct {
	dev   *Device // nil once it is freed
	run   *Code
	bytes int64
}

var _ kernels.HostProgram = (*codeProgram)(nil)

// LoadCode is the loader of code, modules of package simt.
func LoadCode(_ context.Context, d *Device, m kernels.Module) (kernels.Program, error) {
	mod, ok := m.(*simt.Module)
	if !ok {
		return nil, fmt.Errorf("%w: cpu: module of kind %q is a %T, want %T", kernels.ErrDevice, m.ModuleKind(), m, mod)
	}
	run, err := CompileCode(mod, d.set.Name, d.threads)
	if err != nil {
		return nil, fmt.Errorf("%w: cpu: %w", kernels.ErrDevice, err)
	}
	p := &codeProgram{dev: d, run: run, bytes: int64(d.threads) * run.Bytes()}
	d.Count(p.bytes)
	return p, nil
}

// Path is that of its code.
func (p *codeProgram) Path() string { return p.run.path }

// Free drops the program, which is not running.
func (p *codeProgram) Free() {
	if p.dev == nil {
		return
	}
	p.dev.Count(-p.bytes)
	p.run.Free()
	p.dev, p.run = nil, nil
}

// Run computes rows on as many threads as the device has, each a range of its own.
func (p *codeProgram) Run(ctx context.Context, rows int, in, out []kernels.Buffer) error {
	if p.dev == nil {
		return fmt.Errorf("%w: cpu: run of a program that was freed", kernels.ErrDevice)
	}
	if rows < 1 {
		return fmt.Errorf("%w: cpu: run of %d rows, want at least 1", kernels.ErrDevice, rows)
	}
	ins, err := p.slices(in)
	if err != nil {
		return err
	}
	outs, err := p.slices(out)
	if err != nil {
		return err
	}
	parts := min(p.dev.threads, (rows+codeRows-1)/codeRows)
	share := (rows + parts - 1) / parts
	parts = (rows + share - 1) / share // as shares are rounded up, those of many threads may have the rows before the last ones
	errs := make([]error, parts)
	var wait sync.WaitGroup
	for i := range parts - 1 {
		wait.Go(func() { errs[i] = p.RunSlices(ctx, i*share, (i+1)*share, ins, outs) })
	}
	last := parts - 1
	errs[last] = p.RunSlices(ctx, last*share, rows, ins, outs)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// RunSlices computes rows lo to hi on the calling thread.
func (p *codeProgram) RunSlices(ctx context.Context, lo, hi int, in, out []any) error {
	if p.dev == nil {
		return fmt.Errorf("%w: cpu: run of a program that was freed", kernels.ErrDevice)
	}
	if err := p.run.Run(ctx, lo, hi, in, out); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w: cpu: %w", kernels.ErrDevice, err)
	}
	return nil
}

// slices returns the memory of buffers as slices of their elements.
func (p *codeProgram) slices(list []kernels.Buffer) ([]any, error) {
	all := make([]any, len(list))
	for i, b := range list {
		own, err := p.dev.Own(b)
		if err != nil {
			return nil, err
		}
		switch own.DType() {
		case kernels.Float32:
			all[i] = Elements[float32](own)
		case kernels.Float64:
			all[i] = Elements[float64](own)
		case kernels.Int32:
			all[i] = Elements[int32](own)
		case kernels.Int64:
			all[i] = Elements[int64](own)
		case kernels.Uint8:
			all[i] = Elements[uint8](own)
		case kernels.Uint16:
			all[i] = Elements[uint16](own)
		default:
			return nil, fmt.Errorf("%w: cpu: a buffer of %v, which code does not have", kernels.ErrDevice, own.DType())
		}
	}
	return all, nil
}
