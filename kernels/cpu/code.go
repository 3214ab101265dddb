package cpu

import (
	"context"
	"errors"
	"fmt"
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

// codeProgram runs code by the fastest way that this machine has for it.
type codeProgram struct {
	dev   *Device // nil once it is freed
	run   codeRunner
	path  string
	bytes int64
}

var _ kernels.CodeProgram = (*codeProgram)(nil)

// LoadCode is the loader of code, modules of package simt.
func LoadCode(_ context.Context, d *Device, m kernels.Module) (kernels.Program, error) {
	mod, ok := m.(*simt.Module)
	if !ok {
		return nil, fmt.Errorf("%w: cpu: module of kind %q is a %T, want %T", kernels.ErrDevice, m.ModuleKind(), m, mod)
	}
	p := &codeProgram{dev: d}
	if err := p.compile(mod); err != nil {
		return nil, fmt.Errorf("%w: cpu: %w", kernels.ErrDevice, err)
	}
	p.bytes = int64(d.threads) * p.run.Bytes()
	d.Count(p.bytes)
	return p, nil
}

// compile makes native code unless the device's kernels are the portable ones, and where there is none
// for the module takes the interpreter: Path tells.
func (p *codeProgram) compile(m *simt.Module) error {
	if p.dev.set.Name != portable {
		native, err := x86.Compile(m, p.dev.threads, x86.Allowed(p.dev.set.Name))
		if err == nil {
			p.run, p.path = native, native.Path()
			return nil
		}
		if !errors.Is(err, x86.ErrUnsupported) {
			return err
		}
	}
	run, err := simt.Compile(m, p.dev.threads)
	p.run, p.path = run, "interpreter"
	return err
}

// Path names what runs the code: the set of instructions of native code, or "interpreter".
func (p *codeProgram) Path() string { return p.path }

// Free drops the program, which is not running.
func (p *codeProgram) Free() {
	if p.dev == nil {
		return
	}
	p.dev.Count(-p.bytes)
	if native, ok := p.run.(*x86.Program); ok {
		native.Free()
	}
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
	errs := make([]error, parts)
	var wait sync.WaitGroup
	for i := range parts - 1 {
		wait.Go(func() { errs[i] = p.run.Run(ctx, i*share, min((i+1)*share, rows), ins, outs) })
	}
	last := parts - 1
	errs[last] = p.run.Run(ctx, min(last*share, rows), rows, ins, outs)
	wait.Wait()
	for _, err := range errs {
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%w: cpu: %w", kernels.ErrDevice, err)
		}
		if err != nil {
			return err
		}
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
