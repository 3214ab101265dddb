package cluster

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// adds is a session that adds shards.
type adds struct{ Session }

func (adds) Accumulate(context.Context, Step, dataset.Span) (em.StepResult, error) {
	return em.StepResult{Rows: 16}, nil
}

// TestBrokenSession has a session fail while a shard is behind the operation that failed: the shard does not count.
func TestBrokenSession(t *testing.T) {
	w := &Worker{
		o: WorkerOptions{Bus: noBus{}}, log: slog.New(slog.DiscardHandler), after: make(chan func(), 64), ops: make(chan func(), 64), current: -1,
		spec: &Spec{Run: "r"}, state: ready, sess: adds{}, version: Version{Lineage: 1}, layout: Layout{Flows: 3},
		round: 1, task: task{Kind: flowTask, Rows: 48, ShardRows: 16}, results: map[int]shardResult{0: {Rows: 16}}, queue: []lease{{shard: 1}},
	}
	w.next(t.Context())
	w.broken(errors.New("the device failed"))
	for w.busy > 0 {
		(<-w.ops)()
		w.busy--
		(<-w.after)()
	}
	if w.version != (Version{}) || len(w.held()) != 0 {
		t.Errorf("version %v, and the shards %v are held; want none", w.version, w.held())
	}
}
