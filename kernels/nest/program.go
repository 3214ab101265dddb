package nest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/fold"
)

// Code runs a kernel for rows lo to hi, as simt.Interpreter does. It is safe for concurrent use.
type Code interface {
	Run(ctx context.Context, lo, hi int, in, out []any) error
}

// Program is a module that is ready to run. It is safe for concurrent use.
type Program struct {
	m       *Module
	code    map[*Kernel]Code
	threads int
	adder   *fold.Program // adds private sums
	chunk   int           // rows at a time, where words are kept or sums are private; 0: all
	memory  sync.Pool
	device  *device // nil: kernels run on the CPU
}

// keptWords bounds the words of trees that are kept at a time, and the private sums.
const keptWords = 1 << 22

// threadRows is the least number of rows that a thread takes of a kernel that is parallel.
const threadRows = 256

// New makes a program with code that load makes of each kernel. What is parallel runs on that many threads.
func New(m *Module, threads int, load func(*simt.Module) (Code, error)) (*Program, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	p := &Program{m: m, code: map[*Kernel]Code{}, threads: max(threads, 1)}
	var err error
	words := m.private(m.Body) * m.Outputs
	if words > 0 { // before the kernels, whose code is what a caller takes note of
		p.adder, err = fold.Load(fold.Sum(m.Sum), func(code *simt.Module) (fold.Code, error) { return load(code) })
	}
	m.Kernels(func(k *Kernel) {
		if err == nil {
			p.code[k], err = load(k.Code)
		}
	})
	if m.Kept {
		words += m.Trees
	}
	if words > 0 {
		p.chunk = max(keptWords/words, 512)
	}
	p.memory.New = func() any { return &memory{} }
	return p, err
}

// private returns the most iterations that have sums of their own.
func (m *Module) private(list []Item) (most int) {
	for i := range list {
		if l := list[i].Loop; l != nil {
			if most = max(most, m.private(l.Body)); l.Private {
				most = max(most, (m.Trees+l.Step-1)/l.Step)
			}
		}
	}
	return most
}

// Module returns the module that is run.
func (p *Program) Module() *Module { return p.m }

// memory is what a call needs: sums by columns, which trees a kernel walks, words of trees.
type memory struct {
	x, sums    any
	first, end []int32
	kept       []int32
	own        []own     // of the iterations of a parallel loop over trees
	words      [][]int32 // kept by a thread of such a loop, before they are copied to kept
}

// own is what an iteration has for itself.
type own struct {
	sums       any // columns
	first, end []int32
}

// call is a call in progress, with slices for all its rows.
type call struct {
	*Program
	memory
	rows int
}

// Sums adds the trees to sums, [row][output], for row-major rows of T.
func Sums[T float32 | float64](ctx context.Context, p *Program, rows []T, sums []float64) error {
	if len(rows)%p.m.Features != 0 || len(sums) != len(rows)/p.m.Features*p.m.Outputs {
		return fmt.Errorf("%w: %d cells and %d sums; want %d and %d for each row", ErrModule, len(rows), len(sums), p.m.Features, p.m.Outputs)
	}
	return inParts(p, rows, func(rows []T, at int) error {
		return part(ctx, p, rows, sums[at*p.m.Outputs:][:len(rows)/p.m.Features*p.m.Outputs], nil)
	})
}

// Words writes what kernels keep of each tree, [row][tree], for row-major rows of T. The module has to keep words for every tree.
func Words[T float32 | float64](ctx context.Context, p *Program, rows []T, words []int32) error {
	if len(rows)%p.m.Features != 0 || !p.m.Kept || len(words) != len(rows)/p.m.Features*p.m.Trees {
		return fmt.Errorf("%w: %d cells and %d words; want %d and %d for each row, of a module that keeps them: %t", ErrModule, len(rows), len(words), p.m.Features, p.m.Trees, p.m.Kept)
	}
	return inParts(p, rows, func(rows []T, at int) error {
		n := len(rows) / p.m.Features
		return part(ctx, p, rows, make([]float64, n*p.m.Outputs), words[at*p.m.Trees:(at+n)*p.m.Trees])
	})
}

// inParts calls do with the rows that may be computed at a time, and the number of the first.
func inParts[T float32 | float64](p *Program, rows []T, do func(rows []T, at int) error) error {
	n := len(rows) / p.m.Features
	step := n
	if p.chunk > 0 {
		step = p.chunk
	}
	for at := 0; at < n; at += step {
		if err := do(rows[at*p.m.Features:min(at+step, n)*p.m.Features], at); err != nil {
			return err
		}
	}
	return nil
}

