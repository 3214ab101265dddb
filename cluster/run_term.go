package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// newLead continues under a new fence, or gives up.
func (r *Run) newLead(fence uint64) {
	if fence == 0 {
		r.fail(fmt.Errorf("%w: another coordinator has the lead", ErrDeposed))
		return
	}
	r.term = Term{Fence: fence}
	r.Update(func(s *RunStatus) { s.Term = r.term })
	r.rounds = max(r.rounds, roundsBefore(fence))
	if r.started {
		r.newTerm("the lead was taken anew")
	}
}

// roundsBefore is above the rounds of all coordinators that had the lead before: workers take an older round for the past.
func roundsBefore(fence uint64) int64 { return int64(fence) << 24 }

// newTerm begins a term with all workers that are fit.
func (r *Run) newTerm(why string) {
	r.term.Generation++
	r.endTerm()
	r.inTerm, r.endTerm = context.WithCancel(context.Background())
	r.notify()
	r.began, r.phase, r.members, r.troubled = time.Now(), gathering, nil, ""
	for _, w := range r.workers {
		if w.fit() {
			r.members = append(r.members, w)
		}
	}
	if len(r.members) == 0 { // better one that may miss the parameters than none
		for _, w := range r.workers {
			if w.apart = (time.Time{}); w.fit() {
				r.members = append(r.members, w)
			}
		}
	}
	slices.SortFunc(r.members, func(a, b *workerInfo) int { return cmp.Compare(a.ID, b.ID) })
	r.log.Info("new term", "term", r.term.String(), "members", len(r.members), "why", why)
	r.Update(func(s *RunStatus) { s.Term = r.term })
	if r.round != nil {
		r.round.recall(r.members)
	}
	if r.waits() {
		r.members = nil
	}
	if len(r.members) == 0 {
		return
	}
	r.phase, r.formed = enrolling, true
	others := map[string]Endpoint{}
	for _, w := range r.members {
		if len(w.leased) > 0 {
			w.before = w.leased
		}
		w.enrolled, w.held, w.leased, w.moved, w.source = false, nil, nil, nil, ""
		others[w.ID] = w.ref.Endpoint
	}
	r.peers.Admit(others)
	for _, w := range r.members {
		r.enroll(w)
	}
}

// waits reports whether the first term waits for workers that load the run: a few leases from when
// another is ready, which it notes, since one that is stuck in a shard of an earlier run may never be.
func (r *Run) waits() bool {
	fit, late := false, false
	for _, w := range r.workers {
		fit = fit || w.fit()
		late = late || w.state == idle || w.state == loading
	}
	switch {
	case !fit:
		r.ready = time.Time{}
	case r.ready.IsZero():
		r.ready = time.Now()
	}
	return !r.formed && late && (!fit || time.Since(r.ready) < leastPatience*r.c.lease())
}

// enroll tells a member of the term.
func (r *Run) enroll(w *workerInfo) {
	order := &enrollOrder{
		Version: r.version, MovedIn: r.movedIn, Reset: w.reset,
		Leader: memberRef{ID: r.c.o.ID, Inbox: r.c.inbox, Endpoint: r.peers.Endpoint()},
	}
	for _, other := range r.members {
		order.Members = append(order.Members, other.ref)
	}
	r.send(w, order)
}

// enrolled takes note of what a member holds.
func (r *Run) enrolled(w *workerInfo, m *message, b *enrolledReport) {
	if r.phase != enrolling && r.phase != syncing {
		return
	}
	held, err := decodeResults(flowTask, m.Payload)
	if err != nil {
		r.log.Warn("message refused", "worker", w.ID, "err", err)
		return
	}
	if rd := r.round; rd != nil && m.Round > rd.id && m.Round <= r.rounds {
		// Another coordinator has led the run between two leads of this one, in rounds of its own.
		r.rounds++
		rd.id = r.rounds
		r.newTerm(w.ID + " has worked for another coordinator")
		return
	}
	if r.round != nil && m.Round == r.round.id && r.round.task.Kind == flowTask {
		// Of shards that are finished while the term begins, this bounds the time. Where every
		// shard meets a term, no others are timed.
		more := 0
		for _, s := range w.before {
			if _, ok := held[s]; ok {
				more++
			}
		}
		if more > 0 {
			r.timesOf(w, flowTask).Add(time.Since(latest(w.given, w.done)).Seconds() / float64(more))
		}
		w.held = held
	} else {
		w.held = nil
	}
	w.enrolled, w.have, w.reset, w.before = true, b.Version, false, nil
	if w.missed > 0 && w.have == r.version && r.version != (Version{}) {
		w.missed = 0
		delete(r.refused, w.ID)
		r.Update(func(s *RunStatus) { delete(s.Unfit, w.ID) })
	}
	r.notify()
	w.info = b.Info
}

