package cluster

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestStuckInTerms has a worker that is stuck in an operation take part in a hundred terms: it goes through all orders, and leaves when
// it is told to.
func TestStuckInTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Worker{
			o: WorkerOptions{Bus: noBus{}, Peers: []Peers{deadEnd{}}, Lease: DefaultLease}, log: slog.New(slog.DiscardHandler), inbox: "w-1", fence: &fenceFile{}, gate: newGate(),
			msgs: make(chan *message, 1024), fetches: make(chan stateRequest, 1), after: make(chan func(), 64), ops: make(chan func(), 64), current: -1,
			spec: &Spec{Run: "r"}, state: ready, sess: &noted{}, layout: Layout{Flows: 3},
		}
		live, end := context.WithCancel(t.Context())
		defer end()
		stuck := make(chan struct{})
		defer close(stuck)
		w.do(func() error { <-stuck; return nil }, func(error) {})
		go w.operate(live)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.loop(ctx, live) }()
		for g := range uint32(100) {
			w.msgs <- &message{From: "c-1", Run: "r", Term: Term{Fence: 1, Generation: g + 1}, Body: &enrollOrder{
				Leader: memberRef{Endpoint: deadEnd{}.Endpoint()}, Members: []memberRef{{Inbox: w.inbox}},
			}}
		}
		time.Sleep(time.Second)
		if len(w.msgs) > 0 {
			t.Errorf("%d of 100 orders are not taken", len(w.msgs))
		}
		stop()
		time.Sleep(2 * DefaultLease)
		select {
		case <-done:
		default:
			t.Fatal("the worker does not leave")
		}
	})
}