// part is Sums for the rows of a chunk, and Words where there are some.
func part[T float32 | float64](ctx context.Context, p *Program, rows []T, sums []float64, words []int32) error {
	mem := p.memory.Get().(*memory)
	defer p.memory.Put(mem)
	n := len(rows) / p.m.Features
	c := &call{Program: p, memory: *mem, rows: n}
	_, single := any(rows).([]float32)
	switch {
	case single == (p.m.Cell == simt.F32):
		c.x = rows
	case p.m.Cell == simt.F32:
		c.x = narrowed(c.x, rows)
	default:
		c.x = widened(c.x, rows)
	}
	if p.m.Sum == simt.F32 {
		c.sums = columns[float32](c.sums, sums, p.m.Outputs)
	} else {
		c.sums = columns[float64](c.sums, sums, p.m.Outputs)
	}
	var err error
	if p.device != nil {
		err = p.device.run(ctx, c, words)
	} else {
		c.first, c.end = grown(c.first, n), grown(c.end, n)
		if p.m.Kept {
			c.kept = grown(c.kept, n*p.m.Trees)
		}
		err = c.items(ctx, p.m.Body, span{0, n}, span{0, p.m.Trees})
		if words != nil {
			copy(words, c.kept)
		}
	}
	switch s := c.sums.(type) {
	case []float32:
		back(sums, s, p.m.Outputs)
	case []float64:
		back(sums, s, p.m.Outputs)
	}
	*mem = c.memory
	if single == (p.m.Cell == simt.F32) {
		mem.x = nil // the caller's
	}
	return err
}

func grown(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}

// again returns n elements, of a slice that is kept if it is long enough.
func again[U float32 | float64](old any, n int) []U {
	if s, ok := old.([]U); ok && cap(s) >= n {
		return s[:n]
	}
	return make([]U, n)
}

func narrowed[T float32 | float64](old any, rows []T) any { return converted[float32](old, rows) }
func widened[T float32 | float64](old any, rows []T) any  { return converted[float64](old, rows) }

func converted[U, T float32 | float64](old any, rows []T) []U {
	s := again[U](old, len(rows))
	for i, x := range rows {
		s[i] = U(x)
	}
	return s
}

// columns returns sums by columns.
func columns[U float32 | float64](old any, sums []float64, outputs int) []U {
	s := again[U](old, len(sums))
	n := len(sums) / outputs
	for r := range n {
		for o := range outputs {
			s[o*n+r] = U(sums[r*outputs+o])
		}
	}
	return s
}

// back writes sums by rows.
func back[U float32 | float64](sums []float64, s []U, outputs int) {
	n := len(sums) / outputs
	for r := range n {
		for o := range outputs {
			sums[r*outputs+o] = float64(s[o*n+r])
		}
	}
}

// span is a range of rows or trees.
type span struct{ lo, hi int }

// of returns what an item takes of a span.
func (it *Item) of(s span) span {
	s.lo += it.Skip
	if it.Most > 0 {
		s.hi = min(s.hi, s.lo+it.Most)
	}
	return s
}

