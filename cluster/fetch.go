package cluster

import (
	"context"
	"fmt"
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

// patience says how long a fetch of that many floats may take.
func fetchPatience(lease time.Duration, floats int64) time.Duration {
	const slowest = 1 << 20 // floats a second
	return 6*lease + time.Duration(floats/slowest)*time.Second
}

// again is after how much silence a fetch asks once more.
const again = 2 * time.Second

// get asks a peer for the state until all of it has come.
func (f *fetch) get(ctx context.Context, peers Peers, from string) error {
	for {
		ask := Frame{Kind: FetchFrame, Term: f.term, Version: f.version, Count: int64(len(f.state))}
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
				return ctx.Err()
			}
		}
	}
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

// answer sends what a fetch asks for. read fills floats of the state.
func answer(ctx context.Context, peers Peers, to string, ask *Frame, n int64, read func(at int64, x []float32) error) error {
	if ask.Offset != 0 || ask.Count != n {
		return refuse(ctx, peers, to, ask, fmt.Sprintf("the state has %d floats, not %d", n, ask.Count))
	}
	buf := make([]float32, min(n, frameFloats))
	for at := int64(0); at < n; at += frameFloats {
		x := buf[:min(frameFloats, n-at)]
		if err := read(at, x); err != nil {
			return err
		}
		f := Frame{Kind: StateFrame, Term: ask.Term, Version: ask.Version, Offset: at, Count: int64(len(x)), Payload: bytesOf(x)}
		if err := peers.Send(ctx, to, &f); err != nil {
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

// serve answers a peer that asks for the parameters. A request may overtake the
// commit of the version that it wants, because the two take different ways; it is
// answered when the commit arrives.
func (w *Worker) serve(ctx context.Context, to string, ask *Frame) {
	if w.peers == nil || w.sess == nil || ask.Term != w.term || w.busy > cap(w.ops)/4 {
		return
	}
	if w.ex != nil && ask.Version == w.ex.version.Next() {
		w.asks[to] = ask
		return
	}
	peers, sess, have := w.peers, w.sess, w.version
	serving, cancel := context.WithTimeout(ctx, fetchPatience(w.o.Lease, ask.Count))
	w.do(func() error {
		defer cancel()
		if have != ask.Version {
			return refuse(serving, peers, to, ask, fmt.Sprintf("version %d is here", have.Moves))
		}
		return answer(serving, peers, to, ask, w.layout.stateLen(), func(at int64, x []float32) error { return sess.ReadState(serving, at, x) })
	}, func(err error) {
		if err != nil {
			w.log.Warn("parameters not sent", "to", to, "err", err)
		}
	})
}
