package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// job is a request's rows on their way through a lane. The goroutine of the request
// makes it, waits for done, and reads the rest only then.
type job struct {
	ctx   context.Context // of the client
	end   time.Time       // when the client stops waiting at the latest
	query int             // index into the model's queries
	asked int             // rows of the request; some queries have several of rows for each
	rows  *dataset.Batch
	// numbers are the rows of a query that takes them so, of which rows then has the number.
	numbers []float64
	inputs  [][]float64
	params  oip.Params
	other   *version  // that a parameter names; nil: none
	want    []bool    // outputs, by Query.Outputs
	shapes  [][]int64 // of those with Output.ShapeOf; nil where the query has none
	seen    time.Time

	done    chan struct{} // closed when the answer or an error is there
	outputs [][]float64
	answer  oip.Params
	err     error
	queued  time.Duration // from submit until the first of its rows was taken
	compute time.Duration // of the batches that its rows were in

	// Guarded by lane.mu.
	since   time.Time
	others  float64  // nanoseconds that batches of other models had taken when it was queued
	next    int      // rows that batches have taken
	left    int      // rows without an answer
	running []*batch // that have rows of it
}

// shape is what a row of the job has in an output of its query.
func (j *job) shape(q *Query, output int) []int64 {
	if j.shapes != nil && j.shapes[output] != nil {
		return j.shapes[output]
	}
	return q.Outputs[output].Shape
}

// width is how many numbers shape has.
func (j *job) width(q *Query, output int) int { return width(j.shape(q, output)) }

// late says why the client waits no more, or returns nil.
func (j *job) late(now time.Time) error {
	if err := j.ctx.Err(); err != nil {
		return late(err)
	}
	if !now.Before(j.end) {
		return late(context.DeadlineExceeded)
	}
	return nil
}

// queue holds the jobs of one query of one version, oldest first.
type queue struct {
	version *version
	jobs    []*job
	rows    int // that no batch has taken
}

// lane runs the batches of the models of one device. Batches form per version and
// query. A batch is due when it is full or its oldest job has waited for MaxQueueDelay.
// Models take turns by the time that their batches took: see turn.go.
type lane struct {
	opts   *Options
	wake   chan struct{} // one token for each goroutine that should look again
	closed chan struct{}
	group  sync.WaitGroup

	mu     sync.Mutex
	queues []*queue
	clock  float64    // the use of the model that was served last
	ran    float64    // nanoseconds that batches took
	served []turn     // the models that were asked last
	left   []*version // that a job has left as the last to hold them; unlock closes them
}

// newLane starts the goroutines of a lane.
func newLane(o *Options) *lane {
	l := &lane{opts: o, wake: make(chan struct{}, o.Parallel), closed: make(chan struct{})}
	for range o.Parallel {
		l.group.Go(l.run)
	}
	return l
}

// close ends the lane once its queues are empty.
func (l *lane) close() {
	close(l.closed)
	l.group.Wait()
}

func (l *lane) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// submit queues a job in the place that was reserved for it, if one was, or says how
// long the queue is. The version stays open until the job is done.
func (l *lane) submit(v *version, j *job, place *admission) error {
	j.done = make(chan struct{})
	j.left = j.rows.Rows
	l.mu.Lock()
	defer l.mu.Unlock()
	if place != nil && place.version != nil && place.version.account == v.account {
		v.account.leave(place)
		v.account.learnSize(j.asked, place.bytes)
	}
	if err := l.room(v, j.rows.Rows, "has"); err != nil {
		return err
	}
	j.since = time.Now()
	l.arrive(v, j.since)
	j.others = l.ran - v.account.ran
	i := slices.IndexFunc(l.queues, func(q *queue) bool { return q.version == v && q.jobs[0].query == j.query })
	if i < 0 {
		i = len(l.queues)
		l.queues = append(l.queues, &queue{version: v})
	}
	q := l.queues[i]
	q.jobs, q.rows = append(q.jobs, j), q.rows+j.rows.Rows
	v.account.waiting += j.rows.Rows
	v.hold()
	if j.other != nil {
		j.other.hold()
	}
	if len(q.jobs) == 1 || q.rows >= l.opts.MaxBatchRows { // else the lane's timer is set already
		l.rouse()
	}
	return nil
}

// abandon takes a job whose request has ended out of the queue. Rows that a batch has
// taken stay in it; the batch is ended when no request waits for any of them.
func (l *lane) abandon(j *job) {
	l.mu.Lock()
	defer l.unlock()
	for _, b := range j.running {
		if b.waiting--; b.waiting == 0 {
			b.cancel()
		}
	}
	for _, q := range l.queues {
		if k := slices.Index(q.jobs, j); k >= 0 {
			l.drop(q, k)
			return
		}
	}
}

// drop takes what no batch has taken of a job out of its queue. The caller holds mu.
func (l *lane) drop(q *queue, k int) {
	j := q.jobs[k]
	rest := j.rows.Rows - j.next
	q.jobs = slices.Delete(q.jobs, k, k+1)
	q.rows -= rest
	q.version.account.waiting -= rest
	if len(q.jobs) == 0 {
		l.queues = slices.DeleteFunc(l.queues, func(x *queue) bool { return x == q })
	}
	l.answered(q.version, j, rest)
}

