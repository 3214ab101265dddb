package pce

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/pce-engine/pce/circuit"
	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/cpu/sliced"
	"github.com/pce-engine/pce/run"
)

// scorer evaluates a forest with several threads.
type scorer struct {
	forest  *forest.Forest
	sliced  *sliced.Program // nil where the plain evaluator serves: linear models, minima and maxima
	code    *scheduled      // nil without a schedule
	start   []float64       // what the trees are added to
	threads int
	pace    parallel.Pace
	memory  sync.Pool    // of *scoreMemory
	mu      sync.RWMutex // read by calls for as long as they run; guards closed
	closed  bool
}

// scoreMemory is what a thread needs for the rows that it has at a time.
type scoreMemory struct {
	cells      []float32
	sums, wide []float64
}

// NewForest makes a model of a decision forest, which it checks first; an error matches
// forest.ErrForest or ErrOptions. Of the options, Threads and KernelPath say how it runs. The model has
// a continuous column for each feature, and answers Predict and Evaluate; likelihoods are
// refused with ErrKind. A forest that sliced evaluation does not cover takes the plain
// evaluator, with the same results. Close it.
func NewForest(f *forest.Forest, opts Options) (*Model, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return newForest(f, opts)
}

// newForest is NewForest for a forest that has passed Check, as those have that readers of files return.
func newForest(f *forest.Forest, opts Options) (*Model, error) {
	if f.Features < 1 || f.Features > dataset.MaxColumns {
		return nil, fmt.Errorf("%w: %d features; rows have 1 to %d", forest.ErrForest, f.Features, dataset.MaxColumns)
	}
	if opts.Threads < 0 || opts.Threads > run.MaxThreads {
		return nil, fmt.Errorf("%w: %d threads; want 0 to %d", ErrOptions, opts.Threads, run.MaxThreads)
	}
	s := &dataset.Schema{Columns: make([]dataset.Column, f.Features)}
	for i := range s.Columns {
		s.Columns[i].Kind = dataset.Continuous
		if f.Names != nil {
			s.Columns[i].Name = f.Names[i]
		}
	}
	score := &scorer{forest: f, threads: opts.Threads}
	var loops *sliced.Loops // nil: the fastest
	var err error
	if opts.KernelPath != "" {
		if loops, err = sliced.ByPath(opts.KernelPath); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	module, err := lower.Lower(f)
	if err == nil {
		score.sliced, err = sliced.New(module, loops)
	}
	if err != nil && !errors.Is(err, lower.ErrLower) {
		return nil, err
	}
	if score.threads == 0 {
		score.threads = runtime.GOMAXPROCS(0)
	}
	score.start = make([]float64, f.Outputs)
	f.Start(score.start)
	score.memory.New = func() any { return new(scoreMemory) }
	return &Model{
		plan: &run.Blueprint{Schema: s, Graph: &circuit.Graph{NumVars: f.Features}}, opts: opts, forest: score,
		exact: func() bool { return false }, close: score.close,
	}, nil
}

// Forest returns the forest, nil for a circuit. It must not be changed.
func (m *Model) Forest() *forest.Forest {
	if m.forest == nil {
		return nil
	}
	return m.forest.forest
}

// ForestBytes is the memory that a forest takes with its sliced program and the tables of its code under a schedule; 0 for a circuit,
// of which Info says it. Evaluation takes a few blocks of rows per thread in addition.
func (m *Model) ForestBytes() int64 {
	if m.forest == nil {
		return 0
	}
	bytes := m.forest.forest.Bytes()
	if m.forest.sliced != nil {
		bytes += m.forest.sliced.Bytes()
	}
	if m.forest.code != nil {
		bytes += m.forest.code.bytes()
	}
	return bytes
}

// Predict computes the predictions of a forest: what its library's own predict gives.
// rows are row-major, any number of them with a cell for each feature, NaN where it is
// missing; out gets forest.Width(forest.Prediction) numbers for each. Results do not
// depend on the number of rows or threads. For a circuit it fails with ErrKind.
func (m *Model) Predict(ctx context.Context, rows, out []float32) error {
	return score(ctx, m, forest.Prediction, rows, out)
}

// PredictBatch is Predict for a batch of Schema, whose cells are numbers as they are. One of other columns gives an error
// that matches dataset.ErrFormat.
func (m *Model) PredictBatch(ctx context.Context, b *dataset.Batch, out []float32) error {
	if m.forest == nil {
		return m.Predict(ctx, nil, nil) // which says what it is
	}
	if b == nil {
		return fmt.Errorf("%w: a nil batch; give one of %d columns", dataset.ErrFormat, m.forest.forest.Features)
	}
	columns := len(b.Columns)
	if columns != m.forest.forest.Features {
		return fmt.Errorf("%w: a batch of %d columns for a forest of %d features", dataset.ErrFormat, columns, m.forest.forest.Features)
	}
	for c := range b.Columns {
		if len(b.Columns[c].Values) != b.Rows {
			return fmt.Errorf("%w: column %d of the batch has %d values for %d rows", dataset.ErrFormat, c+1, len(b.Columns[c].Values), b.Rows)
		}
	}
	rows := make([]float32, b.Rows*columns)
	const cells = 4096 // as many as stay in the first-level cache while their columns are written one by one
	step := max(1, cells/max(1, columns))
	for lo := 0; lo < b.Rows; lo += step {
		hi := min(lo+step, b.Rows)
		for c := range b.Columns {
			at := lo*columns + c
			for _, x := range b.Columns[c].Values[lo:hi] {
				rows[at] = x
				at += columns
			}
		}
	}
	return m.Predict(ctx, rows, out)
}

// Evaluate is Predict in float64 and for all that a forest gives: predictions, raw
// scores, leaves, classes. Models of LightGBM compare and add in float64.
func (m *Model) Evaluate(ctx context.Context, what forest.What, rows, out []float64) error {
	return score(ctx, m, what, rows, out)
}

// A thread takes up to scoreMost rows at a time: the sliced program then fetches a block's cells while it works on the one
// before. Towards the end threads take fewer, down to scoreRows, or as many as the program takes through a tree together.
const (
	scoreRows = 512
	scoreMost = 16 * scoreRows
)

// score evaluates the forest of m for all rows and writes out, len(rows)/features rows times
// Width(what). Blocks of rows are handed to the threads in turn: scoreRows rows take one
// thread, and the results do not depend on their number. When ctx ends it returns ctx's error, and out is
// written in part. Sizes that do not fit, and results that the forest does not have, are
// errors. One block allocates nothing.
func score[T, U float32 | float64](ctx context.Context, m *Model, what forest.What, rows []T, out []U) error {
	s := m.forest
	if s == nil {
		return fmt.Errorf("%w: it is a circuit, which has no predictions; ask for likelihoods", ErrKind)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	f := s.forest
	width := f.Width(what)
	n := len(rows) / f.Features
	if err := ctx.Err(); err != nil {
		return err
	}
	if n*f.Features != len(rows) || n*width != len(out) || f.Has(what) != nil {
		return forest.Evaluate(f, what, rows, make([]float64, len(out))) // which says what is wrong
	}
	if s.code != nil {
		return codeScores(ctx, s, what, rows, out)
	}
	if n <= scoreRows {
		return evaluate(s, what, rows, out)
	}
	return inBlocks(ctx, s, what, rows, out)
}

// inBlocks evaluates more than scoreRows rows. It is not part of score, because what
// goroutines share is allocated.
func inBlocks[T, U float32 | float64](ctx context.Context, s *scorer, what forest.What, rows []T, out []U) error {
	f := s.forest
	width := f.Width(what)
	n := len(rows) / f.Features
	share := parallel.Shares{Threads: min(s.threads, (n+scoreRows-1)/scoreRows), Least: scoreRows, Most: scoreMost, Step: scoreRows, Pace: &s.pace}
	if s.sliced != nil && share.Threads > 1 {
		share.Least = min(s.sliced.Together(), (n/share.Threads+scoreRows-1)/scoreRows*scoreRows)
	}
	return share.Do(n, func(_, at, n int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return evaluate(s, what, rows[at*f.Features:(at+n)*f.Features], out[at*width:(at+n)*width])
	})
}

// evaluate evaluates at most scoreMost rows: by the sliced program where it is faster,
// or plainly. The results are the same to the bit.
func evaluate[T, U float32 | float64](s *scorer, what forest.What, rows []T, out []U) error {
	f := s.forest
	n := len(rows) / f.Features
	memory := s.memory.Get().(*scoreMemory)
	defer s.memory.Put(memory)
	wide, same := any(out).([]float64)
	if !same {
		wide = grow(&memory.wide, len(out))
	}
	switch {
	case s.sliced == nil || n < s.sliced.Least():
		if err := forest.Evaluate(f, what, rows, wide); err != nil {
			return err
		}
	case f.Input == forest.Float32:
		cells, same := any(rows).([]float32)
		if !same {
			cells = grow(&memory.cells, len(rows))
			for i, x := range rows {
				cells[i] = float32(x)
			}
		}
		slicedScores(s, memory, what, cells, wide)
	default:
		slicedScores(s, memory, what, rows, wide)
	}
	if !same {
		for i, x := range wide {
			out[i] = U(x)
		}
	}
	return nil
}

// slicedScores evaluates rows by the sliced program.
func slicedScores[T float32 | float64](s *scorer, memory *scoreMemory, what forest.What, rows []T, out []float64) {
	if what == forest.Leaves {
		sliced.Leaves(s.sliced, rows, out)
		return
	}
	sums := grow(&memory.sums, len(rows)/s.forest.Features*s.forest.Outputs)
	sliced.Sums(s.sliced, rows, s.start, sums)
	s.forest.FinishWith(what, sums, out, s.sliced.Loops().Sigmoid)
}

// grow returns n elements of a buffer that is kept.
func grow[T any](buffer *[]T, n int) []T {
	if cap(*buffer) < n {
		*buffer = make([]T, n)
	}
	return (*buffer)[:n]
}

// close waits for running calls; later ones fail.
func (s *scorer) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.code != nil {
		s.code.free()
	}
	s.closed = true
	return nil
}
