package cluster

import (
	"context"
	"errors"
	"time"
)

// prepare loads a run, unless it is loaded: the session of an earlier attempt at it will do only if that was described alike, since it may
// have had other rows, or another kernel path.
func (w *Worker) prepare(ctx context.Context, spec *Spec) {
	if w.spec.same(spec) && (w.state != unfit || w.final || time.Since(w.tried) < w.o.Lease/2) {
		w.beat()
		return
	}
	w.tried = time.Now()
	w.quit(spec)
	w.unload()
	w.spec, w.sum, w.state, w.err, w.final = spec, spec.sum(), loading, nil, false
	loadCtx, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	var sess Session
	w.do(func() (err error) {
		sess, err = w.o.Loader.Load(loadCtx, *spec, w.o.Bus.Blobs())
		return err
	}, func(err error) {
		if w.spec != spec || w.leaving { // another one came meanwhile, or a signal
			if sess != nil {
				w.do(sess.Close, func(error) {})
			}
			return
		}
		if err != nil {
			w.state, w.err, w.final = unfit, err, errors.Is(err, ErrJob)
			w.log.Error("cannot load the run", "run", spec.Run, "err", err)
		} else {
			w.sess, w.layout, w.info, w.state = sess, sess.Layout(), sess.Info(), ready
		}
		w.beat()
	})
}

// unload forgets the run and all that belongs to it.
func (w *Worker) unload() {
	w.abandon()
	w.exSums = nil
	if sess := w.sess; sess != nil {
		w.do(sess.Close, func(err error) {
			if err != nil {
				w.log.Warn("closing the run", "err", err)
			}
		})
	}
	w.sess, w.term, w.version, w.ex, w.staging = nil, Term{}, Version{}, nil, nil
	w.round, w.results, w.answers = 0, nil, nil
	w.gate.set(Term{Fence: w.fence.value()}, nil)
}

// abandon ends what is under way in a term: queued shards, what is sent of the parameters, and an exchange that
// has not moved.
func (w *Worker) abandon() {
	w.queue = nil
	if w.endTerm != nil {
		w.endTerm()
	}
	if w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// enroll enters a term: once the executor is idle, parameters are those of a
// version that counts, or none, and the worker says what it holds.
func (w *Worker) enroll(ctx context.Context, m *message, b *enrollOrder) {
	if w.state != ready || w.spec.Run != m.Run {
		return
	}
	if m.Term == w.term {
		if w.enrolls == 0 {
			w.enrolled()
		}
		return
	}
	if !m.Term.Above(w.term) {
		return
	}
	w.abandon()
	w.inTerm, w.endTerm = context.WithCancel(ctx)
	w.term, w.members, w.self = m.Term, b.Members, -1
	others := map[string]Endpoint{b.Leader.ID: b.Leader.Endpoint}
	for i, s := range b.Members {
		if s.Inbox == w.inbox {
			w.self = i
			continue
		}
		others[s.ID] = s.Endpoint
	}
	w.peers = nil
	for _, p := range w.o.Peers {
		if p.Endpoint().Transport == b.Leader.Endpoint.Transport {
			w.peers = p
		}
	}
	if w.peers == nil || w.self < 0 {
		w.log.Error("term without a place for this worker", "term", m.Term, "transport", b.Leader.Endpoint.Transport)
		return
	}
	w.peers.Admit(others)
	w.gate.set(m.Term, nil)
	w.enrolls++
	sess, flows := w.sess, w.layout.Flows
	w.do(func() error { return nil }, func(error) { // the executor is idle
		settled := func(err error) {
			w.enrolls--
			if sess != w.sess { // the run is gone
				return
			}
			if err != nil {
				w.broken(err)
			}
			w.lacking = w.version != b.Version
			if w.enrolls == 0 {
				w.enrolled()
			}
		}
		if sess != w.sess {
			settled(nil)
			return
		}
		ex, sums := w.ex, w.exSums
		w.ex, w.exSums = nil, nil
		if ex != nil && sums != nil && b.Version == ex.version.Next() && b.MovedIn == ex.term {
			w.results = nil
			w.do(func() error { return finish(ctx, ex) }, func(err error) {
				if err == nil && sess == w.sess {
					w.version = b.Version
				}
				settled(err)
			})
			return
		}
		w.do(func() error {
			if ex != nil {
				if err := ex.undo(ctx); err != nil {
					return err
				}
			}
			if b.Reset {
				return clearFlows(ctx, sess, flows)
			}
			return nil
		}, func(err error) {
			if b.Reset && sess == w.sess {
				w.results = nil
			}
			settled(err)
		})
	})
}

// enrolled says what the worker holds.
func (w *Worker) enrolled() {
	w.unreported, w.unreportedTime = nil, 0
	held := w.held()
	w.tell(&enrolledReport{Version: w.version, Info: w.info}, encodeResults(flowTask, held, w.results))
}

// broken gives the parameters up after an error of the session.
func (w *Worker) broken(err error) {
	w.log.Error("session failed", "err", err)
	w.version, w.results, w.ex = Version{}, nil, nil
	w.era++ // a shard that is being computed counts as little
	w.tell(&troubleReport{Err: reasonOf(err)}, nil)
}

// held lists the shards whose flows the session holds.
func (w *Worker) held() runs {
	if w.task.Kind != flowTask {
		return nil
	}
	var list []int
	for s := range w.results {
		list = append(list, s)
	}
	return runsOf(list)
}

// zeros is only read: it clears flows.
var zeros [frameFlows]int64

// clearFlows takes all shards back.
func clearFlows(ctx context.Context, sess Session, flows int64) error {
	for at := int64(0); at < flows; at += frameFlows {
		if err := sess.WriteFlows(ctx, at, zeros[:min(frameFlows, flows-at)]); err != nil {
			return err
		}
	}
	return nil
}

// sync fetches the parameters of a version.
func (w *Worker) sync(ctx context.Context, b *syncOrder) {
	if w.version == b.Version {
		w.enrolled()
		return
	}
	if !w.lacking || w.ex != nil || w.gate.fetching() {
		return
	}
	w.version, w.results = Version{}, nil
	w.era++
	f := newFetch(w.term, b.Version, w.layout.stateLen())
	w.gate.setFetch(f)
	fetching, cancel := context.WithCancel(ctx)
	w.cancel = cancel
	peers, source, sess, flows := w.peers, b.Source, w.sess, w.layout.Flows
	w.do(func() error {
		defer cancel()
		defer w.gate.setFetch(nil)
		if err := f.get(fetching, peers, source, fetchPatience*w.o.Lease); err != nil {
			return err
		}
		if err := clearFlows(ctx, sess, flows); err != nil {
			return err
		}
		return sess.WriteState(ctx, 0, f.state)
	}, func(err error) {
		if sess != w.sess || w.term != f.term {
			return
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) { // a new term has ended it, or the end of the run
				w.tell(&troubleReport{Err: reasonOf(err)}, nil)
			}
			return
		}
		w.version, w.lacking = f.version, false
		w.enrolled()
	})
}
