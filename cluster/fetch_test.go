package cluster

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// slowPeers is a peer that answers a fetch over a slow line, one answer at a time, and breaks off the first one.
type slowPeers struct {
	Peers
	fetch  *fetch
	state  []float32
	each   time.Duration // that a piece takes; 0: it never answers
	breaks int           // pieces before the first answer breaks off; 0: it does not
	asks   chan int64    // offsets of the requests
	busy   chan struct{} // has room for the answer under way
}

func (p *slowPeers) Send(ctx context.Context, _ string, f *Frame) error {
	if f.Kind != FetchFrame {
		select {
		case <-time.After(p.each):
		case <-ctx.Done():
			return ctx.Err()
		}
		p.fetch.accept(f)
		return nil
	}
	select {
	case p.asks <- f.Offset:
	default:
	}
	select {
	case p.busy <- struct{}{}:
	default:
		return nil
	}
	go func() {
		defer func() { <-p.busy }()
		if p.each == 0 {
			<-ctx.Done()
			return
		}
		left := cmp.Or(p.breaks, -1)
		p.breaks = 0
		_ = answer(ctx, p, "joiner", f, int64(len(p.state)), time.Minute, func(at int64, x []float32) error {
			if left--; left == -1 {
				return errors.New("broken off")
			}
			copy(x, p.state[at:])
			return nil
		})
	}()
	return nil
}

// TestSlowFetch fetches parameters over a line on which that takes many leases: it is done when all have come, is continued where an answer
// breaks off, and given up only where nothing comes.
func TestSlowFetch(t *testing.T) {
	const pieces, lease = 20, DefaultLease
	for _, c := range []struct {
		name   string
		each   time.Duration
		breaks int
		want   error
		within time.Duration
	}{
		{"slow", lease, 0, nil, pieces * lease},
		{"broken off", lease, 5, nil, pieces*lease + 2*again},
		{"silent", 0, 0, ErrUnreachable, fetchPatience * lease},
	} {
		synctest.Test(t, func(t *testing.T) {
			state := make([]float32, pieces*frameFloats-1)
			for i := range state {
				state[i] = float32(i)
			}
			f := newFetch(Term{Fence: 1}, Version{Lineage: 1, Moves: 2}, int64(len(state)))
			p := &slowPeers{fetch: f, state: state, each: c.each, breaks: c.breaks, asks: make(chan int64, 1000), busy: make(chan struct{}, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			begin := time.Now()
			if err := f.get(ctx, p, "source", fetchPatience*lease); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if took := time.Since(begin); took > c.within {
				t.Errorf("%s: it took %v, want at most %v", c.name, took, c.within)
			}
			if c.want == nil && !slices.Equal(f.state, state) {
				t.Errorf("%s: other parameters have come than were sent", c.name)
			}
			close(p.asks)
			last := int64(0)
			for at := range p.asks {
				last = at
			}
			if c.want == nil && last < int64(max(c.breaks, 1))*frameFloats {
				t.Errorf("%s: the last request is for what begins at %d", c.name, last)
			}
		})
	}
}

// TestServeOnce asks a worker for its parameters several times, as over a slow line: it sends them once at a time, and stops where the term
// ends, since those of the next one wait for that.
func TestServeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewWorker(WorkerOptions{ID: "w", Bus: noBus{}})
		if err != nil {
			t.Fatal(err)
		}
		w.sess, w.peers, w.layout = stillSession{}, waitingPeers{}, Layout{Params: 10}
		w.inTerm, w.endTerm = context.WithCancel(t.Context())
		ask := &Frame{Kind: FetchFrame, Count: 10}
		for range 5 {
			w.serve("joiner", ask)
		}
		w.serve("other", ask)
		if w.busy != 2 {
			t.Errorf("%d answers to two peers", w.busy)
		}
		begin := time.Now()
		time.AfterFunc(time.Second, w.abandon)
		for range 2 {
			(<-w.ops)()
			(<-w.after)()
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the answers end after %v, want it when the term does", took)
		}
		if w.serve("joiner", ask); w.busy != 3 {
			t.Error("a peer that asks once more is not answered")
		}
	})
}

// TestServeTerm asks a coordinator for the parameters by a request of an earlier term that comes late: it is passed over, so that the one of
// the present term is answered.
func TestServeTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := Version{Lineage: 1}
		r := &Run{
			c: NewCoordinator(CoordinatorOptions{ID: "c", Bus: noBus{}}), log: slog.New(slog.DiscardHandler), peers: waitingPeers{},
			term: Term{Fence: 1, Generation: 2}, mirror: &mirror{v, make([]float32, 10)}, serving: map[string]bool{}, ended: make(chan struct{}),
		}
		close(r.ended) // there is none who does what the answers leave to do
		r.inTerm, r.endTerm = context.WithCancel(t.Context())
		for _, tc := range []struct {
			generation uint32
			want       bool
		}{{1, false}, {2, true}} {
			r.serve("w", &Frame{Kind: FetchFrame, Term: Term{Fence: 1, Generation: tc.generation}, Version: v, Count: 10})
			if r.serving["w"] != tc.want {
				t.Errorf("a request of generation %d in generation 2 is answered: %v", tc.generation, !tc.want)
			}
		}
		r.endTerm()
		r.background.Wait()
	})
}

// stillSession has parameters.
type stillSession struct{ Session }

func (stillSession) ReadState(context.Context, int64, []float32) error { return nil }

// waitingPeers take nothing.
type waitingPeers struct{ Peers }

func (waitingPeers) Send(ctx context.Context, _ string, _ *Frame) error {
	<-ctx.Done()
	return ctx.Err()
}
