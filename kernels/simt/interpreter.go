package simt

import (
	"context"
	"fmt"
)

// blockRows is how many rows an instruction is run for before the next one is: few enough
// that their values stay in a cache, and enough that finding the instruction costs little.
const blockRows = 256

// A module of very many values and constants, which no cache holds anyhow, has blocks of fewer rows: as many as keep them within
// mostFrame, and leastRows at least.
const (
	mostFrame = 16 << 20
	leastRows = 16
)

// Interpreter runs a module. It is safe for concurrent use.
type Interpreter struct {
	m         *Module
	steps     []step
	constants []constant
	slots     [numTypes]int
	rows      int   // of a block
	tables    []any // slices of the tables' elements
	frames    chan *frame
}

// Element is the Go type of an element of an input, output or table.
type Element interface {
	float32 | float64 | int32 | int64 | uint8 | uint16
}

// Compile verifies a module and makes an interpreter of it, which keeps up to idle frames of
// values for later calls.
func Compile(m *Module, idle int) (*Interpreter, error) {
	if err := m.Verify(); err != nil {
		return nil, err
	}
	p := &Interpreter{m: m, frames: make(chan *frame, max(idle, 1))}
	p.steps, p.constants, p.slots = lower(m)
	for p.rows = blockRows; p.rows > leastRows && p.Bytes() > mostFrame; p.rows /= 2 {
	}
	for _, t := range m.Tables {
		p.tables = append(p.tables, elements(t))
	}
	return p, nil
}

// elements returns the elements of a table as a slice of their Go type.
func elements(t Table) any {
	switch t.Type {
	case F32:
		return fill(make([]float32, len(t.Bits)), t.Bits)
	case F64:
		return fill(make([]float64, len(t.Bits)), t.Bits)
	case I32:
		return fill(make([]int32, len(t.Bits)), t.Bits)
	case I64:
		return fill(make([]int64, len(t.Bits)), t.Bits)
	case U8:
		return fill(make([]uint8, len(t.Bits)), t.Bits)
	}
	return fill(make([]uint16, len(t.Bits)), t.Bits)
}

func fill[T Element](s []T, bits []uint64) []T {
	for i, b := range bits {
		s[i] = fromBits[T](b)
	}
	return s
}

// Module returns the module that is run.
func (p *Interpreter) Module() *Module { return p.m }

// Bytes returns what a frame takes in memory.
func (p *Interpreter) Bytes() int64 {
	n := 0
	for t, slots := range p.slots {
		n += slots * max(1, Type(t).Bits()/8) * p.rows
	}
	return int64(n)
}

// Live returns how many values of a lane are needed at a time, without constants.
func (p *Interpreter) Live() int {
	n := -len(p.constants)
	for _, slots := range p.slots {
		n += slots
	}
	return n
}

// ProgramBytes estimates what the program itself takes in memory.
func (p *Interpreter) ProgramBytes() int64 {
	const perValue = 300 // of instruction, step and type
	n := int64(len(p.m.Types)) * perValue
	for _, t := range p.m.Tables {
		n += 16 * int64(len(t.Bits))
	}
	return n
}

// Run computes rows lo to hi of the outputs. in and out hold, for each input and output, a
// slice of its Go type with room for more rows than hi: its length over the width is the
// distance of the columns of one that lies by columns. Run returns early if ctx ends.
func (p *Interpreter) Run(ctx context.Context, lo, hi int, in, out []any) error {
	if err := p.m.CheckRun(lo, hi, in, out); err != nil {
		return err
	}
	var f *frame
	select {
	case f = <-p.frames:
	default:
		f = p.newFrame()
	}
	f.in, f.out = in, out
	for ; lo < hi; lo += p.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		f.lo, f.n, f.mask = lo, min(p.rows, hi-lo), nil
		f.run(p.steps)
	}
	f.in, f.out = nil, nil
	select {
	case p.frames <- f:
	default:
	}
	return nil
}

// CheckRun reports why a run of rows lo to hi with slices for inputs and outputs is not possible.
func (m *Module) CheckRun(lo, hi int, in, out []any) error {
	if len(in) != len(m.Inputs) || len(out) != len(m.Outputs) || lo < 0 || hi < lo {
		return fmt.Errorf("%w: %.60q: run of rows %d to %d with %d inputs and %d outputs, want %d and %d",
			ErrModule, m.Name, lo, hi, len(in), len(out), len(m.Inputs), len(m.Outputs))
	}
	for i, list := range [][]any{in, out} {
		for k, s := range list {
			q := m.Inputs
			if i == 1 {
				q = m.Outputs
			}
			t, n, ok := sliceOf(s)
			if !ok || t != q[k].Type || n/q[k].Width < hi {
				return fmt.Errorf("%w: %.60q: %s has %d elements of %T, want %d columns of %v for %d rows",
					ErrModule, m.Name, q[k].Name, n, s, q[k].Width, q[k].Type, hi)
			}
		}
	}
	return nil
}

// sliceOf returns type and length of a slice of elements.
func sliceOf(s any) (t Type, n int, ok bool) {
	switch s := s.(type) {
	case []float32:
		return F32, len(s), true
	case []float64:
		return F64, len(s), true
	case []int32:
		return I32, len(s), true
	case []int64:
		return I64, len(s), true
	case []uint8:
		return U8, len(s), true
	case []uint16:
		return U16, len(s), true
	}
	return 0, 0, false
}

// frame holds the values of a block of rows: by type, [slot][lane].
type frame struct {
	p       *Interpreter
	in, out []any
	lo, n   int    // the rows
	mask    []bool // lanes whose stores count; nil: all
	f32     [][]float32
	f64     [][]float64
	i32     [][]int32
	i64     [][]int64
	u8      [][]uint8
	u16     [][]uint16
	pred    [][]bool
}

