package x86

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
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

// DefaultPart is the most instructions of a part of a module: the code of a part, some 200 kB, stays in the second-level
// cache while it runs for the rows of a tile.
const DefaultPart = 25_000

// keptBytes bounds what the parts of a module keep for each other, for the rows of a tile, which has at least tileRows.
// Tests lower it.
var keptBytes = 1 << 20

const tileRows = 64

// maxPool bounds the constants and tables of a part in bytes: code finds them, and places near them, at distances of 32 bits with a
// sign. Tests lower it.
var maxPool = 1<<31 - 1<<12

// Program is the native code of a module. It is safe for concurrent use.
type Program struct {
	m                *simt.Module
	path             string
	parts            []*part
	kept             []simt.Param // as in simt.Parts, and so are the next two
	first, crossings int
	lanes            int // rows of a group
	tile             int // rows for which a part runs before the next one does; 0: all, of a single part
	idle             chan *state
}

// part is the code of a part of the module.
type part struct {
	inputs, outputs []simt.Param
	code            *executable
	pool            []byte
	columns         []column
	frame           int // bytes
	groups          int // groups of a call
	size            int // bytes of code
}

// state is what a call needs for itself.
type state struct {
	args  []uint64
	frame []byte
	kept  []any // for the rows of a tile
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
	return CompileWith(m, idle, set, Options{})
}

// Options are ways to make code, of which benchmarks compare the speed.
type Options struct {
	Part    int  // the most instructions of a part (see simt.Split); 0: DefaultPart
	Gathers bool // each row's elements of inputs and tables are loaded on their own, and not chosen by shuffles of what lies together
	Groups  int  // of rows that a turn of the loop over rows takes, where the module can have several: 1, 2 or 4; 0: as many as are quickest
}

// CompileWith is Compile with options.
func CompileWith(m *simt.Module, idle int, set string, o Options) (*Program, error) {
	if err := m.Verify(); err != nil {
		return nil, err
	}
	if set != avx2.name && set != avx512.name || !supported() {
		return nil, fmt.Errorf("%w: this machine or build has none; use the interpreter", ErrUnsupported)
	}
	s := shapeOf(m, set)
	s.gathers, s.several = o.Gathers, o.Groups
	split := simt.Split(composed(tabulated(m, s), s), cmp.Or(o.Part, DefaultPart))
	p := &Program{m: m, path: s.name, kept: split.Kept, first: split.First, crossings: split.Crossings, lanes: s.lanes, idle: make(chan *state, max(idle, 1))}
	if err := p.compile(split, s); err != nil {
		p.Free()
		return nil, err
	}
	if kept := rowBytes(p.kept); kept > 0 {
		p.tile = max(keptBytes/kept, tileRows) / s.lanes * s.lanes
	}
	return p, nil
}

// compile makes the code of the parts, several at a time. After an error those that are there have to be freed.
func (p *Program) compile(split *simt.Parts, s shape) error {
	all := make([]*part, split.Count)
	errs := make([]error, len(all))
	var next atomic.Int32
	work := func() {
		for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
			all[i], errs[i] = compile(split.Module(int(i)), s)
		}
	}
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)) - 1 {
		wait.Go(work)
	}
	work()
	wait.Wait()
	for _, c := range all {
		if c != nil {
			p.parts = append(p.parts, c)
		}
	}
	return cmp.Or(errs...)
}

// compile makes the code of a part.
func compile(m *simt.Module, s shape) (*part, error) {
	l := lower(m, s)
	if l.cost > maxCost {
		return nil, fmt.Errorf("%w: %.60q: %d rows may take %d instructions, want at most %d; use the interpreter", ErrUnsupported, m.Name, s.lanes, l.cost, maxCost)
	}
	if len(l.pool) > maxPool {
		return nil, fmt.Errorf("%w: %.60q: tables and constants of %d bytes, want at most %d; use the interpreter", ErrUnsupported, m.Name, len(l.pool), maxPool)
	}
	mc := encode(l)
	code, err := newExecutable(mc.bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w; use the interpreter", ErrUnsupported, err)
	}
	p := &part{
		inputs: m.Inputs, outputs: m.Outputs, code: code, pool: aligned(len(l.pool)), columns: l.columns, frame: mc.frame, size: len(mc.bytes),
		groups: max(1, int(callNodes/max(l.cost, 1))),
	}
	copy(p.pool, l.pool)
	return p, nil
}

