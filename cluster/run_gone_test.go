package cluster

import (
	"log/slog"
	"testing"
	"time"
)

// TestParametersGone has a member say in its beats that it has no parameters, as its report of that was lost: a new term lets it
// fetch them.
func TestParametersGone(t *testing.T) {
	w := &workerInfo{Member: Member{ID: "w", Inbox: "i"}, state: ready, heard: time.Now(), have: Version{Lineage: 1, Moves: 3}}
	r := &Run{
		c: NewCoordinator(CoordinatorOptions{ID: "c", Bus: noBus{}}), log: slog.New(slog.DiscardHandler), peers: deadEnd{}, o: RunOptions{Spec: Spec{Run: "r"}},
		workers: map[string]*workerInfo{"i": w}, members: []*workerInfo{w}, changed: make(chan struct{}), endTerm: func() {},
		term: Term{Fence: 1, Generation: 1}, started: true, formed: true, phase: open_, version: w.have,
	}
	beat := &message{From: "i", Run: "r", Term: r.term, Body: &beatReport{State: ready, Version: w.have}}
	r.receive(beat)
	if r.tick(time.Now()); r.phase != open_ {
		t.Fatalf("phase %d while the parameters are there", r.phase)
	}
	beat.Body = &beatReport{State: ready}
	r.receive(beat)
	if r.tick(time.Now()); r.phase != enrolling || r.term.Generation != 2 {
		t.Errorf("phase %d of term %v, want a new one in which members enroll", r.phase, r.term)
	}
}
