package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
)

// gathered counts the reads of a source.
type gathered struct {
	dataset.Source
	calls chan []int
}

func (g *gathered) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	g.calls <- slices.Clone(rows)
	return g.Source.Gather(ctx, b, rows)
}

// TestShardReader reads shards in and out of turn, ahead and not, and wants the
// rows of the schedule, each read once.
func TestShardReader(t *testing.T) {
	for _, categories := range []int{9, 70_000} {
		t.Run(fmt.Sprint(categories), func(t *testing.T) { readShards(t, categories) })
	}
}

func readShards(t *testing.T, categories int) {
	table, err := dataset.Open(t.Context(), fmt.Sprintf("builtin:random?rows=50&vars=3&categories=%d", categories), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	src := &gathered{table, make(chan []int, 100)}
	r := newShardReader(src)
	defer r.close()
	plan := dataset.Schedule{Rows: 50, BatchRows: 20, Seed: 7} // steps of 17, 17 and 16 rows
	type shard struct {
		epoch, step, lo, hi int
		ahead               bool
	}
	shards := []shard{{0, 0, 0, 8, true}, {0, 0, 8, 16, true}, {0, 2, 0, 10, false}, {0, 0, 16, 17, true}, {1, 1, 0, 5, true}, {1, 1, 5, 17, true}, {0, 1, 0, 17, false}}
	at := func(s shard) (cluster.Step, dataset.Span) {
		return cluster.Step{Schedule: plan, At: dataset.Cursor{Epoch: s.epoch, Step: s.step}}, dataset.Span{Lo: s.lo, Hi: s.hi}
	}
	want := new(dataset.Batch)
	r.prepare(at(shard{0, 1, 3, 4, false})) // nobody takes it
	for i, s := range shards {
		if i+1 < len(shards) && shards[i+1].ahead {
			r.prepare(at(shards[i+1]))
		}
		step, span := at(s)
		got, err := r.read(t.Context(), step, span)
		if err != nil {
			t.Fatal(err)
		}
		rows := plan.Step(plan.Order(s.epoch), s.step)[s.lo:s.hi]
		if err := table.Gather(t.Context(), want, rows); err != nil {
			t.Fatal(err)
		}
		for v := range want.Columns {
			if a, b := got.Columns[v].Codes, want.Columns[v].Codes; !slices.Equal(a.Narrow, b.Narrow) || !slices.Equal(a.Wide, b.Wide) || a.Len() == 0 {
				t.Fatalf("shard %d: column %d is %v, want %v", i, v, a, b)
			}
		}
	}
	r.bg.Wait() // for the reading that is not asked for, which may not have begun
	if n := len(src.calls); n != len(shards)+1 {
		t.Errorf("%d reads for %d shards and one that nobody took", n, len(shards))
	}
	for name, bad := range map[string]shard{
		"no such step": {0, 3, 0, 1, false}, "negative epoch": {-1, 0, 0, 1, false}, "beyond the step": {0, 2, 0, 17, false}, "empty": {0, 0, 4, 4, false}, "negative": {0, 0, -1, 4, false},
	} {
		step, span := at(bad)
		r.prepare(step, span)
		if _, err := r.read(t.Context(), step, span); !errors.Is(err, cluster.ErrJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
	plan.Rows = 51
	if _, err := r.read(t.Context(), cluster.Step{Schedule: plan}, dataset.Span{Hi: 1}); !errors.Is(err, cluster.ErrJob) {
		t.Errorf("a plan over other rows: %v", err)
	}
}
