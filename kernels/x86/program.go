package x86

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
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
	lanes   int // rows of a group
	groups  int // groups of a call
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

// Path returns the name of the largest set of instructions that this machine has and code is made for: "avx512",
// "avx2", or "" if there is none.
func Path() string {
	switch {
	case supported512():
		return avx512.name
	case supported():
		return avx2.name
	}
	return ""
}

// Allowed returns the largest set of instructions for Compile where the kernels are those named: sets whose names
// start with avx512 extend it, and others are no larger than avx2.
func Allowed(kernels string) string {
	if strings.HasPrefix(kernels, avx512.name) {
		return Path()
	}
	if Path() == "" {
		return ""
	}
	return avx2.name
}

// Compile makes native code of a module, and keeps up to idle frames for later calls. It takes the largest set of
// instructions that the machine has, the module can use, and set allows, which is one that Path may return.
func Compile(m *simt.Module, idle int, set string) (*Program, error) {
	if err := m.Verify(); err != nil {
		return nil, err
	}
	if set != avx2.name && set != avx512.name || !supported() {
		return nil, fmt.Errorf("%w: this machine or build has none; use the interpreter", ErrUnsupported)
	}
	s := avx2
	if set == avx512.name && supported512() && fits16(m) {
		s = avx512
	}
	l, body, cost := lower(m, s)
	if cost > maxCost {
		return nil, fmt.Errorf("%w: %.60q: %d rows may take %d instructions, want at most %d; use the interpreter", ErrUnsupported, m.Name, s.lanes, cost, maxCost)
	}
	mc := encode(l.code, body, s)
	code, err := newExecutable(mc.bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; use the interpreter", ErrUnsupported, err)
	}
	p := &Program{
		m: m, path: s.name, code: code, lanes: s.lanes, pool: aligned(len(l.pool)), columns: l.columns, frame: mc.frame, size: len(mc.bytes),
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
			n += int64(p.lanes) * int64(q.Width) * int64(q.Type.Bits()/8)
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
	whole := lo + (hi-lo)/p.lanes*p.lanes
	for ; lo < whole; lo += p.groups * p.lanes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.call(s, lo, min(lo+p.groups*p.lanes, whole), in, out); err != nil {
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
		s.in, s.out = group(p.m.Inputs, p.lanes), group(p.m.Outputs, p.lanes)
	}
	for i := range in {
		copyRows(&p.m.Inputs[i], s.in[i], 0, in[i], lo, hi-lo)
	}
	for i := range out { // rows that the program may leave as they are
		copyRows(&p.m.Outputs[i], s.out[i], 0, out[i], lo, hi-lo)
	}
	if err := p.call(s, 0, p.lanes, s.in, s.out); err != nil {
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
