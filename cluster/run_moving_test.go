package cluster

import (
	"log/slog"
	"testing"
	"time"
)

// TestSlowestMoves wants a move of the parameters left alone as long as any member receives something of it: the others, which have all that
// can come before that one is done, receive nothing meanwhile. A new term begins where none has received anything for three leases.
func TestSlowestMoves(t *testing.T) {
	for slowest, want := range map[time.Duration]phase{DefaultLease / 2: reducing, 4 * DefaultLease: gathering} {
		now := time.Now()
		member := func(id string, quiet time.Duration) *workerInfo {
			return &workerInfo{Member: Member{ID: id, Inbox: id}, heard: now, given: now, done: now.Add(-quiet), leased: []int{}}
		}
		fast, slow := member("fast", 4*DefaultLease), member("slow", slowest)
		r := &Run{
			c: NewCoordinator(CoordinatorOptions{ID: "c", Bus: noBus{}}), log: slog.New(slog.DiscardHandler), phase: reducing, started: true, formed: true,
			workers: map[string]*workerInfo{"fast": fast, "slow": slow}, members: []*workerInfo{fast, slow}, began: now.Add(-5 * DefaultLease),
			round: newRound(task{Kind: flowTask}, 0, 2), changed: make(chan struct{}), endTerm: func() {},
		}
		r.round.moving, r.round.reduce = r.began, &reduceOrder{}
		if r.tick(now); r.phase != want {
			t.Errorf("the slowest has received nothing for %v: the run is in phase %d, want %d", slowest, r.phase, want)
		}
	}
}
