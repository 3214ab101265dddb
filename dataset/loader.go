package dataset

import (
	"context"
	"io"
	"sync"
)

// Cursor is a place in a run: the step that comes next.
type Cursor struct {
	Epoch int `json:"epoch"`
	Step  int `json:"step"`
}

// LoaderOptions say what a Loader hands out: the steps of a Schedule from a place on, whole or
// in shards.
type LoaderOptions struct {
	BatchRows int // most rows of a step, as in Schedule
	MinSteps  int // fewest steps of an epoch, as in Schedule
	ShardRows int // rows handed out at once; 0: all of a step
	Seed      uint64
	InOrder   bool
	Epochs    int    // 0: without end
	Start     Cursor // where to begin
}

// Step is what a Loader hands out: a step's rows, or a shard of them, as one
// batch, and its place.
type Step struct {
	At    Cursor
	Span  Span   // which of the step's rows these are
	Ends  bool   // no rows of the step are left
	Next  Cursor // where a run that stops after this step continues
	Last  bool   // the last step of its epoch
	Rows  []int  // the source's rows
	Batch *Batch
}

// Loader hands out the batches of a run, in order, and reads the next one while
// the caller works. It is not safe for concurrent use.
type Loader struct {
	steps  chan *Step // filled by run
	free   chan *Batch
	cancel context.CancelFunc
	done   sync.WaitGroup
	held   *Batch // the caller's
	err    error  // why run ended; set before steps is closed
	fault  any    // a panic of the source, likewise
}

// NewLoader starts a Loader of the steps from opts.Start on. It starts a goroutine that reads
// two shards ahead and ends when the Loader is closed, ctx ends or the last epoch is over.
// Options that contradict the rows give an error that matches ErrSetting, and then nothing
// runs.
func NewLoader(ctx context.Context, src Source, opts LoaderOptions) (*Loader, error) {
	src, err := Checked(src)
	if err != nil {
		return nil, err
	}
	plan := Schedule{Rows: src.Rows(), BatchRows: opts.BatchRows, MinSteps: opts.MinSteps, Seed: opts.Seed, InOrder: opts.InOrder}
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	if opts.ShardRows < 0 {
		return nil, badSetting("shards of %d rows; want at least 1, or 0 for whole steps", opts.ShardRows)
	}
	if opts.ShardRows == 0 {
		opts.ShardRows = opts.BatchRows
	}
	if c := opts.Start; c.Epoch < 0 || c.Step < 0 || c.Step >= plan.Steps() {
		return nil, badSetting("start at epoch %d, step %d of %d; the cursor is of another run", c.Epoch, c.Step, plan.Steps())
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &Loader{steps: make(chan *Step), free: make(chan *Batch, 2), cancel: cancel}
	l.free <- &Batch{}
	l.free <- &Batch{}
	l.done.Go(func() {
		defer close(l.steps)
		defer func() { l.fault = recover() }()
		l.err = l.run(ctx, src, plan, opts)
	})
	return l, nil
}

// run is the loader's goroutine: it hands over shard after shard, in the order of the
// schedule, until the epochs are over (io.EOF), ctx ends or the source fails. The order of an
// epoch is computed when its first step comes, from the seed and the epoch alone.
func (l *Loader) run(ctx context.Context, src Source, plan Schedule, opts LoaderOptions) error {
	at := opts.Start
	var order []int
	for opts.Epochs == 0 || at.Epoch < opts.Epochs {
		if order == nil {
			order = plan.Order(at.Epoch)
		}
		rows, next := plan.Step(order, at.Step), Cursor{at.Epoch, at.Step + 1}
		last := next.Step == plan.Steps()
		if last {
			next, order = Cursor{Epoch: at.Epoch + 1}, nil
		}
		for _, span := range Shards(len(rows), opts.ShardRows) {
			s := &Step{At: at, Span: span, Ends: span.Hi == len(rows), Next: next, Last: last, Rows: rows[span.Lo:span.Hi]}
			if err := l.hand(ctx, src, s); err != nil {
				return err
			}
		}
		at = next
	}
	return io.EOF
}

// hand reads the rows of s and gives it to the caller.
func (l *Loader) hand(ctx context.Context, src Source, s *Step) error {
	select {
	case s.Batch = <-l.free:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := src.Gather(ctx, s.Batch, s.Rows); err != nil {
		return err
	}
	select {
	case l.steps <- s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Next returns the next step, io.EOF after the last epoch, or the error that
// ended reading. The step's batch is the caller's until the next call. A panic of the source
// is one of the caller's, who may recover from it.
func (l *Loader) Next(ctx context.Context) (*Step, error) {
	if l.held != nil {
		l.free <- l.held
		l.held = nil
	}
	select {
	case s, ok := <-l.steps:
		if !ok && l.fault != nil {
			panic(l.fault)
		}
		if !ok {
			return nil, l.err
		}
		l.held = s.Batch
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the Loader's goroutine and waits for it. It may be called twice.
func (l *Loader) Close() {
	l.cancel()
	l.done.Wait()
}
