package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// Accumulate adds some flows and fails.
func (s *noted) Accumulate(context.Context, Step, dataset.Span) (em.StepResult, error) {
	s.calls = append(s.calls, "add")
	return em.StepResult{}, errors.New("the device failed")
}

// TestFailedShard computes a shard that fails after a part of its flows was added: the worker clears what it holds, also if its
// word of that is lost, so that nothing of the shard counts when it is computed once more.
func TestFailedShard(t *testing.T) {
	sess := &noted{}
	w := &Worker{
		o: WorkerOptions{Bus: noBus{}}, log: slog.New(slog.DiscardHandler), after: make(chan func(), 64), ops: make(chan func(), 64), current: -1,
		spec: &Spec{Run: "r"}, state: ready, sess: sess, layout: Layout{Flows: 3},
		round: 1, task: task{Kind: flowTask, Rows: 48, ShardRows: 16}, results: map[int]shardResult{0: {Rows: 16}}, queue: []lease{{shard: 1}},
	}
	for w.next(t.Context()); w.busy > 0; w.next(t.Context()) {
		(<-w.ops)()
		w.busy--
		(<-w.after)()
	}
	if !slices.Equal(sess.calls, []string{"add", "clear"}) || len(w.held()) != 0 {
		t.Errorf("the session saw %v, and the shards %v are held; want none", sess.calls, w.held())
	}
	if s := w.stats.read(); s.Shards != 0 || s.Compute <= 0 {
		t.Errorf("%d shards in %v; want the time that was spent, and none", s.Shards, s.Compute)
	}
}
