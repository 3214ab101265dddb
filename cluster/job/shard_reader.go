package job

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
)

// maxAhead is how many shards are read ahead: the one that is asked for next and
// the one behind it, which is named before.
const maxAhead = 2

// shardReader reads the rows of shards ahead. One goroutine uses it.
type shardReader struct {
	src dataset.Source
	ctx context.Context // ends with close
	end context.CancelFunc

	plan  dataset.Schedule // whose epoch is kept
	epoch int
	order []int // of the epoch; nil: none yet

	held  *dataset.Batch   // the caller's
	spare []*dataset.Batch // free
	ahead []*reading       // oldest first
	bg    sync.WaitGroup
}

// reading is a shard that is being read.
type reading struct {
	step  cluster.Step
	shard dataset.Span
	batch *dataset.Batch
	done  chan struct{}
	err   error // once done is closed
}

func newShardReader(src dataset.Source) *shardReader {
	r := &shardReader{src: src, held: new(dataset.Batch)}
	r.ctx, r.end = context.WithCancel(context.Background())
	return r
}

// close ends reading ahead, and waits for it.
func (r *shardReader) close() {
	r.end()
	r.bg.Wait()
}

// list returns the rows of a shard, or an error that says why it does not exist.
func (r *shardReader) list(step cluster.Step, shard dataset.Span) ([]int, error) {
	plan := step.Schedule
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	if plan.Rows != r.src.Rows() || step.At.Epoch < 0 || step.At.Step < 0 || step.At.Step >= plan.Steps() {
		return nil, fmt.Errorf("%w: epoch %d, step %d of a plan over %d rows, and there are %d rows", cluster.ErrJob, step.At.Epoch, step.At.Step, plan.Rows, r.src.Rows())
	}
	if r.order == nil || r.plan != plan || r.epoch != step.At.Epoch {
		r.plan, r.epoch, r.order = plan, step.At.Epoch, plan.Order(step.At.Epoch)
	}
	rows := plan.Step(r.order, step.At.Step)
	if shard.Lo < 0 || shard.Lo >= shard.Hi || shard.Hi > len(rows) {
		return nil, fmt.Errorf("%w: shard of the rows %d to %d of a step of %d", cluster.ErrJob, shard.Lo, shard.Hi-1, len(rows))
	}
	return rows[shard.Lo:shard.Hi], nil
}

// prepare begins to read a shard. When too many are being read that were not
// asked for, the oldest is forgotten.
func (r *shardReader) prepare(step cluster.Step, shard dataset.Span) {
	if r.find(step, shard) >= 0 {
		return
	}
	rows, err := r.list(step, shard)
	if err != nil {
		return // read says why
	}
	if len(r.ahead) == maxAhead {
		r.ahead = r.ahead[1:]
	}
	a := &reading{step: step, shard: shard, batch: new(dataset.Batch), done: make(chan struct{})}
	if n := len(r.spare); n > 0 {
		a.batch, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	r.ahead = append(r.ahead, a)
	r.bg.Go(func() {
		defer close(a.done)
		a.err = r.src.Gather(r.ctx, a.batch, rows)
	})
}

// find returns the place of a shard among those that are being read, or -1.
func (r *shardReader) find(step cluster.Step, shard dataset.Span) int {
	return slices.IndexFunc(r.ahead, func(a *reading) bool { return a.step == step && a.shard == shard })
}

// read returns the rows of a shard; the batch is the caller's until the next call.
func (r *shardReader) read(ctx context.Context, step cluster.Step, shard dataset.Span) (*dataset.Batch, error) {
	if i := r.find(step, shard); i >= 0 {
		a := r.ahead[i]
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r.ahead = slices.Delete(r.ahead, i, i+1)
		r.spare = append(r.spare, r.held)
		r.held = a.batch
		return r.held, a.err
	}
	rows, err := r.list(step, shard)
	if err != nil {
		return nil, err
	}
	return r.held, r.src.Gather(ctx, r.held, rows)
}
