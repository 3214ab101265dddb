package serve

import (
	"math"
	"slices"
	"time"
)

// Turns: start-time fair queueing of the models of a lane. A model's use is the time
// that its batches took. The model that has used least goes first, and one that comes
// back after a pause begins with the use of the model that was served last: what it
// did not use before, it cannot save up.

// neighbourTime is about how long a batch may take while other models of the lane are
// in use, so that their requests do not wait longer for it.
const neighbourTime = 1500 * time.Microsecond

// fewestRows is what a batch may always have: fewer rows cost nearly as much.
const fewestRows = 64

// inUse is how long after its last request, and after its last answer, a model counts as in use. Answers count, as
// a client that waits for each of them asks once in the time of the longest batch of others.
const inUse = time.Second

// turn notes when a model was asked last, or has answered.
type turn struct {
	name string
	at   time.Time
}

// arrive notes that a version is asked. The caller holds mu.
func (l *lane) arrive(v *version, now time.Time) {
	if a := v.account; a.waiting == 0 {
		a.used = max(a.used, l.clock)
	}
	l.use(v, now)
}

// use notes that a version is in use. The caller holds mu.
func (l *lane) use(v *version, now time.Time) {
	for i := range l.served {
		if l.served[i].name == v.name {
			l.served[i].at = now
			return
		}
	}
	l.served = append(l.served, turn{v.name, now})
}

// due returns the queue whose turn it is, or how long until there is one. As soon as
// any batch is due, a queue of a model that has used less goes before it, due or not:
// waiting for more requests spares the device nothing while another model has it.
// The caller holds mu.
func (l *lane) due(now time.Time) (best *queue, wait time.Duration) {
	wait = math.MaxInt64
	for _, q := range l.queues {
		left := q.jobs[0].seen.Add(max(0, l.opts.MaxQueueDelay)).Sub(now)
		if q.rows < l.opts.MaxBatchRows && left > 0 {
			wait = min(wait, left)
		} else if best == nil || q.before(best) {
			best = q
		}
	}
	if best == nil {
		return nil, wait
	}
	for _, q := range l.queues {
		if q.version.account != best.version.account && q.before(best) {
			best = q
		}
	}
	return best, 0
}

// before orders queues: that of the model that has used least first, and in one model that of the oldest job, whatever
// its query and its version are.
func (q *queue) before(other *queue) bool {
	if q.version.account != other.version.account {
		return q.version.account.used < other.version.account.used
	}
	return q.jobs[0].seen.Before(other.jobs[0].seen)
}

// most is how many rows the next batch of a queue may have. The caller holds mu.
func (l *lane) most(q *queue, now time.Time) int {
	v := q.version
	perRow := v.costs[q.jobs[0].query].perRow()
	others := slices.ContainsFunc(l.served, func(t turn) bool { return t.name != v.name && now.Sub(t.at) < inUse })
	if !others || perRow == 0 {
		return l.opts.MaxBatchRows
	}
	rows := min(float64(neighbourTime)/perRow, float64(l.opts.MaxBatchRows))
	return min(max(int(rows), fewestRows), l.opts.MaxBatchRows)
}

// charge adds what a batch should take to the use of its model, which settle corrects.
// The caller holds mu.
func (l *lane) charge(b *batch) {
	v := b.version
	b.charged = float64(b.rows) * v.costs[b.query].perRow()
	l.clock = v.account.used
	v.account.used += b.charged
}

// settle charges a batch that has ended with the time that it took. The caller holds mu.
func (l *lane) settle(b *batch, took time.Duration) {
	v := b.version
	l.use(v, time.Now())
	v.account.used += float64(took) - b.charged
	v.account.ran += float64(took)
	l.ran += float64(took)
	v.costs[b.query].add(b.rows, took)
	v.account.all.add(b.rows, took)
}