// answered notes that rows of a job are done with. The caller holds mu, and ends that with unlock.
func (l *lane) answered(v *version, j *job, rows int) {
	if j.left -= rows; j.left > 0 {
		return
	}
	close(j.done)
	for _, held := range []*version{v, j.other} {
		if held != nil && held.leave() {
			l.left = append(l.left, held)
		}
	}
}

// unlock gives mu back and then closes what the jobs that are done were the last to hold. Closing a model takes time, and the
// lock of the repository, whose holder may be waiting for mu.
func (l *lane) unlock() {
	left := l.left
	l.left = nil
	l.mu.Unlock()
	for _, v := range left {
		v.closed()
	}
}

// piece is the part of a batch that belongs to one job.
type piece struct {
	job    *job
	lo, hi int
}

// batch is what a lane runs at once.
type batch struct {
	version *version
	query   int
	pieces  []piece
	rows    int
	ctx     context.Context
	cancel  context.CancelFunc
	waiting int     // jobs whose client waits; lane.mu guards it
	charged float64 // what its model was charged for it before it ran
}

// next takes a batch that is due, or returns how long until one is; forever where
// none waits.
func (l *lane) next(now time.Time) (*batch, time.Duration) {
	l.mu.Lock()
	defer l.unlock()
	for {
		best, wait := l.due(now)
		if best == nil {
			return nil, wait
		}
		b := l.form(best, now)
		if b.rows == 0 { // the clients of all its jobs have left
			b.cancel()
			continue
		}
		l.charge(b)
		if len(l.queues) > 0 {
			l.rouse() // another goroutine may find a batch
		}
		return b, 0
	}
}

// form takes as many rows as a batch may have out of a queue, oldest first. Jobs whose time is
// up are dropped. The caller holds mu.
func (l *lane) form(q *queue, now time.Time) *batch {
	b := &batch{version: q.version, query: q.jobs[0].query}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	most := l.most(q, now)
	if q.version.queries[b.query].Whole {
		most = 1
	}
	for len(q.jobs) > 0 && b.rows < most {
		j := q.jobs[0]
		err := j.late(now)
		if err == nil {
			err = l.stale(q, j, most, now)
		}
		if err != nil {
			j.err = err
			l.drop(q, 0)
			continue
		}
		n := min(j.rows.Rows-j.next, most-b.rows)
		if j.next == 0 {
			j.queued = max(0, now.Sub(j.since))
		}
		b.pieces = append(b.pieces, piece{j, j.next, j.next + n})
		j.running = append(j.running, b)
		b.waiting++
		j.next += n
		b.rows += n
		if j.next == j.rows.Rows {
			q.jobs = q.jobs[1:]
		}
	}
	q.rows -= b.rows
	q.version.account.waiting -= b.rows
	if len(q.jobs) == 0 {
		l.queues = slices.DeleteFunc(l.queues, func(x *queue) bool { return x == q })
	}
	return b
}

// run is a goroutine of a lane: it takes the batch that is due and executes it, or sleeps until
// one is. After close it ends once the queues are empty, so what was accepted is answered.
func (l *lane) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var scratch dataset.Batch
	for {
		b, wait := l.next(time.Now())
		if b != nil {
			l.execute(b, &scratch)
			runtime.Gosched() // answers go out before the next batch takes the processor
			continue
		}
		timer.Reset(wait)
		select {
		case <-l.wake:
		case <-timer.C:
		case <-l.closed:
			if wait == math.MaxInt64 {
				return
			}
			select {
			case <-l.wake:
			case <-timer.C:
			}
		}
	}
}

// execute runs a batch and hands out its results. Its context ends when no job of
// it has a client that waits.
func (l *lane) execute(b *batch, scratch *dataset.Batch) {
	defer b.cancel()
	q := &b.version.queries[b.query]
	w := b.work(q, scratch)
	from := time.Now()
	err := b.version.answer(b.ctx, w)
	if len(b.pieces) > 1 {
		if err == nil {
			b.share(q, w)
		} else if errors.Is(err, dataset.ErrFormat) {
			err = b.apart(q, w)
		}
	}
	took := time.Since(from)
	b.version.stats.Batch(b.rows, took)
	l.finish(b, w, took, err)
}

