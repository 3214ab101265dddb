package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/pce-engine/pce/cluster"
)

// How long the server keeps a request for a job.
const pullExpiry = 2 * time.Second

// queue is a cluster.Queue.
type queue struct{ bus *Bus }

// takersState says over which connection the consumer of jobs was last made.
type takersState struct {
	mu   sync.Mutex
	made context.Context
	old  bool // the consumer has been cleared, or needs not be
}

// Jobs is the queue of jobs. A job whose taker has not renewed it for three
// leases goes to the next one. An id that was done less than two minutes ago is not
// added again either.
func (b *Bus) Jobs() cluster.Queue { return &queue{b} }

func (q *queue) Submit(ctx context.Context, id string, job []byte) error {
	if err := checkToken("job", id); err != nil {
		return err
	}
	msg := &nats.Msg{Subject: ownedSubject(jobPrefix, id), Data: job, Header: nats.Header{idHeader: {id}, expectHeader: {"0"}}}
	if err := q.bus.checkSize(job, msg.Header); err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	_, _, err := q.bus.publish(ctx, msg, quick)
	if hasCode(err, codeWrongSequence, codeWrongConstant) { // it is there
		return nil
	}
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	return nil
}

// ensureTakers makes the consumer from which jobs are taken.
func (q *queue) ensureTakers(ctx, up context.Context) error {
	s := &q.bus.takers
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == up {
		return nil
	}
	if q.bus.opts.Restarted && !s.old {
		if _, err := q.bus.ask(ctx, "CONSUMER.DELETE."+jobsStream+"."+takers, nil, nil); err != nil && !hasCode(err, codeConsumerNotFound, codeStreamNotFound) {
			return err
		}
		s.old = true
	}
	lease, err := q.bus.LeaseNow(ctx)
	if err != nil || lease <= 0 {
		lease = q.bus.lease
	}
	request := struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
	}{jobsStream, jetstream.ConsumerConfig{
		Name: takers, Durable: takers,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       redeliveries * lease,
		MaxDeliver:    -1,
		MaxAckPending: -1,
	}}
	if _, err := q.bus.ask(ctx, "CONSUMER.CREATE."+jobsStream+"."+takers, request, nil); hasCode(err, codeConsumerCreate) {
		return fmt.Errorf("%w: consumer %s of stream %s of the broker was made by something else, delete it: %w", cluster.ErrCluster, takers, jobsStream, err)
	} else if err != nil {
		return err
	}
	s.made = up
	return nil
}

func (q *queue) forgetTakers() {
	q.bus.takers.mu.Lock()
	defer q.bus.takers.mu.Unlock()
	q.bus.takers.made = nil
}

func (q *queue) Next(ctx context.Context) (cluster.Delivery, error) {
	var cause error
	for try := 0; ; try++ {
		up, err := q.bus.link.wait(ctx)
		if err != nil {
			return nil, q.bus.unreachable(cause, err)
		}
		if err := q.ensureTakers(ctx, up); err != nil && !hasCode(err, codeStreamNotFound) {
			return nil, fmt.Errorf("next job: %w", err)
		} else if err == nil {
			d, err := q.pull(ctx, up)
			if d != nil {
				mine, err := d.claim(ctx)
				if err != nil {
					d.disclaim(ctx)
					_ = q.bus.nc.Publish(d.reply, []byte("-NAK"))
					return nil, fmt.Errorf("next job: %w", err)
				}
				if mine {
					return d, nil
				}
				try = 0
				continue
			}
			if errors.Is(err, ErrDenied) {
				return nil, fmt.Errorf("next job: %w", err)
			}
			if ctx.Err() != nil && err == nil {
				return nil, ctx.Err()
			}
			if cause = err; err == nil {
				try = 0
				continue
			}
		} else {
			cause = err
		}
		if end := pause(ctx, try); end != nil {
			return nil, q.bus.unreachable(cause, end)
		}
	}
}

// pull asks for one job. Without a job and an error none came in time.
func (q *queue) pull(ctx, up context.Context) (*delivery, error) {
	b := q.bus
	subject := apiPrefix + "CONSUMER.MSG.NEXT." + jobsStream + "." + takers
	denied, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer b.denials.watch(subject, cancel)()

	came := make(chan *nats.Msg, 4)
	inbox := b.nc.NewInbox()
	sub, err := b.nc.ChanSubscribe(inbox, came)
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(map[string]any{"batch": 1, "expires": pullExpiry})
	if err != nil {
		return nil, err
	}
	if err := b.nc.PublishRequest(subject, inbox, request); err != nil {
		_ = sub.Unsubscribe()
		return nil, err
	}
	end := time.NewTimer(pullExpiry + time.Second)
	defer end.Stop()
	select {
	case m := <-came:
		_ = sub.Unsubscribe()
		return q.received(m)
	case <-up.Done():
		_ = sub.Unsubscribe()
		return nil, nats.ErrDisconnected
	case <-denied.Done():
		_ = sub.Unsubscribe()
		return nil, context.Cause(denied)
	case <-end.C:
		_ = sub.Unsubscribe()
		q.forgetTakers()
		return nil, errors.New("no answer")
	case <-ctx.Done():
		// A job may be on its way.
		b.late.Go(func() {
			defer func() { _ = sub.Unsubscribe() }()
			select {
			case m := <-came:
				if d, err := q.received(m); d != nil && err == nil {
					_ = b.nc.Publish(d.reply, []byte("-NAK"))
				}
			case <-up.Done():
			case <-time.After(pullExpiry + time.Second):
			}
		})
		return nil, nil
	}
}

// received tells a job from a status.
func (q *queue) received(m *nats.Msg) (*delivery, error) {
	if status := m.Header.Get("Status"); status != "" {
		switch status {
		case "404", "408": // none came in time
			return nil, nil
		}
		q.forgetTakers()
		return nil, fmt.Errorf("status %s: %s", status, m.Header.Get("Description"))
	}
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(m.Subject, jobPrefix) {
		return nil, fmt.Errorf("a message on %s is not a job", m.Subject)
	}
	id := ownedID(jobPrefix, m.Subject)
	if err := checkToken("job", id); err != nil { // no Submit has added it, and what is about a job cannot be written of it
		q.bus.log.Warn("a job was removed from the queue", "err", err)
		return nil, q.bus.nc.Publish(m.Reply, []byte("+TERM"))
	}
	return &delivery{
		bus: q.bus, id: id, job: m.Data, reply: m.Reply,
		attempt: int(min(meta.NumDelivered, 1<<30)), sequence: meta.Sequence.Stream,
	}, nil
}

func (q *queue) Bury(ctx context.Context, letter cluster.DeadLetter) error {
	data, err := json.Marshal(letter)
	if err != nil {
		return fmt.Errorf("%w: dead letter: %v", cluster.ErrCluster, err)
	}
	msg := &nats.Msg{Subject: deadSubject, Data: data, Header: nats.Header{idHeader: {nuid.Next()}}}
	if err := q.bus.checkSize(data, msg.Header); err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	if _, _, err := q.bus.publish(ctx, msg, quick); err != nil {
		return fmt.Errorf("dead letter: %w", err)
	}
	return nil
}
