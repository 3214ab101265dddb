package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster/assign"
)

// Run is a run that a coordinator leads.
type Run struct {
	c     *Coordinator
	o     RunOptions
	log   *slog.Logger
	lead  *lead
	first uint64 // fence of the lead with which it began
	peers Peers
	gate  *gate
	audit *auditFile

	calls   chan func() // done in the loop
	msgs    chan *message
	fetches chan stateRequest
	found   chan []Member
	leads   chan uint64
	ended   chan struct{} // closed when the loop ends
	end     context.CancelFunc

	background sync.WaitGroup

	mu     sync.Mutex // guards what follows
	status RunStatus

	// Owned by the loop.
	workers  map[string]*workerInfo // by inbox
	term     Term
	inTerm   context.Context // ends with the term
	endTerm  context.CancelFunc
	changed  chan struct{} // closed and made anew by notify
	began    time.Time     // of the term
	members  []*workerInfo
	phase    phase
	path     string    // kernel path of all; "" until the first term
	started  bool      // workers have been invited
	spec     uint64    // sum of what they are to load; 0 before
	spare    bool      // OnSpare has been called
	formed   bool      // a term has had members
	ready    time.Time // when the first worker was
	troubled string    // why the next tick begins a new term; "": it does not
	version  Version
	movedIn  Term
	round    *round
	quiet    bool // a round was given up, and none has begun since
	rounds   int64
	mirror   *mirror
	serving  map[string]bool           // by ID: workers that it is being sent to
	speeds   map[string]*assign.Median // by kind of worker
	times    map[string]*assign.Median // seconds per shard, by kind of worker and of task
	fallen   map[string]leasedShards   // by ID: workers that were dropped and have not come back
	refused  map[string]string         // by ID: why it was last said to take no part
	err      error                     // nothing more can be done
}

// phase is how far a term has come.
type phase int

const (
	gathering phase = iota // no members
	enrolling              // members say what they hold
	syncing                // members fetch the parameters
	open_                  // work is handed out
	reducing               // the parameters move
)

// workerInfo is what a run knows of a worker: of one life of it.
type workerInfo struct {
	Member
	ref      memberRef
	heard    time.Time
	state    workerState
	info     SessionInfo // of the present run
	err      string
	final    bool    // err: no worker can load the run
	alien    bool    // it can take part in no run like this
	fenced   bool    // it refuses orders of this fence: it knows a newer one, or its disk does not take this one
	have     Version // of its parameters, by its last word
	queue    int     // shards leased to it, by its last word
	enrolled bool    // in the present term
	held     map[int]shardResult
	leased   []int // in the present term, oldest first
	before   []int // in an earlier one, until it enrolls: then it has survived them
	given    time.Time
	done     time.Time // of its last shard
	moved    *movedReport
	source   string // ID of who gives it the parameters in the present term; "": not yet told
	reset    bool   // in the next term
	overdue  bool   // it is, which has been logged
	received int64
	missed   int       // terms in a row in which it did not get the parameters
	apart    time.Time // until when it takes no part for that
}

func (w *workerInfo) fit() bool { return w.state == ready && !time.Now().Before(w.apart) }

// call does f in the loop. It fails once the run is over.
func (r *Run) call(f func()) error {
	done := make(chan struct{})
	select {
	case r.calls <- func() { f(); close(done) }:
		<-done
		return nil
	case <-r.ended:
		return fmt.Errorf("%w: the run %s is over", ErrCluster, r.o.Spec.Run)
	}
}

// loop owns the run's state.
func (r *Run) loop(ctx context.Context) {
	defer close(r.ended)
	tick := time.NewTicker(r.c.lease() / 20)
	defer tick.Stop()
	for {
		select {
		case f := <-r.calls:
			f()
		case m := <-r.msgs:
			r.receive(m)
		case ask := <-r.fetches:
			r.serve(ask.from, &ask.frame)
		case list := <-r.found:
			r.meet(list)
		case fence := <-r.leads:
			r.newLead(fence)
		case <-tick.C:
			tick.Reset(r.c.lease() / 20) // which may be another one now
			r.tick(time.Now())
		case <-ctx.Done():
			r.fail(fmt.Errorf("%w: the run was closed", ErrCluster))
			return
		}
		r.advance()
	}
}

// send gives a worker an order.
func (r *Run) send(w *workerInfo, order body) { r.sendMessage(w, r.message(order)) }

// message returns an order of the present term, about the round that is under way.
func (r *Run) message(order body) *message {
	m := &message{From: r.c.inbox, Run: r.o.Spec.Run, Term: r.term, Body: order}
	if r.round != nil {
		m.Round = r.round.id
	}
	return m
}

func (r *Run) sendMessage(w *workerInfo, m *message) {
	if err := r.c.o.Bus.Send(w.Inbox, m.encode()); err != nil {
		r.log.Warn("cannot send", "worker", w.ID, "err", err)
	}
}

// sendAll sends all members the same, written once: it may list what each holds.
func (r *Run) sendAll(order body) {
	data := r.message(order).encode()
	for _, w := range r.members {
		if err := r.c.o.Bus.Send(w.Inbox, data); err != nil {
			r.log.Warn("cannot send", "worker", w.ID, "err", err)
		}
	}
}

// fail ends the run with an error.
func (r *Run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.finish(err)
	r.endTerm()
	r.notify()
}