// items runs loops and kernels for some rows and trees.
func (c *call) items(ctx context.Context, list []Item, rows, trees span) error {
	for i := range list {
		it := &list[i]
		var err error
		switch {
		case it.Kernel != nil:
			err = c.kernel(ctx, it.Kernel, it.of(rows), trees)
		case it.Loop.Rows:
			err = c.overRows(ctx, it.Loop, it.of(rows), trees)
		case it.Loop.Parallel:
			err = c.overTrees(ctx, it.Loop, rows, it.of(trees))
		default:
			s := it.of(trees)
			for at := s.lo; at < s.hi && err == nil; at += it.Loop.Step {
				err = c.items(ctx, it.Loop.Body, rows, span{at, min(at+it.Loop.Step, s.hi)})
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// overRows runs a loop over rows, on the threads if it is parallel: its iterations have rows of their own.
func (c *call) overRows(ctx context.Context, l *Loop, rows, trees span) error {
	one := func(at int) error {
		s := span{at, min(at+l.Step, rows.hi)}
		if l.Fetch {
			c.fetch(s)
		}
		return c.items(ctx, l.Body, s, trees)
	}
	if !l.Parallel {
		for at := rows.lo; at < rows.hi; at += l.Step {
			if err := one(at); err != nil {
				return err
			}
		}
		return nil
	}
	return c.spread((rows.hi-rows.lo+l.Step-1)/l.Step, func(k int) error { return one(rows.lo + k*l.Step) })
}

// overTrees runs a loop over trees on the threads. Iterations with sums of their own are added in their order, so that the
// number of threads changes nothing.
func (c *call) overTrees(ctx context.Context, l *Loop, rows, trees span) error {
	if rows.lo >= rows.hi {
		return nil
	}
	n := max(0, (trees.hi-trees.lo+l.Step-1)/l.Step)
	for len(c.own) < n {
		c.own = append(c.own, own{})
	}
	words := c.lend(n)
	err := c.spread(n, func(k int) error {
		in, mine := *c, &c.own[k]
		mine.first, mine.end = grown(mine.first, c.rows), grown(mine.end, c.rows)
		in.first, in.end = mine.first, mine.end
		if l.Private {
			if err := c.initial(ctx, mine, rows); err != nil {
				return err
			}
			in.sums = mine.sums
		}
		at := trees.lo + k*l.Step
		part := span{at, min(at+l.Step, trees.hi)}
		if words == nil {
			return in.items(ctx, l.Body, rows, part)
		}
		in.kept = <-words
		defer func() { words <- in.kept }()
		if err := in.items(ctx, l.Body, rows, part); err != nil {
			return err
		}
		for r := rows.lo; r < rows.hi; r++ {
			copy(c.kept[r*c.m.Trees+part.lo:r*c.m.Trees+part.hi], in.kept[r*c.m.Trees+part.lo:])
		}
		return nil
	})
	for k := 0; k < n && err == nil && l.Private; k++ {
		for o := 0; o < c.m.Outputs && err == nil; o++ {
			at := o*c.rows + rows.lo
			err = c.adder.Combine(ctx, fold.Elements{c.sums}, at, fold.Elements{c.own[k].sums}, at, rows.hi-rows.lo)
		}
	}
	return err
}

// lend returns buffers for the words that threads keep of the same rows, one for each thread that n iterations take; nil if there is
// one thread, or nothing is kept. Code may write all words of a row that it runs at the end, also those of other threads' trees.
func (c *call) lend(n int) chan []int32 {
	n = min(n, c.threads)
	if !c.m.Kept || n < 2 {
		return nil
	}
	for len(c.words) < n {
		c.words = append(c.words, nil)
	}
	words := make(chan []int32, n)
	for k := range n {
		c.words[k] = grown(c.words[k], c.rows*c.m.Trees)
		words <- c.words[k]
	}
	return words
}

// initial makes sums that change none that they are added to, for some rows.
func (c *call) initial(ctx context.Context, mine *own, rows span) error {
	if c.m.Sum == simt.F32 {
		mine.sums = again[float32](mine.sums, c.rows*c.m.Outputs)
	} else {
		mine.sums = again[float64](mine.sums, c.rows*c.m.Outputs)
	}
	for o := range c.m.Outputs {
		if err := c.adder.Fill(ctx, fold.Elements{mine.sums}, o*c.rows+rows.lo, o*c.rows+rows.hi); err != nil {
			return err
		}
	}
	return nil
}

// spread calls do with 0 to n-1 on the threads, and returns an error of one.
func (c *call) spread(n int, do func(int) error) error {
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, min(c.threads, max(n, 1)))
	work := func(i int) {
		for errs[i] == nil {
			k := int(next.Add(1) - 1)
			if k >= n {
				return
			}
			errs[i] = do(k)
		}
	}
	for i := 1; i < len(errs); i++ {
		wait.Go(func() { work(i) })
	}
	work(0)
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// line is how many bytes of rows come near at a time.
const line = 64

// fetch reads a cell of each line of some rows.
func (c *call) fetch(rows span) {
	var sum float64
	switch x := c.x.(type) {
	case []float32:
		for i := rows.lo * c.m.Features; i < rows.hi*c.m.Features; i += line / 4 {
			sum += float64(x[i])
		}
	case []float64:
		for i := rows.lo * c.m.Features; i < rows.hi*c.m.Features; i += line / 8 {
			sum += x[i]
		}
	}
	runtime.KeepAlive(sum) // so that the loads are not left out
}

// kernel runs a kernel for some rows and trees.
func (c *call) kernel(ctx context.Context, k *Kernel, rows, trees span) error {
	if rows.lo >= rows.hi || trees.lo >= trees.hi && k.Trees {
		return nil
	}
	if c.device != nil {
		return c.device.launch(ctx, k, c.rows, trees)
	}
	in := []any{c.x, c.sums}
	if k.Trees {
		for r := rows.lo; r < rows.hi; r++ {
			c.first[r], c.end[r] = int32(trees.lo), int32(trees.hi)
		}
		in = append(in, c.first, c.end)
	}
	if k.Adds {
		in = append(in, c.kept)
	}
	out := []any{c.sums}
	if k.Keeps {
		out[0] = c.kept
	}
	if !k.Parallel {
		return c.code[k].Run(ctx, rows.lo, rows.hi, in, out)
	}
	n := min(max((rows.hi-rows.lo)/threadRows, 1), 4*c.threads)
	share := (rows.hi - rows.lo + n - 1) / n
	return c.spread(n, func(i int) error {
		lo := rows.lo + i*share
		if hi := min(lo+share, rows.hi); lo < hi {
			return c.code[k].Run(ctx, lo, hi, in, out)
		}
		return nil
	})
}
