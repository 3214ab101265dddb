package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pce-engine/pce/layers"
)

// fetch collects the state of a version from a peer.
type fetch struct {
	term    Term
	version Version
	state   []float32

	mu      sync.Mutex // guards what follows
	come    arrivals
	refused string
	news    chan struct{} // something has come since it was read
}

func newFetch(t Term, v Version, n int64) *fetch {
	whole := cut([]layers.Range{{Lo: 0, Hi: n}}, frameFloats)
	return &fetch{term: t, version: v, state: make([]float32, n), come: expect(whole), news: make(chan struct{}, 1)}
}

// fetchPatience is for how many leases nothing new may come of a fetch before it is given up. Over a slow line it takes as long as it takes:
// another attempt would take no less.
const fetchPatience = 6

// again is after how much silence a fetch asks once more.
const again = 2 * time.Second

// get asks a peer for the state until all of it has come, or nothing has for as long as patience says.
func (f *fetch) get(ctx context.Context, peers Peers, from string, patience time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(patience, func() {
		cancel(fmt.Errorf("%w: fetch version %d from %s: nothing came for %v", ErrUnreachable, f.version.Moves, from, patience))
	})
	defer stalled.Stop()
	for {
		at, more := f.missing()
		if !more {
			return nil
		}
		ask := Frame{Kind: FetchFrame, Term: f.term, Version: f.version, Offset: at, Count: int64(len(f.state))}
		err := peers.Send(ctx, from, &ask)
		silence := time.NewTimer(again)
		for quiet := false; !quiet; {
			select {
			case <-f.news:
				f.mu.Lock()
				left := f.come.left
				f.mu.Unlock()
				if left == 0 {
					silence.Stop()
					return nil
				}
				silence.Reset(again)
				stalled.Reset(patience)
			case <-silence.C:
				quiet = true
			case <-ctx.Done():
				silence.Stop()
				f.mu.Lock()
				defer f.mu.Unlock()
				switch {
				case err != nil:
					return fmt.Errorf("fetch version %d from %s: %w", f.version.Moves, from, err)
				case f.refused != "":
					return fmt.Errorf("%w: fetch version %d from %s: %s", ErrCluster, f.version.Moves, from, f.refused)
				}
				return context.Cause(ctx)
			}
		}
	}
}

// missing is where the first piece begins that has not come, if there is one.
func (f *fetch) missing() (at int64, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.come.have, false)
	if i < 0 {
		return 0, false
	}
	return f.come.pieces.list[i].offset, true
}

// accept takes a frame of the answer.
func (f *fetch) accept(frame *Frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame.Term != f.term || frame.Version != f.version {
		return
	}
	if frame.Kind == ErrorFrame {
		f.refused = string(frame.Payload[:min(len(frame.Payload), 200)])
		return
	}
	x, ok := as[float32](frame)
	if !ok {
		return
	}
	if p, ok := f.come.take(frame.Offset, frame.Count); ok {
		copy(f.state[p.offset:], x)
		select {
		case f.news <- struct{}{}:
		default:
		}
	}
}

// answer sends what a fetch asks for, from the piece on that it lacks. read fills floats of the state. It gives up where the peer takes
// nothing for as long as patience says.
func answer(ctx context.Context, peers Peers, to string, ask *Frame, n int64, patience time.Duration, read func(at int64, x []float32) error) error {
	if ask.Offset < 0 || ask.Offset%frameFloats != 0 || ask.Count != n {
		return refuse(ctx, peers, to, ask, fmt.Sprintf("the state has %d floats, not %d from %d on", n, ask.Count, ask.Offset))
	}
	send := func(f *Frame) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return peers.Send(ctx, to, f)
	}
	buf := make([]float32, min(n, frameFloats))
	for at := ask.Offset; at < n; at += frameFloats {
		x := buf[:min(frameFloats, n-at)]
		if err := read(at, x); err != nil {
			return err
		}
		if err := send(&Frame{Kind: StateFrame, Term: ask.Term, Version: ask.Version, Offset: at, Count: int64(len(x)), Payload: bytesOf(x)}); err != nil {
			return err
		}
	}
	return nil
}

func refuse(ctx context.Context, peers Peers, to string, ask *Frame, why string) error {
	return peers.Send(ctx, to, &Frame{Kind: ErrorFrame, Term: ask.Term, Version: ask.Version, Payload: []byte(why)})
}

// stateRequest is a FetchFrame on its way to the goroutine that answers it.
type stateRequest struct {
	from  string
	frame Frame // without a payload: that is the transport's
}

func newStateRequest(from string, f *Frame) stateRequest {
	r := stateRequest{from, *f}
	r.frame.Payload = nil
	return r
}

// serve answers a peer that asks for the parameters, once at a time: it repeats its request where the line is slow. A request may overtake the
// commit of the version that it wants, because the two take different ways; it is
// answered when the commit arrives. A new term ends the answer, as it does the fetch.
func (w *Worker) serve(to string, ask *Frame) {
	if w.peers == nil || w.sess == nil || ask.Term != w.term || w.busy > cap(w.ops)/4 || w.serving[to] {
		return
	}
	if w.ex != nil && ask.Version == w.ex.version.Next() {
		w.asks[to] = ask
		return
	}
	peers, sess, have, serving, patience := w.peers, w.sess, w.version, w.inTerm, fetchPatience*w.o.Lease
	w.serving[to] = true
	w.do(func() error {
		if have != ask.Version {
			return refuse(serving, peers, to, ask, fmt.Sprintf("version %d is here", have.Moves))
		}
		return answer(serving, peers, to, ask, w.layout.stateLen(), patience, func(at int64, x []float32) error { return sess.ReadState(serving, at, x) })
	}, func(err error) {
		delete(w.serving, to)
		if err != nil {
			w.log.Warn("parameters not sent", "to", to, "err", err)
		}
	})
}