// work puts the rows of a batch together. The rows of a job alone stay where they are.
func (b *batch) work(q *Query, scratch *dataset.Batch) *Work {
	w := &Work{Query: q.Name, Parts: make([]Part, len(b.pieces)), Inputs: make([][]float64, len(q.Inputs)), Outputs: make([][]float64, len(q.Outputs))}
	for i, p := range b.pieces {
		w.Parts[i] = Part{Rows: p.hi - p.lo, First: p.lo, Params: p.job.params}
	}
	columns := len(b.version.schema.Columns)
	if first := b.pieces[0]; len(b.pieces) == 1 {
		w.Batch = first.job.rows
		if first.hi-first.lo < w.Batch.Rows {
			w.Batch = w.Batch.Slice(first.lo, first.hi)
		}
		if first.job.numbers != nil {
			w.Numbers = first.job.numbers[first.lo*columns : first.hi*columns]
		}
		for i, in := range q.Inputs {
			if all := first.job.inputs[i]; all != nil {
				n := width(in.Shape)
				w.Inputs[i] = all[first.lo*n : first.hi*n]
			}
		}
		for i := range q.Outputs {
			if all := first.job.outputs[i]; all != nil {
				n := first.job.width(q, i)
				w.Outputs[i] = all[first.lo*n : first.hi*n]
			}
		}
		return w
	}
	if q.Numbers != "" {
		w.Batch, w.Numbers = &dataset.Batch{Rows: b.rows}, make([]float64, 0, b.rows*columns)
	} else {
		w.Batch = scratch
		scratch.Resize(b.version.schema, b.rows)
	}
	at := 0
	for _, p := range b.pieces {
		if q.Numbers != "" {
			w.Numbers = append(w.Numbers, p.job.numbers[p.lo*columns:p.hi*columns]...)
		}
		for v := range w.Batch.Columns {
			to, from := &w.Batch.Columns[v], &p.job.rows.Columns[v]
			switch {
			case to.Codes.Narrow != nil:
				copy(to.Codes.Narrow[at:], from.Codes.Narrow[p.lo:p.hi])
			case to.Codes.Wide != nil:
				copy(to.Codes.Wide[at:], from.Codes.Wide[p.lo:p.hi])
			default:
				copy(to.Values[at:], from.Values[p.lo:p.hi])
			}
		}
		for i, in := range q.Inputs {
			n := width(in.Shape)
			if all := p.job.inputs[i]; all != nil {
				if w.Inputs[i] == nil {
					w.Inputs[i] = nans(b.rows * n)
				}
				copy(w.Inputs[i][at*n:], all[p.lo*n:p.hi*n])
			}
		}
		for i := range q.Outputs {
			if p.job.want[i] && w.Outputs[i] == nil {
				w.Outputs[i] = make([]float64, b.numbers(q, i))
			}
		}
		at += p.hi - p.lo
	}
	return w
}

// numbers is how many numbers the rows of a batch have in an output.
func (b *batch) numbers(q *Query, output int) int {
	n := 0
	for _, p := range b.pieces {
		n += (p.hi - p.lo) * p.job.width(q, output)
	}
	return n
}

func nans(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// share gives each job of a batch of several its part of the results.
func (b *batch) share(q *Query, w *Work) {
	for i, all := range w.Outputs {
		if all == nil {
			continue
		}
		for _, p := range b.pieces {
			n := p.job.width(q, i)
			own := all[:(p.hi-p.lo)*n]
			if all = all[len(own):]; p.job.outputs[i] != nil {
				copy(p.job.outputs[i][p.lo*n:], own)
			}
		}
	}
}

// apart runs the pieces of a batch one by one after the model has refused a row of one of them, so that the others are answered.
func (b *batch) apart(q *Query, w *Work) error {
	for i := range b.pieces {
		one := batch{version: b.version, query: b.query, pieces: b.pieces[i : i+1]}
		own := one.work(q, nil) // its results are the job's
		if err := b.version.answer(b.ctx, own); err != nil {
			return err
		}
		w.Parts[i].Err, w.Parts[i].Answer = own.Parts[0].Err, own.Parts[0].Answer
	}
	return nil
}

// finish tells the jobs of a batch that their rows are answered, or the error, which is then that of
// all of them. A job that is spread over several batches is answered when the last one has
// ended.
func (l *lane) finish(b *batch, w *Work, took time.Duration, err error) {
	l.mu.Lock()
	defer l.unlock()
	l.settle(b, took)
	for i, p := range b.pieces {
		j := p.job
		j.compute += took
		if j.answer = w.Parts[i].Answer; err != nil && j.err == nil {
			j.err = err
		}
		if own := w.Parts[i].Err; own != nil && j.err == nil {
			j.err = fail(ErrRequest, "query %s of model %q: %v", w.Query, b.version.name, own)
		}
		j.running = slices.DeleteFunc(j.running, func(x *batch) bool { return x == b })
		l.answered(b.version, j, p.hi-p.lo)
	}
}

// answer runs the model. A model that panics fails the batch, not the server. Rows that it does not take are the fault of
// their request, where there is one.
func (v *version) answer(ctx context.Context, w *Work) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fail(ErrInternal, "query %s of model %q: %v; the server's log has the details", w.Query, v.name, bug)
			v.log.Error("model failed", "model", v.name, "query", w.Query, "err", fmt.Sprint(bug), "stack", string(debug.Stack()))
		}
	}()
	if err := v.model.Run(ctx, w); err != nil {
		if ctx.Err() != nil {
			return err
		}
		if len(w.Parts) == 1 && errors.Is(err, dataset.ErrFormat) {
			w.Parts[0].Err = err
			return nil
		}
		return fmt.Errorf("%w: query %s of model %q: %w", ErrInternal, w.Query, v.name, err)
	}
	return nil
}
