package simnet

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// job is a job in the broker.
type job struct {
	id       string
	body     []byte
	attempts int
	taker    uint64        // which delivery has it; 0: none
	until    time.Duration // when it goes to another taker
}

// queue is a host's view of the jobs.
type queue struct{ host *Host }

// do has op run by the broker.
func (q queue) do(ctx context.Context, what string, op func(b *broker)) error {
	_, err := ask(ctx, q.host, what, false, func() (struct{}, bool) {
		op(&q.host.net.broker)
		return struct{}{}, true
	})
	return err
}

func (q queue) Submit(ctx context.Context, id string, body []byte) error {
	if err := fits("job", body); err != nil {
		return err
	}
	body = bytes.Clone(body)
	added := false // a second request of the same call adds nothing
	return q.do(ctx, "submit "+id, func(b *broker) {
		if added || slices.ContainsFunc(b.jobs, func(j *job) bool { return j.id == id }) {
			return
		}
		added = true
		b.jobs = append(b.jobs, &job{id: id, body: body})
		q.host.net.wake()
	})
}

func (q queue) Next(ctx context.Context) (cluster.Delivery, error) {
	n := q.host.net
	d, err := ask(ctx, q.host, "next job", true, func() (*delivery, bool) {
		b := &n.broker
		i := slices.IndexFunc(b.jobs, func(j *job) bool { return j.taker == 0 })
		if i < 0 {
			return nil, false
		}
		j := b.jobs[i]
		b.takes++
		j.attempts++
		j.taker, j.until = b.takes, n.now()+AckWait
		n.expire(j, j.taker)
		n.tracef("job %s goes to %s, attempt %d", j.id, q.host.id, j.attempts)
		return &delivery{q, j, j.taker, bytes.Clone(j.body), j.attempts}, true
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// expire takes a job from a taker that has not worked on it for AckWait.
func (n *Network) expire(j *job, taker uint64) {
	n.at(j.until, func() {
		switch {
		case j.taker != taker:
		case j.until > n.now():
			n.expire(j, taker)
		default:
			n.tracef("job %s is free again", j.id)
			j.taker = 0
			n.wake()
		}
	})
}

func (q queue) Dead(ctx context.Context) ([]cluster.DeadLetter, error) {
	letters, err := ask(ctx, q.host, "dead letters", false, func() ([]cluster.DeadLetter, bool) {
		return slices.Clone(q.host.net.broker.dead), true
	})
	return letters, err
}

func (q queue) Bury(ctx context.Context, letter cluster.DeadLetter) error {
	added := false
	return q.do(ctx, "add the dead letter of "+letter.Run, func(b *broker) {
		if !added {
			added = true
			b.dead = append(b.dead, letter)
		}
	})
}

// delivery is a job in the hands of a taker, which may have lost it since.
type delivery struct {
	queue   queue
	job     *job
	taker   uint64
	body    []byte
	attempt int
}

func (d *delivery) ID() string   { return d.job.id }
func (d *delivery) Job() []byte  { return d.body }
func (d *delivery) Attempt() int { return d.attempt }

func (d *delivery) Working(ctx context.Context) error {
	return d.queue.do(ctx, "working on "+d.job.id, func(*broker) {
		if d.job.taker == d.taker {
			d.job.until = d.queue.host.net.now() + AckWait
		}
	})
}

// Done counts even if another has the job by now: it is done.
func (d *delivery) Done(ctx context.Context) error {
	return d.queue.do(ctx, "done "+d.job.id, func(b *broker) {
		b.jobs = slices.DeleteFunc(b.jobs, func(j *job) bool { return j == d.job })
		d.job.taker = ^uint64(0) // no taker's any more
	})
}

func (d *delivery) Release(ctx context.Context) error {
	return d.queue.do(ctx, "release "+d.job.id, func(*broker) {
		if d.job.taker == d.taker {
			d.job.taker = 0
			d.queue.host.net.wake()
		}
	})
}