// notify wakes those outside the loop who wait for a worker to be found or
// enrolled, for a term, or for the end.
func (r *Run) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// receive handles a message of a worker.
func (r *Run) receive(m *message) {
	w := r.workers[m.From]
	if w == nil || w.alien {
		return
	}
	w.heard = time.Now()
	if b, ok := m.Body.(*beatReport); ok {
		r.beat(w, m, b)
		return
	}
	if m.Run != r.o.Spec.Run {
		return
	}
	present := m.Term == r.term && slices.Contains(r.members, w)
	switch b := m.Body.(type) {
	case *doneReport:
		if r.awaits(m, present) {
			r.done(w, b, m.Payload)
		}
	case *failedReport:
		if r.awaits(m, present) {
			r.failed(w, b)
		}
	case *enrolledReport:
		if present {
			r.enrolled(w, m, b)
		}
	case *movedReport:
		if present {
			r.moved(w, b)
		}
	case *troubleReport:
		if present {
			r.trouble(w, b)
		}
	}
}

// awaits reports whether a result of a shard is one of the round under way. That
// of an evaluation or a query does not depend on the term in which it was computed;
// flows count only while the term is open.
func (r *Run) awaits(m *message, present bool) bool {
	if r.round == nil || m.Round != r.round.id {
		return false
	}
	return r.round.task.Kind != flowTask || present && r.phase == open_
}

// tick does what time brings: silent workers are dropped, orders that were not
// heard are repeated, and newcomers are let in.
func (r *Run) tick(now time.Time) {
	lease := r.c.lease()
	for _, w := range slices.SortedFunc(maps.Values(r.workers), func(a, b *workerInfo) int { return cmp.Compare(a.ID, b.ID) }) {
		switch {
		case now.Sub(w.heard) > lease && !w.alien:
			r.drop(w, "it was silent")
		case w.state == idle && now.Sub(w.given) > lease/5, w.state == unfit && !w.alien && !w.final && now.Sub(w.given) > lease:
			w.given = now
			r.invite(w)
		}
	}
	if !r.started || r.err != nil {
		return
	}
	if rd := r.round; rd != nil && !rd.quit.IsZero() && (r.phase == open_ || r.phase == gathering || now.Sub(rd.quit) > 3*lease) {
		r.giveUp(rd)
	}
	if r.troubled != "" {
		r.newTerm(r.troubled)
		return
	}
	if r.phase == open_ || r.phase == gathering && !r.waits() {
		for _, w := range r.workers {
			if w.fit() && !slices.Contains(r.members, w) {
				r.newTerm(w.ID + " joins")
				return
			}
		}
	}
	for _, w := range r.members {
		if now.Sub(r.began) < lease/10 {
			return
		}
		switch r.phase {
		case enrolling:
			if !w.enrolled {
				if r.overdue(w, now.Sub(r.began)) {
					return
				}
				r.enroll(w)
			}
		case syncing:
			r.provide()
		case open_:
			if w.have == (Version{}) && r.version != (Version{}) { // it has said so, and that was lost
				r.newTerm(w.ID + " has lost the parameters")
				return
			}
			if w.have != r.version {
				r.send(w, &commitOrder{Version: r.version, MovedIn: r.movedIn})
			}
			if len(w.leased) > w.queue && now.Sub(w.given) > lease/10 {
				r.lease(w, w.leased)
			}
			if len(w.leased) > 0 && r.overdue(w, now.Sub(latest(w.given, w.done))) {
				return
			}
		case reducing:
			if w.moved == nil {
				r.send(w, r.round.reduce)
			}
		}
	}
	if r.phase == reducing && now.Sub(r.movedLast()) > 3*lease {
		r.newTerm("the parameters do not move")
	}
}

// movedLast is when any member last received something of the move under way. Those that have all that can come wait for a slower one.
func (r *Run) movedLast() time.Time {
	last := r.round.moving
	for _, w := range r.members {
		last = latest(last, w.done)
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// advance goes as far as it can.
func (r *Run) advance() {
	switch r.phase {
	case gathering:
		if r.started && r.err == nil && len(r.workers) > 0 {
			r.gather()
		}
	case enrolling, syncing:
		r.settle()
	}
	if r.phase == open_ && r.round != nil {
		r.deal()
	}
}

// finish ends the round. Shards of it that workers still have are not leased to them from then on: they are told of none,
// and what they say of them is passed over.
func (r *Run) finish(err error) {
	if r.round == nil {
		return
	}
	r.round.err = err
	close(r.round.over)
	r.round = nil
	for _, w := range r.workers {
		w.leased, w.before = nil, nil
	}
}

// Info describes the sessions of the run's members that have said what they are: what they have in common, and "mixed"
// where they differ. One that has just joined has computed nothing yet.
func (r *Run) Info() (info SessionInfo) {
	_ = r.call(func() { info = commonInfo(r.members) })
	return info
}

// Path returns the kernel path that all members have, "" if there is none. It is
// settled when the run begins.
func (r *Run) Path() string { return r.path }

func commonInfo(members []*workerInfo) (info SessionInfo) {
	for _, w := range members {
		switch {
		case w.info == SessionInfo{}:
		case info == SessionInfo{}:
			info = w.info
		default:
			info.Device, info.Path = common(info.Device, w.info.Device), common(info.Path, w.info.Path)
			info.Precision = common(info.Precision, w.info.Precision)
		}
	}
	return info
}

func common(a, b string) string {
	if a != b {
		return "mixed"
	}
	return a
}
