package cluster

import "testing"

// TestMournLate meets a worker anew that died with a shard, when another has computed that shard and the
// parameters move: nothing is given up, and the move is not left without its round.
func TestMournLate(t *testing.T) {
	for _, tc := range []struct {
		phase phase
		died  int
	}{{open_, 2}, {reducing, 1}} {
		rd := newRound(task{Kind: flowTask}, 0, 3)
		rd.suspects[2] = []string{"a"}
		r := &Run{phase: tc.phase, round: rd, fallen: map[string]leasedShards{"w": {"w-1", rd.id, []int{2}}}}
		r.mourn(Member{ID: "w", Inbox: "w-2"})
		if n := len(rd.suspects[2]); n != tc.died || r.round != rd {
			t.Errorf("phase %d: %d workers died of the shard, want %d", tc.phase, n, tc.died)
		}
	}
}
