package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// meet takes note of the workers that there are.
func (r *Run) meet(list []Member) {
	for _, w := range r.workers { // others are dropped when they are silent
		if w.alien && !slices.ContainsFunc(list, func(m Member) bool { return m.Inbox == w.Inbox }) {
			r.drop(w, "its record is gone")
		}
	}
	for _, m := range list {
		if w, ok := r.workers[m.Inbox]; ok {
			switch {
			case !w.fenced || m.Fence > r.term.Fence:
				continue
			case m.Trouble != "":
				r.send(w, &releaseOrder{}) // it has nothing to release; its trouble ends with an order whose fence it can keep
				continue
			}
			r.drop(w, "it obeys this lead, and is met anew")
		}
		if m.Stopping {
			continue
		}
		w := &workerInfo{Member: m, heard: time.Now(), state: idle}
		w.ref = memberRef{ID: m.ID, Inbox: m.Inbox}
		for _, e := range m.Peers {
			if e.Transport == r.o.Transport {
				w.ref.Endpoint = e
			}
		}
		for _, old := range r.workers {
			if old.ID == m.ID {
				r.drop(old, "it started again")
			}
		}
		r.workers[m.Inbox] = w
		r.notify()
		r.mourn(m)
		w.alien = true
		switch {
		case m.Refused(r.o.Build) != "":
			w.state, w.err = unfit, m.Refused(r.o.Build)
		case m.Fence > r.term.Fence:
			w.fenced = true
			w.state, w.err = unfit, fmt.Sprintf("it obeys coordinators from fence %d on, this has %d: if no other leads now, its --dir is of another cluster, or the broker lost its records; stop it, remove the file fence there, start it", m.Fence, r.term.Fence)
		case m.Trouble != "":
			w.fenced = true
			w.state, w.err = unfit, m.Trouble
		case w.ref.check() != nil:
			w.state, w.err = unfit, "its record cannot be sent to the others: "+w.ref.check().Error()
		case len(r.workers) > maxMembers:
			w.state, w.err = unfit, fmt.Sprintf("the run has %d workers already", maxMembers)
		case w.ref.Endpoint.Transport == "":
			w.state, w.err = unfit, fmt.Sprintf("it has no transport %q", r.o.Transport)
		case r.started && r.path != "" && !slices.Contains(m.Paths, r.path):
			w.state, w.err = unfit, fmt.Sprintf("it has no kernel path %q, which the others use", r.path)
		default:
			w.alien = false
			r.invite(w)
			continue
		}
		r.refuse(w)
	}
}

// refuse says that a worker takes no part: it is unfit. Who tries again and fails for the same
// reason is not said again.
func (r *Run) refuse(w *workerInfo) {
	r.Update(func(s *RunStatus) { s.Unfit[w.ID] = fmt.Sprintf("%.*s", shownReason, w.err) })
	if r.refused[w.ID] == w.err {
		return
	}
	r.refused[w.ID] = w.err
	if r.o.OnUnfit != nil {
		r.o.OnUnfit(w.ID, w.err)
	} else {
		r.log.Warn("worker takes no part", "worker", w.ID, "err", w.err)
	}
}

// shownReason bounds a reason in the status, which has one for each worker.
const shownReason = 200

// invite asks a worker to load the run.
func (r *Run) invite(w *workerInfo) {
	if r.started {
		r.send(w, &prepareOrder{Spec: r.o.Spec})
	}
}

