package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/cluster/assign"
)

// CoordinatorOptions say how a coordinator works.
type CoordinatorOptions struct {
	ID    string // begins with c-; kept over restarts: the same coordinator takes its own lead again at once
	Bus   Bus
	Peers []Peers       // one for each transport it has
	Lease time.Duration // a worker that is silent for this long is given up; 0: DefaultLease
	// LeaseNow asks the broker how long records of members and the lead live, which the coordinator lives by from then on: with a longer
	// time its lead would vanish before it is renewed, and with a shorter one it would give up workers that live by the broker's and
	// speak less often; nil: the lease stays as it is.
	LeaseNow func(ctx context.Context) (time.Duration, error)
	Log      *slog.Logger
}

// Coordinator commands the workers of a cluster, one run at a time, while it has
// the lead.
type Coordinator struct {
	o     CoordinatorOptions
	log   *slog.Logger
	inbox string
	lives atomic.Int64 // the lease

	mu  sync.Mutex
	run *Run // the present one
}

// NewCoordinator returns a coordinator that has no lead yet.
func NewCoordinator(o CoordinatorOptions) *Coordinator {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Coordinator{o: o, log: o.Log, inbox: o.ID + "-" + strings.ToLower(rand.Text()[:10])}
	c.lives.Store(int64(cmp.Or(o.Lease, DefaultLease)))
	for _, p := range o.Peers {
		p.Handle(c.frame)
	}
	return c
}

// lease is how long a silent worker is waited for, and how long records of the lead live as far as is known here.
func (c *Coordinator) lease() time.Duration { return time.Duration(c.lives.Load()) }

// follow asks for the lease that the broker has now. An answer that does not come changes nothing: it is asked again with the next renewal.
func (c *Coordinator) follow(ctx context.Context) {
	if c.o.LeaseNow == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.lease()/4)
	defer cancel()
	if now, err := c.o.LeaseNow(ctx); err == nil && now > 0 && now != c.lease() {
		c.log.Warn("the broker has another lease now; living by it", "lease", now, "before", c.lease())
		c.lives.Store(int64(now))
	}
}

// RunOptions describe a run to a coordinator.
type RunOptions struct {
	Spec      Spec
	Build     string       // Member.Build of workers that take part; "": any
	Status    RunStatus    // what is known at the beginning
	Transport string       // tcp or nats
	Workers   int          // members that the first term waits for; 0: 1
	Path      string       // kernel path of an earlier part of the run, which is taken again if all members have it
	Again     bool         // it may have ended before, and continues: its first status replaces that end
	AuditFile string       // one AuditLine for each step that counts; "": none
	OnWait    func(Holder) // called with each run that has the lead while Begin waits; may be nil
	// OnFew is called once if the run has the lead and waits for workers, as they have left while another one had it; may be nil.
	OnFew func(have, want int)
	// OnSpare is called once if a step has fewer shards than there are workers; may be nil.
	OnSpare func(shards, workers int)
	// OnUnfit is called when a worker takes no part, once for each reason; nil: the coordinator's log says so.
	OnUnfit func(worker, why string)
}

