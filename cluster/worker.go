package cluster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultLease is after how much silence a member is given up.
const DefaultLease = 10 * time.Second

// WorkerOptions say how a worker works.
type WorkerOptions struct {
	ID     string
	Bus    Bus
	Peers  []Peers // one for each transport it has
	Loader Loader
	Member Member        // what it says of itself; ID, Version, Inbox, Peers and Fence are filled in
	Dir    string        // keeps the highest fence
	Lease  time.Duration // 0: DefaultLease
	Log    *slog.Logger
}

// Worker computes for the coordinator that has the lead.
type Worker struct {
	o       WorkerOptions
	log     *slog.Logger
	inbox   string
	fence   fence
	gate    *gate // frames wait here for their exchange
	msgs    chan *message
	fetches chan stateRequest
	after   chan func()               // what to do in the loop when an operation is done
	ops     chan func()               // operations on the session, one after another
	heard   atomic.Pointer[time.Time] // when the broker has last taken its record; nil: never
	trouble atomic.Pointer[string]    // Member.Trouble; nil: none

	// Owned by the loop.
	leader  string // inbox
	spec    *Spec
	sum     uint64 // of spec
	state   workerState
	err     error
	final   bool      // err: no other worker can load the run either
	tried   time.Time // when loading began
	sess    Session
	layout  Layout
	info    SessionInfo
	busy    int                // operations that have not been done
	pending []func()           // operations that ops has no room for
	cancel  context.CancelFunc // ends loading or an exchange

	term    Term
	inTerm  context.Context // ends with the term
	endTerm context.CancelFunc
	members []memberRef
	self    int
	peers   Peers
	enrolls int     // pending enrollments
	version Version // of the session's parameters; zero: none
	lacking bool    // it is not the one of the term
	ex      *exchange
	exSums  map[string]uint32 // of ex, once it has moved
	exDone  bool
	serving map[string]bool   // by peer: whom the parameters are being sent to
	asks    map[string]*Frame // by peer: requests for the version that ex makes, answered once it counts
	staging []float32

	task           task
	round          int64
	era            int                 // of the flows: counted up when they are cleared
	results        map[int]shardResult // held, of round; counted ones too where the round has no flows
	answers        map[int][]byte      // payloads of query results
	unreported     []int               // shards whose results have not been reported
	unreportedTime time.Duration       // that they took
	told           time.Time           // of the last report
	queue          []lease
	current        int                // shard in work; -1: none
	currentOf      *Spec              // run that it is of
	drop           context.CancelFunc // ends it
	leaving        bool

	stats stats
}

type lease struct {
	shard   int
	request []byte
}

// NewWorker returns a worker that has not joined yet.
func NewWorker(o WorkerOptions) (*Worker, error) {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	fence, err := openFence(o.Dir)
	if err != nil {
		return nil, err
	}
	w := &Worker{
		o: o, log: o.Log.With("worker", o.ID), inbox: o.ID + "-" + strings.ToLower(rand.Text()[:10]), fence: fence,
		gate: newGate(), msgs: make(chan *message, 1024), fetches: make(chan stateRequest, 1024), after: make(chan func(), 64), ops: make(chan func(), 64),
		state: idle, current: -1, serving: map[string]bool{},
	}
	for _, p := range o.Peers {
		p.Handle(w.frame)
	}
	return w, nil
}

