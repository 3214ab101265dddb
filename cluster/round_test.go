package cluster

import (
	"slices"
	"strings"
	"testing"
)

// TestDeadShards gives a shard up when it failed on two workers, or when three died
// with it, and not before.
func TestDeadShards(t *testing.T) {
	rd := newRound(task{}, 0, 6)
	rd.note(5, "w1", "no rows")
	rd.note(2, "w2", "no rows")
	rd.note(2, "w1", "no disk")
	rd.suspects[1] = []string{"w1", "w2"}
	rd.suspects[0] = []string{"w1", "w2", "w3"}
	var shards []int
	letters := rd.dead()
	for _, l := range letters {
		shards = append(shards, l.Shard)
	}
	if !slices.Equal(shards, []int{0, 2}) {
		t.Fatalf("shards %v are given up, want 0 and 2", shards)
	}
	if !strings.Contains(letters[0].Reason, "w1, w2, w3") || !strings.Contains(letters[1].Reason, "failed 2 times, last on w1: no disk") {
		t.Errorf("%+v", letters)
	}
}

// TestRowsOf wants messages about a shard to say of what its rows are.
func TestRowsOf(t *testing.T) {
	for _, tc := range []struct {
		task task
		want string
	}{
		{task{Kind: flowTask, Rows: 40, ShardRows: 16}, " (rows 32 to 39 of the step)"},
		{task{Kind: evalTask, Source: "valid", Rows: 600, ShardRows: 256}, " (rows 512 to 599 of the valid rows)"},
		{task{Kind: queryTask}, ""},
	} {
		if got := tc.task.rowsOf(2); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.task.Kind, got, tc.want)
		}
	}
}