// assemble waits for as many workers as the run wants, and starts.
func (r *Run) assemble(ctx context.Context) error {
	want, have := max(1, r.o.Workers), 0
	few := time.NewTimer(r.c.lease()) // the first look at them takes less
	defer few.Stop()
	for {
		enough := false
		var changed <-chan struct{}
		err := r.call(func() {
			changed = r.changed
			var candidates []Member
			for _, w := range r.workers {
				if w.state != unfit {
					candidates = append(candidates, w.Member)
				}
			}
			have = len(candidates)
			if enough = len(candidates) >= want || r.err != nil; !enough || r.err != nil {
				return
			}
			slices.SortFunc(candidates, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
			r.path = commonPath(candidates, r.o.Path)
			r.o.Spec.Path, r.started = r.path, true
			r.spec = r.o.Spec.sum()
			if r.path == "" {
				r.log.Warn("the workers have no kernel path in common; bits are equal only between workers of a kind")
			}
			r.Update(func(s *RunStatus) { s.SameBits = r.path != "" })
			for _, w := range r.workers {
				if w.state != unfit {
					r.invite(w)
				}
			}
		})
		if err != nil {
			return err
		}
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-few.C:
			if r.o.OnFew != nil {
				r.o.OnFew(have, want)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gather begins the first term once all invited workers are ready or unfit, or
// some are and the others take long.
func (r *Run) gather() {
	fit, waiting := 0, 0
	why := ""
	for _, w := range r.workers {
		switch w.state {
		case ready:
			fit++
		case unfit:
			if w.final {
				why = w.err
			}
		default:
			waiting++
		}
	}
	switch {
	case fit == 0 && waiting == 0 && why != "":
		r.fail(badJob(why))
	case fit > 0 && (waiting == 0 || r.formed):
		r.newTerm("workers are ready")
	}
}

// drop forgets a worker.
func (r *Run) drop(w *workerInfo, why string) {
	delete(r.workers, w.Inbox)
	r.Update(func(s *RunStatus) { delete(s.Unfit, w.ID) })
	r.log.Info("worker left", "worker", w.ID, "why", why)
	if len(w.leased) == 0 {
		w.leased = w.before
	}
	if r.round != nil && len(w.leased) > 0 {
		r.fallen[w.ID] = leasedShards{w.Inbox, r.round.id, slices.Clone(w.leased)}
	}
	if slices.Contains(r.members, w) {
		r.newTerm("lost " + w.ID)
	}
}

// leasedShards are the shards that a dropped worker held.
type leasedShards struct {
	inbox  string
	round  int64
	shards []int
}

// mourn suspects the shards that a worker held when it was dropped: now that it
// has started again, its silence was the death of a process and no cut line.
func (r *Run) mourn(m Member) {
	last, ok := r.fallen[m.ID]
	delete(r.fallen, m.ID)
	if !ok || last.inbox == m.Inbox || r.round == nil || r.round.id != last.round || r.phase == reducing { // others have computed them
		return
	}
	r.round.suspect(last.shards, m.ID)
	r.dropDead()
}

// beat takes note of what a worker is at.
func (r *Run) beat(w *workerInfo, m *message, b *beatReport) {
	if b.State == leaving {
		r.drop(w, "it was told to stop")
		delete(r.fallen, w.ID)
		return
	}
	// What it has loaded may be an earlier attempt at this run that was described otherwise, with other rows or another kernel path, while
	// the order to load this one was lost: the tick repeats it.
	if m.Run != r.o.Spec.Run || b.Spec != r.spec {
		w.state = idle
		return
	}
	was := w.state
	w.state, w.err, w.final, w.queue = b.State, b.Err, b.Final, b.Queue
	if m.Term == r.term {
		w.have = b.Version
		if b.Bytes != w.received {
			w.received, w.done = b.Bytes, time.Now()
		}
	}
	if w.state == unfit {
		r.refuse(w)
		if was != unfit && slices.Contains(r.members, w) {
			r.newTerm(w.ID + " is unfit")
		}
	}
	if w.state == ready && was != ready {
		delete(r.refused, w.ID)
		r.Update(func(s *RunStatus) { delete(s.Unfit, w.ID) })
	}
	if w.state != ready && slices.Contains(r.members, w) { // it has lost the session
		r.newTerm(w.ID + " is not ready")
	}
}

// commonPath returns a kernel path that all members have: prefer if it is one,
// else the first of the first member; "" if there is none.
func commonPath(members []Member, prefer string) string {
	if len(members) == 0 {
		return ""
	}
	common := slices.DeleteFunc(slices.Clone(members[0].Paths), func(path string) bool {
		return slices.ContainsFunc(members, func(m Member) bool { return !slices.Contains(m.Paths, path) })
	})
	switch {
	case len(common) == 0:
		return ""
	case slices.Contains(common, prefer):
		return prefer
	}
	return common[0]
}