// newFrame allocates the lanes of every slot for a block of rows, and fills the slots of
// constants, which no step writes. A frame belongs to one goroutine and is used for block after
// block.
func (p *Interpreter) newFrame() *frame {
	f := &frame{
		p:   p,
		f32: lanes[float32](p.slots[F32], p.rows), f64: lanes[float64](p.slots[F64], p.rows),
		i32: lanes[int32](p.slots[I32], p.rows), i64: lanes[int64](p.slots[I64], p.rows),
		u8: lanes[uint8](p.slots[U8], p.rows), u16: lanes[uint16](p.slots[U16], p.rows), pred: lanes[bool](p.slots[Pred], p.rows),
	}
	for _, c := range p.constants {
		switch c.of {
		case F32:
			repeat(f.f32[c.slot], fromBits[float32](c.bits))
		case F64:
			repeat(f.f64[c.slot], fromBits[float64](c.bits))
		case I32:
			repeat(f.i32[c.slot], fromBits[int32](c.bits))
		case I64:
			repeat(f.i64[c.slot], fromBits[int64](c.bits))
		case U8:
			repeat(f.u8[c.slot], fromBits[uint8](c.bits))
		case U16:
			repeat(f.u16[c.slot], fromBits[uint16](c.bits))
		case Pred:
			repeat(f.pred[c.slot], c.bits != 0)
		}
	}
	return f
}

func lanes[T any](slots, rows int) [][]T {
	all := make([]T, slots*rows)
	s := make([][]T, slots)
	for i := range s {
		s[i] = all[i*rows : (i+1)*rows : (i+1)*rows]
	}
	return s
}

func repeat[T any](s []T, x T) {
	for i := range s {
		s[i] = x
	}
}

// run executes steps for the block of rows. Values are computed in every lane, active or not,
// since no operation can fail; only stores and what blocks yield look at the mask.
func (f *frame) run(steps []step) {
	for i := range steps {
		s := &steps[i]
		switch s.op {
		case If:
			f.branch(s)
			continue
		case Loop:
			f.repeat(s.repeat)
			continue
		case Gather:
			f.gather(s)
			continue
		case LoadAt:
			f.loadAt(s)
			continue
		case StoreAt:
			f.storeAt(s)
			continue
		case Convert:
			f.convert(s)
			continue
		case Bitcast:
			f.bitcast(s)
			continue
		}
		switch s.of {
		case F32:
			floatStep(f, s, f.f32, fma32)
		case F64:
			floatStep(f, s, f.f64, fma64)
		case I32:
			integerStep(f, s, f.i32)
		case I64:
			integerStep(f, s, f.i64)
		case U8:
			anyStep(f, s, f.u8)
		case U16:
			anyStep(f, s, f.u16)
		case Pred:
			f.predStep(s)
		}
	}
}

// branch runs both blocks for all lanes, as values of lanes that are off do no harm; a mask
// keeps their stores back. A block that no lane takes is left out.
func (f *frame) branch(s *step) {
	outer, condition := f.mask, f.pred[s.a][:f.n]
	mask := make([]bool, f.n)
	yes, no := false, false
	for i, c := range condition {
		on := outer == nil || outer[i]
		mask[i] = c && on
		yes, no = yes || mask[i], no || on && !c
	}
	if yes {
		f.mask = mask
		f.run(s.branch.then)
		for _, m := range s.branch.thenMoves {
			f.copy(m, nil)
		}
	}
	if no {
		rest := make([]bool, f.n)
		for i, c := range condition {
			rest[i] = !c && (outer == nil || outer[i])
		}
		f.mask = rest
		f.run(s.branch.other)
		for _, m := range s.branch.elseMoves {
			f.copy(m, rest)
		}
	}
	f.mask = outer
}

// repeat runs turns of a loop until no lane continues, at most s.most of them. A lane that has
// left keeps its carried values; the next ones are copied aside first, as they may read carried
// ones.
func (f *frame) repeat(s *repeatSteps) {
	outer, active := f.mask, f.pred[s.active][:f.n]
	for i := range active {
		active[i] = outer == nil || outer[i]
	}
	for _, m := range s.init {
		f.copy(m, nil)
	}
	f.mask = active
	for range s.most {
		f.run(s.body)
		for _, m := range s.next {
			f.copy(m, nil)
		}
		for _, m := range s.carried {
			f.copy(m, active)
		}
		any := false
		for i, c := range f.pred[s.more][:f.n] {
			active[i] = active[i] && c
			any = any || active[i]
		}
		if !any {
			break
		}
	}
	f.mask = outer
}

// copy moves the values of a slot, where only is nil or holds.
func (f *frame) copy(m move, only []bool) {
	switch m.of {
	case F32:
		copyLanes(f.f32[m.to][:f.n], f.f32[m.from], only)
	case F64:
		copyLanes(f.f64[m.to][:f.n], f.f64[m.from], only)
	case I32:
		copyLanes(f.i32[m.to][:f.n], f.i32[m.from], only)
	case I64:
		copyLanes(f.i64[m.to][:f.n], f.i64[m.from], only)
	case U8:
		copyLanes(f.u8[m.to][:f.n], f.u8[m.from], only)
	case U16:
		copyLanes(f.u16[m.to][:f.n], f.u16[m.from], only)
	case Pred:
		copyLanes(f.pred[m.to][:f.n], f.pred[m.from], only)
	}
}

func copyLanes[T any](dst, src []T, only []bool) {
	if only == nil {
		copy(dst, src)
		return
	}
	for i := range dst {
		if only[i] {
			dst[i] = src[i]
		}
	}
}