// Begin waits for the lead of the cluster and for workers, and starts a run.
func (c *Coordinator) Begin(ctx context.Context, o RunOptions) (_ *Run, err error) {
	var peers Peers
	for _, p := range c.o.Peers {
		if p.Endpoint().Transport == o.Transport {
			peers = p
		}
	}
	if peers == nil {
		return nil, fmt.Errorf("%w: no transport %q here", ErrJob, o.Transport)
	}
	if have := c.o.Bus.MaxPayload(); have < leastPayload {
		return nil, fmt.Errorf("%w: the broker takes messages of %d bytes; set its max_payload to %d or more", ErrJob, have, leastPayload)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	holder := Holder{ID: c.o.ID, Inbox: c.inbox, Run: o.Spec.Run, Host: host, PID: os.Getpid()}
	l, fence, err := takeLead(ctx, c.o.Bus.Bucket(LeadBucket), holder, c.lease, c.follow, o.OnWait)
	if err != nil {
		return nil, err
	}
	r := &Run{
		c: c, o: o, log: c.log.With("run", o.Spec.Run), lead: l, first: fence, peers: peers,
		calls: make(chan func()), msgs: make(chan *message, 4096), fetches: make(chan stateRequest, 1024), found: make(chan []Member), leads: make(chan uint64), ended: make(chan struct{}),
		workers: map[string]*workerInfo{}, fallen: map[string]leasedShards{}, refused: map[string]string{}, serving: map[string]bool{}, speeds: map[string]*assign.Median{}, times: map[string]*assign.Median{}, term: Term{Fence: fence}, status: o.Status, gate: newGate(),
		rounds:  roundsBefore(fence),
		changed: make(chan struct{}),
	}
	r.inTerm, r.endTerm = context.WithCancel(context.Background())
	r.status.Run, r.status.Lead, r.status.Transport, r.status.Shards, r.status.Unfit = o.Spec.Run, c.o.ID, o.Transport, map[string]int{}, map[string]string{}
	r.status.Term = r.term // also while it waits for workers, its lead is later than those before
	if r.audit, err = openAudit(o.AuditFile); err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	r.end = end
	stop, err := c.o.Bus.Listen(c.inbox, r.hear)
	if err != nil {
		end()
		return nil, errors.Join(err, r.audit.close(), l.release(ctx))
	}
	c.mu.Lock()
	c.run = r
	c.mu.Unlock()
	r.background.Go(func() { defer stop(); r.loop(live) })
	r.background.Go(func() { r.discover(live) })
	r.background.Go(func() { r.report(live) })
	r.background.Go(func() {
		l.keep(live, func(fence uint64) {
			select {
			case r.leads <- fence:
			case <-live.Done():
			}
		})
	})
	if err := r.assemble(ctx); err != nil {
		r.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return r, nil
}

// frame takes a frame of a worker.
func (c *Coordinator) frame(from string, f *Frame) {
	c.mu.Lock()
	r := c.run
	c.mu.Unlock()
	if r == nil {
		return
	}
	switch f.Kind {
	case StateFrame, ErrorFrame:
		r.gate.state(f)
	case FetchFrame:
		select {
		case r.fetches <- newStateRequest(from, f):
		default: // it is asked again
		}
	}
}

// hear takes a message of a worker.
func (r *Run) hear(data []byte) {
	m, err := decodeMessage(data)
	if err != nil {
		r.log.Warn("message refused", "err", err)
		return
	}
	m.Payload = append([]byte(nil), m.Payload...)
	select {
	case r.msgs <- m:
	default: // it comes again
	}
}

// discover looks for workers, until ctx ends. A record is read once for as long as it says the same, which is most of the
// time: workers write theirs less often than they are looked for, and seldom with news.
func (r *Run) discover(ctx context.Context) {
	type known struct {
		text   []byte
		member Member
	}
	before := map[string]known{}
	for {
		attempt, cancel := context.WithTimeout(ctx, r.c.lease())
		records, err := r.c.o.Bus.Bucket(MembersBucket).List(attempt)
		cancel()
		if err == nil {
			var list []Member
			now := make(map[string]known, len(records))
			for _, rec := range records {
				k, ok := before[rec.Key]
				if !ok || !bytes.Equal(k.text, rec.Value) {
					k = known{text: rec.Value}
					if err := json.Unmarshal(rec.Value, &k.member); err != nil {
						r.log.Warn("member record refused", "worker", rec.Key, "err", err)
						continue
					}
				}
				if now[rec.Key] = k; k.member.ID == rec.Key {
					list = append(list, k.member)
				}
			}
			before = now
			select {
			case r.found <- list:
			case <-ctx.Done():
			}
		}
		select {
		case <-time.After(r.c.lease() / 10):
		case <-ctx.Done():
			return
		}
	}
}

// report keeps the run's status in its bucket, until ctx ends.
func (r *Run) report(ctx context.Context) {
	bucket := r.c.o.Bus.Bucket(RunsBucket)
	last, revision := "", uint64(0)
	put := func(ctx context.Context) {
		r.mu.Lock()
		state, fence := r.status.State, r.status.Term.Fence
		text, err := json.Marshal(r.status)
		r.mu.Unlock()
		if err != nil {
			panic(fmt.Sprintf("BUG: cluster: status: %v", err))
		}
		if string(text) == last {
			return
		}
		attempt, cancel := context.WithTimeout(ctx, r.c.lease())
		defer cancel()
		if written, err := r.write(attempt, bucket, text, revision, state, fence); err == nil {
			last, revision = string(text), written
		}
	}
	for {
		put(ctx)
		select {
		case <-time.After(r.c.lease() / 10):
		case <-ctx.Done():
			put(context.WithoutCancel(ctx))
			return
		}
	}
}

// write replaces the status in the bucket, the last revision of which it is given; 0: none was written. While this coordinator was cut off
// another one may have led the run, or have ended it: what a later lead says, or that the run has ended, stays, and the error matches
// ErrConflict. That the run was left unfinished does not stay, as it is led here. The first status replaces what earlier leads have left,
// but for the end of a run that does not continue after one: another has ended it since this coordinator decided to lead it.
func (r *Run) write(ctx context.Context, bucket Bucket, text []byte, last uint64, state string, fence uint64) (uint64, error) {
	key := r.o.Spec.Run
	if last > 0 {
		revision, err := bucket.Update(ctx, key, text, last)
		if !errors.Is(err, ErrConflict) {
			return revision, err
		}
	}
	rec, err := bucket.Get(ctx, key)
	if errors.Is(err, ErrNoRecord) {
		return bucket.Create(ctx, key, text)
	}
	if err != nil {
		return 0, err
	}
	var now RunStatus
	err = json.Unmarshal(rec.Value, &now)
	switch {
	case last == 0 && now.Term.Fence <= r.first && (r.o.Again || !now.Ended()): // also where it cannot be read
	case err != nil:
		return 0, err
	case now.State != state && now.State != StateInterrupted || now.Term.Fence > fence:
		return 0, ErrConflict
	}
	return bucket.Update(ctx, key, text, rec.Revision)
}

// Update changes the status of the run; others see it soon.
func (r *Run) Update(change func(*RunStatus)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
}

// Close ends the run: the workers let go of it, and the lead is given back.
func (r *Run) Close(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case r.calls <- func() {
		for _, w := range r.workers {
			r.send(w, &releaseOrder{Over: true})
		}
		close(done)
	}:
		<-done
	case <-r.ended:
	}
	r.end()
	r.background.Wait()
	r.gate.close()
	r.c.mu.Lock()
	if r.c.run == r {
		r.c.run = nil
	}
	r.c.mu.Unlock()
	attempt, cancel := context.WithTimeout(ctx, r.c.lease())
	defer cancel()
	err := r.lead.release(attempt)
	if auditErr := r.audit.close(); err == nil {
		err = auditErr
	}
	return err
}

// lineage returns a random name for parameters that come from here.
func lineage() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:]) | 1
}
