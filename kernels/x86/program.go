package x86

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/pce-engine/pce/kernels/simt"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrUnsupported means that there is no native code: on this machine, or for a module.
	ErrUnsupported = errors.New("x86: no native code")
	// ErrFault means that native code touched memory that is not there.
	ErrFault = errors.New("x86: fault in native code")
)

const (
	// callNodes bounds the instructions of a call, which the garbage collector may have to wait for:
	// about 50 microseconds.
	callNodes = 200_000
	// maxCost bounds those of a group of rows, and with them the code: an instruction takes 4 to 12
	// bytes, and beyond about 4 MB a processor waits for instructions.
	maxCost = 2 * callNodes
)

// Program is the native code of a module. It is safe for concurrent use.
type Program struct {
	m       *simt.Module
	path    string
	code    *executable
	pool    []byte
	columns []column
	frame   int // bytes
	groups  int // of a call
	size    int // bytes of code
	idle    chan *state
}

// state is what a call needs for itself.
type state struct {
	args  []uint64
	frame []byte
	in    []any // a group of rows
	out   []any
}

// Path returns the name of the set of instructions that code is made for on this machine, "" if there is
// none.
func Path() string {
	if !supported() {
		return ""
	}
	return "avx2"
}

// Compile makes native code of a module, and keeps up to idle frames for later calls.
func Compile(m *simt.Module, idle int) (*Program, error) {
	if err := m.Verify(); err != nil {
		return nil, err
	}
	if !supported() {
		return nil, fmt.Errorf("%w: this machine or build has none; use the interpreter", ErrUnsupported)
	}
	l, body, cost := lower(m)
	if cost > maxCost {
		return nil, fmt.Errorf("%w: %.60q: %d rows may take %d instructions, want at most %d; use the interpreter", ErrUnsupported, m.Name, lanes, cost, maxCost)
	}
	mc := encode(l.code, body, lanes)
	code, err := newExecutable(mc.bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; use the interpreter", ErrUnsupported, err)
	}
	p := &Program{
		m: m, path: Path(), code: code, pool: aligned(len(l.pool)), columns: l.columns, frame: mc.frame, size: len(mc.bytes),
		groups: max(1, int(callNodes/max(cost, 1))), idle: make(chan *state, max(idle, 1)),
	}
	copy(p.pool, l.pool)
	return p, nil
}

// aligned returns n bytes that start at a multiple of 64.
func aligned(n int) []byte {
	const align = 64
	b := make([]byte, n+align)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (align - 1)
	return b[at : at+n : at+n]
}

// Path returns the name of the set of instructions.
func (p *Program) Path() string { return p.path }

// Module returns the module that is run.
func (p *Program) Module() *simt.Module { return p.m }

// CodeBytes returns the size of the machine code.
func (p *Program) CodeBytes() int { return p.size }

// Bytes returns what a call takes in memory beside code and constants.
func (p *Program) Bytes() int64 {
	n := int64(p.frame)
	for _, list := range [][]simt.Param{p.m.Inputs, p.m.Outputs} {
		for _, q := range list {
			n += lanes * int64(q.Width) * int64(q.Type.Bits()/8)
		}
	}
	return n
}

// ProgramBytes returns what code and constants take in memory.
func (p *Program) ProgramBytes() int64 { return int64(p.size) + int64(len(p.pool)) }

// Free gives the memory of the code back. No call may be running or follow.
func (p *Program) Free() { p.code.free() }

// Run computes rows lo to hi of the outputs, as simt.Interpreter does.
func (p *Program) Run(ctx context.Context, lo, hi int, in, out []any) error {
	if err := p.m.CheckRun(lo, hi, in, out); err != nil {
		return err
	}
	var s *state
	select {
	case s = <-p.idle:
	default:
		s = &state{args: make([]uint64, argPointers/8+len(p.columns)), frame: aligned(p.frame)}
	}
	whole := lo + (hi-lo)/lanes*lanes
	for ; lo < whole; lo += p.groups * lanes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.call(s, lo, min(lo+p.groups*lanes, whole), in, out); err != nil {
			return err
		}
	}
	if whole < hi {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.rest(s, whole, hi, in, out); err != nil {
			return err
		}
	}
	select {
	case p.idle <- s:
	default:
	}
	return nil
}

// rest computes less than a group of rows in buffers of one. What the rows behind them hold is not
// copied back.
func (p *Program) rest(s *state, lo, hi int, in, out []any) error {
	if s.in == nil {
		s.in, s.out = group(p.m.Inputs), group(p.m.Outputs)
	}
	for i := range in {
		copyRows(&p.m.Inputs[i], s.in[i], 0, in[i], lo, hi-lo)
	}
	for i := range out { // rows that the program may leave as they are
		copyRows(&p.m.Outputs[i], s.out[i], 0, out[i], lo, hi-lo)
	}
	if err := p.call(s, 0, lanes, s.in, s.out); err != nil {
		return err
	}
	for i := range out {
		copyRows(&p.m.Outputs[i], out[i], lo, s.out[i], 0, hi-lo)
	}
	return nil
}

// call runs the code for whole groups of rows.
func (p *Program) call(s *state, lo, hi int, in, out []any) (err error) {
	a := s.args
	a[argFrame/8], a[argPool/8] = address(s.frame), address(p.pool)
	a[argRow/8], a[argEnd/8] = 0, uint64(hi-lo)
	for i, c := range p.columns {
		params, buffers := p.m.Inputs, in
		if c.output {
			params, buffers = p.m.Outputs, out
		}
		a[argPointers/8+i] = place(&params[c.param], buffers[c.param], c.col, lo)
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %.60q: %v", ErrFault, p.m.Name, r)
		}
	}()
	p.code.call(a)
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
	runtime.KeepAlive(s)
	runtime.KeepAlive(p)
	return nil
}

// address returns where bytes are; the caller keeps them alive.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