// settle ends an enrollment: all members have the parameters that count, and no
// shard is held by two.
func (r *Run) settle() {
	for _, w := range r.members {
		if !w.enrolled {
			return
		}
	}
	for _, w := range r.members {
		if r.round != nil && r.round.alone == w.Inbox && w.have == r.version.Next() {
			r.commit(r.round.aloneIn)
			r.newTerm(w.ID + " had moved the parameters alone, and its word was lost")
			return
		}
	}
	holders := map[int]*workerInfo{}
	for _, w := range r.members {
		if r.version != (Version{}) && w.have != r.version {
			w.held = nil
			continue
		}
		for s := range w.held {
			if holders[s] != nil {
				w.reset = true
			}
		}
		if w.reset {
			r.newTerm("a shard is held twice")
			return
		}
		for s := range w.held {
			holders[s] = w
		}
	}
	if r.version != (Version{}) && !r.provide() {
		r.phase = syncing
		return
	}
	r.phase = open_
	if r.round != nil {
		for s, w := range holders {
			r.round.credit(s, w, w.held[s])
		}
	}
}

// provide asks the members that lack the parameters to fetch them from those that
// have them; it reports whether none does. A member gives them to one at a time, and who waits in line hears nothing, so that it would give
// the fetch up: it is asked when one is free that has them, of which there are more and more. The coordinator gives them to all at once.
func (r *Run) provide() bool {
	var free []string // that have the parameters
	var lack []*workerInfo
	for _, w := range r.members {
		if w.have == r.version {
			free = append(free, w.ID)
		} else {
			lack = append(lack, w)
		}
	}
	if len(lack) == 0 {
		return true
	}
	here := len(free) == 0 // none but the coordinator has them
	if here && (r.mirror == nil || r.mirror.version != r.version) {
		r.version = Version{}
		r.finish(fmt.Errorf("%w: no worker that is left has them", ErrLost))
		return true
	}
	if r.quiet { // until there is something to do, those who have them are left to the one who reads them
		return false
	}
	for _, w := range lack {
		free = slices.DeleteFunc(free, func(id string) bool { return id == w.source })
	}
	for _, w := range lack {
		switch {
		case w.source != "" && time.Since(w.given) <= r.c.lease()/10:
			continue
		case w.source != "":
		case here:
			w.source = r.c.o.ID
		case len(free) == 0:
			continue
		default:
			w.source, free = free[0], free[1:]
		}
		w.given = time.Now()
		r.send(w, &syncOrder{Version: r.version, Source: w.source})
	}
	return false
}

// What a member may miss the parameters in a row before the others continue without it, and for how many leases, twice as many each time.
const (
	mostMissed   = 2
	missedLeases = 30
)

// miss notes that a member did not get the parameters, as where the one that has them does not reach it. It would hold up the others in each
// term, so it takes no part for a while if there are some.
func (r *Run) miss(w *workerInfo, why string) {
	if w.missed++; w.missed < mostMissed || len(r.members) < 2 {
		return
	}
	w.apart = time.Now().Add(missedLeases * r.c.lease() << min(w.missed-mostMissed, 6))
	w.err = "it does not get the parameters: " + why
	r.refuse(w)
}

// trouble begins a new term after a member's complaint.
func (r *Run) trouble(w *workerInfo, b *troubleReport) {
	r.log.Warn("trouble", "worker", w.ID, "term", r.term.String(), "err", b.Err)
	if r.phase == syncing && w.have != r.version {
		r.miss(w, b.Err)
	}
	if b.Blame != "" && r.round != nil {
		for _, other := range r.members {
			if other.ID == b.Blame {
				other.reset = true
				r.round.blame(other, b.Err)
			}
		}
		r.dropDead()
	}
	if time.Since(r.began) > r.c.lease()/20 {
		r.newTerm(b.Err)
	} else { // not again and again without a pause
		r.troubled = b.Err
	}
}
