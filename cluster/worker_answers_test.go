package cluster

import (
	"context"
	"log/slog"
	"testing"
)

// echo answers requests with themselves.
type echo struct{ Session }

func (echo) Query(_ context.Context, request []byte) ([]byte, error) { return request, nil }

// TestAnswersKept answers some of the requests of a query, as one of several workers does, and keeps no more answers than the
// leader may ask for once more.
func TestAnswersKept(t *testing.T) {
	w := &Worker{
		o: WorkerOptions{Bus: noBus{}}, log: slog.New(slog.DiscardHandler), after: make(chan func(), 64), ops: make(chan func(), 64), current: -1,
		spec: &Spec{Run: "r"}, state: ready, sess: echo{}, round: 1, task: task{Kind: queryTask}, results: map[int]shardResult{}, answers: map[int][]byte{},
	}
	most := 0
	for s := 0; s < 1000; s += 1 + s*s%7 {
		w.queue = append(w.queue, lease{shard: s, request: []byte("x")})
		for w.next(t.Context()); w.busy > 0; {
			(<-w.ops)()
			w.busy--
			(<-w.after)()
		}
		if most = max(most, len(w.answers), len(w.results)); string(w.answers[s]) != "x" {
			t.Fatalf("the answer to request %d is %q", s, w.answers[s])
		}
	}
	if most > answersKept || most < 10 {
		t.Errorf("%d answers are kept at a time, want at most %d", most, answersKept)
	}
}