// rowBytes returns what a row takes in inputs or outputs.
func rowBytes(list []simt.Param) (n int) {
	for _, q := range list {
		n += q.Width * q.Type.Bits() / 8
	}
	return n
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

// Parts returns how many parts the module was split into, and how many values cross between them, as in simt.Parts: first
// and at last.
func (p *Program) Parts() (n, first, crossings int) { return len(p.parts), p.first, p.crossings }

// CodeBytes returns the size of the machine code.
func (p *Program) CodeBytes() (n int) {
	for _, c := range p.parts {
		n += c.size
	}
	return n
}

// Bytes returns what a call takes in memory beside code and constants.
func (p *Program) Bytes() int64 {
	return int64(p.frame() + p.tile*rowBytes(p.kept) + p.lanes*(rowBytes(p.m.Inputs)+rowBytes(p.m.Outputs)))
}

// frame returns the bytes of the largest frame of a part.
func (p *Program) frame() (n int) {
	for _, c := range p.parts {
		n = max(n, c.frame)
	}
	return n
}

// ProgramBytes returns what code and constants take in memory.
func (p *Program) ProgramBytes() int64 {
	n := int64(p.CodeBytes())
	for _, c := range p.parts {
		n += int64(len(c.pool))
	}
	return n
}

// Free gives the memory of the code back. No call may be running or follow.
func (p *Program) Free() {
	for _, c := range p.parts {
		c.code.free()
	}
}

// newState makes what a call needs.
func (p *Program) newState() *state {
	columns := 0
	for _, c := range p.parts {
		columns = max(columns, len(c.columns))
	}
	return &state{args: make([]uint64, argPointers/8+columns), frame: aligned(p.frame()), kept: rowsOf(p.kept, p.tile)}
}

// Run computes rows lo to hi of the outputs, as simt.Interpreter does.
func (p *Program) Run(ctx context.Context, lo, hi int, in, out []any) error {
	if err := p.m.CheckRun(lo, hi, in, out); err != nil {
		return err
	}
	var s *state
	select {
	case s = <-p.idle:
	default:
		s = p.newState()
	}
	whole := lo + (hi-lo)/p.lanes*p.lanes
	for lo < whole {
		end := whole
		if p.tile > 0 {
			end = min(lo+p.tile, whole)
		}
		if err := p.rows(ctx, s, lo, end, in, out); err != nil {
			return err
		}
		lo = end
	}
	if whole < hi {
		if err := p.rest(ctx, s, whole, hi, in, out); err != nil {
			return err
		}
	}
	select {
	case p.idle <- s:
	default:
	}
	return nil
}

// rows runs part after part for whole groups of rows, no more than those of a tile.
func (p *Program) rows(ctx context.Context, s *state, lo, hi int, in, out []any) error {
	for _, c := range p.parts {
		step := c.groups * p.lanes
		for at := lo; at < hi; at += step {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := p.call(c, s, lo, at, min(at+step, hi), in, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest computes less than a group of rows in buffers of one. What the rows behind them hold is not
// copied back.
func (p *Program) rest(ctx context.Context, s *state, lo, hi int, in, out []any) error {
	if s.in == nil {
		s.in, s.out = rowsOf(p.m.Inputs, p.lanes), rowsOf(p.m.Outputs, p.lanes)
	}
	for i := range in {
		copyRows(&p.m.Inputs[i], s.in[i], 0, in[i], lo, hi-lo)
	}
	for i := range out { // rows that the program may leave as they are
		copyRows(&p.m.Outputs[i], s.out[i], 0, out[i], lo, hi-lo)
	}
	if err := p.rows(ctx, s, 0, p.lanes, s.in, s.out); err != nil {
		return err
	}
	for i := range out {
		copyRows(&p.m.Outputs[i], out[i], lo, s.out[i], 0, hi-lo)
	}
	return nil
}

// call runs the code of a part for whole groups of rows, of a tile that starts at row first.
func (p *Program) call(c *part, s *state, first, lo, hi int, in, out []any) (err error) {
	a := s.args
	a[argFrame/8], a[argPool/8] = address(s.frame), address(c.pool)
	a[argRow/8], a[argEnd/8] = 0, uint64(hi-lo)
	for i, col := range c.columns {
		params, buffers := c.inputs, in
		if col.output {
			params, buffers = c.outputs, out
		}
		q := &params[col.param]
		if k := int(col.param) - len(buffers); k >= 0 {
			a[argPointers/8+i] = place(q, s.kept[k], col.col, lo-first)
			continue
		}
		a[argPointers/8+i] = place(q, buffers[col.param], col.col, lo)
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %.60q: %v", ErrFault, p.m.Name, r)
		}
	}()
	c.code.call(a)
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
	runtime.KeepAlive(s)
	runtime.KeepAlive(p)
	return nil
}

// address returns where bytes are; the caller keeps them alive.
func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