// Run joins the cluster and works until ctx ends: then it finishes what cannot
// be handed back, and leaves.
func (w *Worker) Run(ctx context.Context) error {
	stop, err := w.o.Bus.Listen(w.inbox, func(data []byte) {
		m, err := decodeMessage(data)
		if err != nil {
			w.log.Warn("message refused", "err", err)
			return
		}
		m.Payload = append([]byte(nil), m.Payload...)
		select {
		case w.msgs <- m:
		default: // it comes again
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	var background sync.WaitGroup
	background.Go(func() { w.register(live, ctx.Done()) })
	background.Go(func() { w.operate(live) })
	w.loop(ctx, live)
	w.abandon()
	w.gate.close()
	end()
	background.Wait()
	if w.sess != nil {
		return w.sess.Close()
	}
	return nil
}

// operate is the executor: it does the operations on the session, one after another.
func (w *Worker) operate(ctx context.Context) {
	for {
		select {
		case op := <-w.ops:
			op()
		case <-ctx.Done():
			return
		}
	}
}

// register keeps the worker's record alive, says in it when the worker is told to stop, and removes it at the end.
func (w *Worker) register(ctx context.Context, stopping <-chan struct{}) {
	bucket := w.o.Bus.Bucket(MembersBucket)
	m := w.o.Member
	m.ID, m.Version, m.Inbox = w.o.ID, Protocol, w.inbox
	for _, p := range w.o.Peers {
		m.Peers = append(m.Peers, p.Endpoint())
	}
	var written uint64 // revision of the record; 0: unknown
	for {
		m.Fence, m.Trouble, m.Ways = w.fence.value(), "", map[string]string{}
		if why := w.trouble.Load(); why != nil {
			m.Trouble = *why
		}
		for _, p := range w.o.Peers {
			if p, ok := p.(Wayfarer); ok {
				maps.Copy(m.Ways, p.Ways())
			}
		}
		text, err := json.Marshal(m)
		if err != nil {
			panic(fmt.Sprintf("BUG: cluster: member: %v", err))
		}
		attempt, cancel := context.WithTimeout(ctx, w.o.Lease)
		written, err = w.renew(attempt, bucket, text, written)
		cancel()
		if err == nil {
			now := time.Now() // with the monotonic clock: that on the wall may be set
			w.heard.Store(&now)
		} else if ctx.Err() == nil {
			w.log.Warn("cannot register", "err", err)
		}
		select {
		case <-time.After(w.o.Lease / 3):
		case <-stopping:
			m.Stopping, stopping = true, nil
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.o.Lease/4)
			defer cancel()
			if r, err := bucket.Get(last, w.o.ID); err == nil {
				var now Member
				if json.Unmarshal(r.Value, &now) == nil && now.Inbox == w.inbox { // not a later life's
					_ = bucket.Delete(last, w.o.ID, r.Revision) // it expires anyway
				}
			}
			return
		}
	}
}

// renew writes the worker's record, the last revision of which it is given. An earlier life's
// record is replaced, but one that has appeared since is that of another process with the same
// id: coordinators take each for a later life of the other, so neither gets work done.
func (w *Worker) renew(ctx context.Context, bucket Bucket, text []byte, last uint64) (uint64, error) {
	if last > 0 {
		rev, err := bucket.Update(ctx, w.o.ID, text, last)
		if !errors.Is(err, ErrConflict) {
			return rev, err
		}
		var other Member
		if r, err := bucket.Get(ctx, w.o.ID); err == nil && json.Unmarshal(r.Value, &other) == nil && other.Inbox != w.inbox {
			w.log.Warn("another worker has this id, and they drive each other out; give each its own --id", "host", other.Host, "pid", other.PID)
		}
	}
	return bucket.Put(ctx, w.o.ID, text)
}

// loop owns the worker's state.
func (w *Worker) loop(ctx, live context.Context) {
	beat := time.NewTicker(w.o.Lease / 10)
	defer beat.Stop()
	stopping := ctx.Done()
	var grace <-chan time.Time
	for {
		select {
		case m := <-w.msgs:
			w.receive(live, m)
		case ask := <-w.fetches:
			w.serve(ask.from, &ask.frame)
		case then := <-w.after:
			w.busy--
			then()
		case <-beat.C:
			w.beat()
		case <-stopping:
			stopping, w.leaving, w.queue = nil, true, nil
			grace = time.After(w.o.Lease)
			if w.state == loading { // a shard or a move is finished, a run that is not loaded yet is of no use
				w.abandon()
			}
			w.beat()
		case <-grace:
			return
		}
		w.hand()
		w.next(live)
		w.flush()
		if w.leaving && w.busy == 0 && (w.ex == nil || w.exDone) {
			w.beat()
			return
		}
	}
}

// do has the executor run an operation on the session, then the rest in the loop. It does not wait: each term adds operations, and a
// worker that is stuck in one is still to say that it lives, and to leave when it is told to.
func (w *Worker) do(op func() error, then func(error)) {
	w.busy++
	w.pending = append(w.pending, func() {
		err := op()
		w.after <- func() { then(err) }
	})
	w.hand()
}

// hand gives the executor as many operations as it has room for.
func (w *Worker) hand() {
	for len(w.pending) > 0 {
		select {
		case w.ops <- w.pending[0]:
			w.pending = w.pending[1:]
		default:
			return
		}
	}
}

// tell sends the leader a report. The payload is that of the kind of report.
func (w *Worker) tell(report body, payload []byte) {
	m := message{From: w.inbox, Term: w.term, Round: w.round, Body: report, Payload: payload}
	if w.spec != nil {
		m.Run = w.spec.Run
	}
	if err := w.o.Bus.Send(w.leader, m.encode()); err != nil {
		w.log.Warn("cannot send", "err", err)
	}
}

// beat tells the leader that the worker lives, and what it is at.
func (w *Worker) beat() {
	run := ""
	if w.spec != nil {
		run = w.spec.Run
	}
	w.stats.at(w.state, run, w.term)
	if w.leader == "" {
		return
	}
	b := &beatReport{State: w.state, Spec: w.sum, Version: w.version, Queue: len(w.queue), Final: w.final}
	if w.current >= 0 {
		b.Queue++
	}
	if w.leaving {
		b.State = leaving
	}
	if w.err != nil {
		b.Err = reasonOf(w.err)
	}
	if w.ex != nil {
		b.Bytes = w.ex.received()
	}
	w.tell(b, nil)
}

// receive handles a message of a coordinator.
func (w *Worker) receive(ctx context.Context, m *message) {
	newest, err := w.fence.pass(m.Term.Fence)
	if err != nil {
		w.log.Error("cannot keep the fence; orders are refused until the disk takes it", "err", err)
		why := reasonOf(err)
		w.trouble.Store(&why)
		return
	}
	if newest {
		w.trouble.Store(nil)
	}
	if !newest || w.leaving {
		return
	}
	w.leader = m.From
	switch b := m.Body.(type) {
	case *prepareOrder:
		w.prepare(ctx, &b.Spec)
		return
	case *enrollOrder:
		w.enroll(ctx, m, b)
		return
	case *releaseOrder:
		if w.spec != nil && w.spec.Run == m.Run {
			if b.Over {
				w.quit(nil)
			}
			w.unload()
			w.spec, w.sum, w.state, w.err = nil, 0, idle, nil
		}
		return
	}
	if m.Term != w.term || w.enrolls > 0 {
		return
	}
	switch b := m.Body.(type) {
	case *syncOrder:
		w.sync(ctx, b)
	case *workOrder:
		w.work(ctx, m, b)
	case *reduceOrder:
		w.reduce(ctx, m, b)
	case *commitOrder:
		w.commit(ctx, b.Version, b.MovedIn)
	}
}

// answersKept is how many answers of queries are kept for a leader that did not
// hear them.
const answersKept = 64

// frame takes a frame of a peer; it runs on the transport's goroutines.
func (w *Worker) frame(from string, f *Frame) {
	w.stats.received(len(f.Payload))
	switch f.Kind {
	case FlowFrame, ParamFrame:
		if ex := w.gate.wait(f.Term, f.Version); ex != nil {
			ex.accept(from, f)
		}
	case StateFrame, ErrorFrame:
		w.gate.state(f)
	case FetchFrame:
		select {
		case w.fetches <- newStateRequest(from, f):
		default: // it is asked again
		}
	}
}

// Health says what the worker does; err is set while it does not hear from the
// broker.
func (w *Worker) Health() (Stats, error) {
	s := w.stats.read()
	if last := w.heard.Load(); last == nil || time.Since(*last) > w.o.Lease {
		return s, fmt.Errorf("%w: the broker has not answered for %v", ErrUnreachable, w.o.Lease)
	}
	return s, nil
}

// reasonOf returns the text of an error as messages have it: one line, which
// takes its room in JSON too because it is valid UTF-8.
func reasonOf(err error) string {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(err.Error()), " "), "?")
	if text == "" {
		return "an error without a text"
	}
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "") // no half of a letter
}
