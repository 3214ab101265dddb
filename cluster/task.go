package cluster

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
)

// taskKind says what is done with shards.
type taskKind string

const (
	flowTask  taskKind = "flows"
	evalTask  taskKind = "loglik"
	queryTask taskKind = "query"
)

// maxShard is the number of shards that a task may have. Those of a step are
// fewer, those of an evaluation are done maxShards at a time.
const maxShard = math.MaxInt32

// task is what the shards of a round have in common. Shard i holds the rows
// from i·ShardRows on; a query has no rows, and its shards are requests.
type task struct {
	Kind      taskKind `json:"kind"`
	Step      Step     `json:"step,omitzero"`    // flows
	Source    string   `json:"source,omitempty"` // loglik
	Rows      int      `json:"rows,omitempty"`
	ShardRows int      `json:"shard_rows,omitempty"`
}

// span is the rows of a shard.
func (t *task) span(shard int) dataset.Span {
	return dataset.Span{Lo: shard * t.ShardRows, Hi: min((shard+1)*t.ShardRows, t.Rows)}
}

// rowsOf names in brackets the rows of a shard, for messages; queries bring their own.
func (t *task) rowsOf(shard int) string {
	span, of := t.span(shard), "step"
	switch t.Kind {
	case queryTask:
		return ""
	case evalTask:
		of = t.Source + " rows"
	}
	return fmt.Sprintf(" (rows %d to %d of the %s)", span.Lo, span.Hi-1, of)
}

// shards is how many shards a task that passes check has at most.
func (t *task) shards() int {
	if t.Kind == queryTask {
		return maxShard
	}
	return (t.Rows + t.ShardRows - 1) / t.ShardRows
}

// check refuses a task whose shards cannot be computed. The session checks the
// step against its rows.
func (t *task) check() error {
	most := maxShard
	switch t.Kind {
	case flowTask:
		most = maxShards
	case evalTask:
		if !isName(t.Source) {
			return fmt.Errorf("source %.40q (%d bytes), want 1..%d bytes", t.Source, len(t.Source), maxName)
		}
	case queryTask:
		if t.Rows != 0 || t.ShardRows != 0 {
			return fmt.Errorf("query of %d rows in shards of %d, want none", t.Rows, t.ShardRows)
		}
		return nil
	default:
		return fmt.Errorf("task %.40q is unknown to this version", t.Kind)
	}
	switch {
	case t.Rows < 1 || int64(t.Rows) > maxRows:
		return fmt.Errorf("task of %d rows, want 1..%d", t.Rows, int64(maxRows))
	case t.ShardRows < 1 || int64(t.ShardRows) > maxRows:
		return fmt.Errorf("shards of %d rows, want 1..%d", t.ShardRows, int64(maxRows))
	case t.shards() > most:
		return fmt.Errorf("task of %d shards, want 1..%d", t.shards(), most)
	}
	return nil
}
