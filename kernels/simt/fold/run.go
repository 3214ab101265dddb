package fold

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels/simt"
)

// Code runs a module for rows lo to hi, as simt.Interpreter does. It is safe for concurrent use.
type Code interface {
	Run(ctx context.Context, lo, hi int, in, out []any) error
}

// Elements are numbers of elements in memory: a slice for each number of an element, []float32, []float64, []int32 or
// []int64.
type Elements []any

// Program combines elements in memory with an operator; the elements are the lanes of its code. It is safe for
// concurrent use where the elements are apart.
type Program struct {
	op            *Operator
	combine, fill Code
}

// Load makes a program of an operator, with code that load makes of its modules.
func Load(op *Operator, load func(*simt.Module) (Code, error)) (*Program, error) {
	p := &Program{op: op}
	for _, x := range []struct {
		module func() (*simt.Module, error)
		code   *Code
	}{{op.Combiner, &p.combine}, {op.Filler, &p.fill}} {
		m, err := x.module()
		if err != nil {
			return nil, err
		}
		if *x.code, err = load(m); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// New returns n initial elements.
func (p *Program) New(ctx context.Context, n int) (Elements, error) {
	var e Elements
	for _, t := range p.op.Types {
		switch t {
		case simt.F32:
			e = append(e, make([]float32, n))
		case simt.F64:
			e = append(e, make([]float64, n))
		case simt.I32:
			e = append(e, make([]int32, n))
		case simt.I64:
			e = append(e, make([]int64, n))
		default:
			return nil, fmt.Errorf("%w: %s of %v; want f32, f64, i32 or i64", ErrNest, p.op.Name, t)
		}
	}
	return e, p.Fill(ctx, e, 0, n)
}

// Part returns elements from to end.
func (e Elements) Part(from, end int) Elements {
	out := make(Elements, len(e))
	for k, s := range e {
		switch s := s.(type) {
		case []float32:
			out[k] = s[from:end]
		case []float64:
			out[k] = s[from:end]
		case []int32:
			out[k] = s[from:end]
		case []int64:
			out[k] = s[from:end]
		}
	}
	return out
}

// Fill sets elements from to end to the initial one.
func (p *Program) Fill(ctx context.Context, e Elements, from, end int) error {
	if from >= end {
		return nil
	}
	return p.fill.Run(ctx, 0, end-from, nil, e.Part(from, end))
}

// Combine combines n elements of from, beginning at an index, into those of into that begin at another.
func (p *Program) Combine(ctx context.Context, into Elements, at int, from Elements, begin, n int) error {
	if n <= 0 {
		return nil
	}
	x := into.Part(at, at+n)
	return p.combine.Run(ctx, 0, n, append(x[:len(x):len(x)], from.Part(begin, begin+n)...), x)
}

// Runner runs a planned nest.
type Runner struct {
	Threads int
	// Programs has one for each operator of the buffers, and Memory the elements of each buffer of the nest; those of
	// private ones are made by Run.
	Programs map[*Operator]*Program
	Memory   map[*Buffer]Elements
	// Value returns one element, what a Reduce combines, by its Value and the iteration of each loop around it. It is
	// called by several threads at a time.
	Value func(value int, at map[string]int) Elements
}

// Run runs the items.
func (r *Runner) Run(ctx context.Context, p *Planned) error {
	for _, b := range p.Private {
		e, err := r.Programs[b.Op].New(ctx, b.elements())
		if err != nil {
			return err
		}
		r.Memory[b] = e
	}
	return r.items(ctx, p.Body, map[string]int{})
}

func (r *Runner) items(ctx context.Context, list []Item, at map[string]int) error {
	for i := range list {
		var err error
		switch it := &list[i]; {
		case it.Loop != nil:
			err = r.loop(ctx, it.Loop, at)
		case it.Reduce != nil:
			b := it.Reduce.Into
			where := 0
			for d, index := range it.Reduce.At {
				where = where*b.Sizes[d] + index.at(at)
			}
			err = r.Programs[b.Op].Combine(ctx, r.Memory[b], where, r.Value(it.Reduce.Value, at), 0, 1)
		case it.Fill != nil:
			err = it.Fill.rows(at, it.Fill.Ranges, func(from, n int) error {
				b := it.Fill.Buffer
				return r.Programs[b.Op].Fill(ctx, r.Memory[b], from, from+n)
			})
		case it.Dimension != nil:
			err = r.dimension(ctx, it.Dimension, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// loop runs a loop, on the threads if it is parallel.
func (r *Runner) loop(ctx context.Context, l *Loop, at map[string]int) error {
	one := func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := make(map[string]int, len(at)+1)
		for k, v := range at {
			in[k] = v
		}
		in[l.Name] = i
		return r.items(ctx, l.Body, in)
	}
	threads := 1
	if l.Parallel {
		threads = max(1, min(r.Threads, l.N))
	}
	errs := make([]error, threads)
	var next atomic.Int64
	var wait sync.WaitGroup
	for t := range threads {
		wait.Go(func() {
			for errs[t] == nil {
				i := int(next.Add(1) - 1)
				if i >= l.N {
					return
				}
				errs[t] = one(i)
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// at returns where an index is.
func (x Index) at(loops map[string]int) int {
	sum := 0
	for _, t := range x {
		sum += loops[t.Loop] * t.Stride
	}
	return sum
}

// rows calls do with each run of elements that ranges of the buffer's dimensions have.
func (g *Region) rows(at map[string]int, ranges []Range, do func(from, n int) error) error {
	var visit func(d, from int) error
	visit = func(d, from int) error {
		first, size := 0, 1
		if d < len(ranges) {
			first, size = ranges[d].From.at(at), min(ranges[d].Size, g.Buffer.Sizes[d]-ranges[d].From.at(at))
			from = from*g.Buffer.Sizes[d] + first
		}
		if d >= len(ranges)-1 {
			return do(from, size)
		}
		for i := range size {
			if err := visit(d+1, from+i); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(0, 0)
}

// dimension combines the first dimension of a region, in the order of its elements.
func (r *Runner) dimension(ctx context.Context, d *Dimension, at map[string]int) error {
	b := d.Of.Buffer
	p, memory := r.Programs[b.Op], r.Memory[b]
	rest := b.elements() / max(b.Sizes[0], 1)
	into, first := memory, 1
	if d.Into != nil {
		into, first = r.Memory[d.Into], 0
	}
	for k := first; k < b.Sizes[0]; k++ {
		one := append([]Range{{Size: 1}}, d.Of.Ranges[1:]...)
		err := d.Of.rows(at, one, func(from, n int) error { return p.Combine(ctx, into, from, memory, k*rest+from, n) })
		if err != nil {
			return err
		}
	}
	return nil
}
