package cluster

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/assign"
)

// TestCommonPath wants the kernel path that an earlier part of the run had as long
// as all members have it, and else the best that they share.
func TestCommonPath(t *testing.T) {
	a, b, card := Member{Paths: []string{"avx512", "avx2", "generic"}}, Member{Paths: []string{"avx2", "generic"}}, Member{Paths: []string{"sm_90"}}
	for _, tc := range []struct {
		members []Member
		prefer  string
		want    string
	}{
		{nil, "avx2", ""},
		{[]Member{a}, "", "avx512"},
		{[]Member{a}, "generic", "generic"},
		{[]Member{a, b}, "", "avx2"},
		{[]Member{b, a}, "generic", "generic"},
		{[]Member{a, b}, "avx512", "avx2"},
		{[]Member{a, b}, "mixed", "avx2"},
		{[]Member{a, card}, "avx2", ""},
	} {
		if got := commonPath(tc.members, tc.prefer); got != tc.want {
			t.Errorf("%v, %q: %q, want %q", tc.members, tc.prefer, got, tc.want)
		}
	}
}

// TestCommonInfo wants what sessions have in common, of those that have said it.
func TestCommonInfo(t *testing.T) {
	cpu := SessionInfo{Device: "cpu", Path: "avx512", Precision: "fp32"}
	half, card := cpu, SessionInfo{Device: "cuda:0", Path: "sm_90", Precision: "mixed"}
	half.Precision = "mixed"
	for _, tc := range []struct {
		members []SessionInfo
		want    SessionInfo
	}{
		{nil, SessionInfo{}},
		{[]SessionInfo{{}}, SessionInfo{}},
		{[]SessionInfo{cpu}, cpu},
		{[]SessionInfo{cpu, {}}, cpu},
		{[]SessionInfo{{}, cpu, {}, cpu}, cpu},
		{[]SessionInfo{cpu, half}, half},
		{[]SessionInfo{half, card, half}, SessionInfo{"mixed", "mixed", "mixed"}},
	} {
		var members []*workerInfo
		for _, info := range tc.members {
			members = append(members, &workerInfo{info: info})
		}
		if got := commonInfo(members); got != tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.members, got, tc.want)
		}
	}
}

// TestMeetFence meets a worker that would refuse every order, as it has obeyed a coordinator of a higher fence: it is unfit and the
// reason is told once, until the run has the lead under a fence that the worker obeys.
func TestMeetFence(t *testing.T) {
	var told []string
	r := &Run{
		workers: map[string]*workerInfo{}, refused: map[string]string{}, fallen: map[string]leasedShards{}, changed: make(chan struct{}),
		log: slog.New(slog.DiscardHandler), status: RunStatus{Unfit: map[string]string{}},
		o: RunOptions{Transport: "tcp", OnUnfit: func(worker, why string) { told = append(told, worker+": "+why) }},
	}
	m := Member{ID: "w", Version: Protocol, Inbox: "w-1", Fence: 6, Peers: []Endpoint{{Transport: "tcp", Address: "host:1"}}}
	for _, tc := range []struct {
		fence uint64
		state workerState
		unfit int
	}{{5, unfit, 1}, {5, unfit, 1}, {6, idle, 0}, {9, idle, 0}} {
		r.term.Fence = tc.fence
		r.meet([]Member{m})
		if w := r.workers["w-1"]; w == nil || w.state != tc.state || w.alien != (tc.state == unfit) || len(r.workers) != 1 || len(r.status.Unfit) != tc.unfit {
			t.Errorf("fence %d: %+v, %v", tc.fence, w, r.status.Unfit)
		}
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "w: it obeys coordinators from fence 6 on, this has 5: if no other leads now, its --dir") || len(told[0]) > shownReason {
		t.Errorf("told %q", told)
	}
	m.Inbox, m.Fence = "w-2", 10
	if r.meet([]Member{m}); r.workers["w-2"].state != unfit || len(r.workers) != 1 {
		t.Errorf("another life of it: %v", r.workers)
	}
}

// TestStrangersLeave has more workers of another version come and go than a run may have workers: none is kept, and one that can take part
// is invited.
func TestStrangersLeave(t *testing.T) {
	r := &Run{
		workers: map[string]*workerInfo{}, refused: map[string]string{}, fallen: map[string]leasedShards{}, changed: make(chan struct{}),
		log: slog.New(slog.DiscardHandler), status: RunStatus{Unfit: map[string]string{}}, o: RunOptions{Transport: "tcp", OnUnfit: func(string, string) {}},
	}
	for i := range maxMembers + 1 {
		id := fmt.Sprint("stranger-", i)
		r.meet([]Member{{ID: id, Version: "0", Inbox: id}})
	}
	if len(r.workers) != 1 || len(r.status.Unfit) != 1 {
		t.Errorf("%d workers, %d of which take no part; want the last one", len(r.workers), len(r.status.Unfit))
	}
	r.meet([]Member{{ID: "w", Version: Protocol, Inbox: "w", Peers: []Endpoint{{Transport: "tcp", Address: "host:1"}}}})
	if w := r.workers["w"]; w == nil || w.alien || len(r.workers) != 1 || len(r.status.Unfit) != 0 {
		t.Errorf("%d workers, and unfit %v; want one that is invited", len(r.workers), r.status.Unfit)
	}
}

// TestStaleFlows wants a shard of flows to count in the term in which it was computed, of a member, and in no other.
func TestStaleFlows(t *testing.T) {
	now := Term{Fence: 2, Generation: 3}
	for _, tc := range []struct {
		term   Term
		member bool
		want   int
	}{{now, true, 1}, {Term{Fence: 2, Generation: 2}, true, 0}, {Term{Fence: 1, Generation: 3}, true, 0}, {now, false, 0}} {
		w := &workerInfo{Member: Member{ID: "w", Inbox: "i"}, leased: []int{0}}
		r := &Run{o: RunOptions{Spec: Spec{Run: "r"}}, term: now, phase: open_, workers: map[string]*workerInfo{"i": w}, round: newRound(task{Kind: flowTask}, 0, 2)}
		if tc.member {
			r.members = append(r.members, w)
		}
		shards := runs{0, 1}
		r.receive(&message{
			From: "i", Run: "r", Term: tc.term, Round: r.round.id, Body: &doneReport{Shards: shards},
			Payload: encodeResults(flowTask, shards, map[int]shardResult{0: {Rows: 1}}),
		})
		if n := len(r.round.results); n != tc.want || len(w.leased) != 1-tc.want {
			t.Errorf("term %v, a member %v: %d shards count and %v are leased, want %d that count", tc.term, tc.member, n, w.leased, tc.want)
		}
	}
}

// TestOverdueAlone wants the only worker kept that finishes nothing, with one line in the log, and dropped once another is there.
func TestOverdueAlone(t *testing.T) {
	var text strings.Builder
	w := &workerInfo{Member: Member{ID: "w", Inbox: "i"}, leased: []int{3}}
	r := &Run{
		c: NewCoordinator(CoordinatorOptions{ID: "c", Bus: noBus{}}), log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})),
		workers: map[string]*workerInfo{"i": w}, members: []*workerInfo{w}, round: newRound(task{Kind: flowTask}, 0, 9),
		times: map[string]*assign.Median{}, fallen: map[string]leasedShards{}, changed: make(chan struct{}), endTerm: func() {},
	}
	r.timesOf(w, flowTask).Add(10)
	for i, tc := range []struct {
		took    time.Duration
		members []*workerInfo
		want    bool
	}{
		{5 * time.Minute, []*workerInfo{w}, false},
		{5*time.Minute + 1, []*workerInfo{w}, false},
		{6 * time.Minute, []*workerInfo{w}, false},
		{5 * time.Minute, []*workerInfo{w, {}}, false},
		{5*time.Minute + 1, []*workerInfo{w, {}}, true},
	} {
		r.members = tc.members
		if got := r.overdue(w, tc.took); got != tc.want {
			t.Errorf("%d: after %v with %d members: given up %v, want %v", i, tc.took, len(tc.members), got, tc.want)
		}
	}
	if s := text.String(); strings.Count(s, "\n") != 1 || !strings.Contains(s, "worker=w") || !strings.Contains(s, "shard 3 takes too long") {
		t.Errorf("log %q", s)
	}
	if d := r.patience(&workerInfo{leased: []int{3}}); len(r.workers) != 0 || d != 10*time.Minute {
		t.Errorf("%d workers are left, and the next one has %v for the shard, want twice 5 minutes", len(r.workers), d)
	}
}

// noBus sends nothing.
type noBus struct{ Bus }

func (noBus) Send(string, []byte) error { return nil }

// TestTimedAtTerm wants a shard timed that a worker finishes while a term begins, and no other that it holds.
func TestTimedAtTerm(t *testing.T) {
	for _, tc := range []struct {
		before []int
		want   float64 // seconds
	}{{[]int{3}, 0}, {[]int{2, 3}, 100}, {[]int{1, 2, 3}, 50}} {
		w := &workerInfo{Member: Member{ID: "w"}, before: tc.before, given: time.Now().Add(-100 * time.Second)}
		r := &Run{phase: enrolling, round: newRound(task{Kind: flowTask}, 0, 9), times: map[string]*assign.Median{}, changed: make(chan struct{})}
		held := map[int]shardResult{0: {Rows: 1}, 1: {Rows: 1}, 2: {Rows: 1}}
		shards := runs{0, 3}
		r.enrolled(w, &message{Payload: encodeResults(flowTask, shards, held)}, &enrolledReport{})
		if got := r.timesOf(w, flowTask).Value(); got < tc.want || got > tc.want+20 || len(w.held) != 3 || w.before != nil {
			t.Errorf("before %v: %v s, want %v; it holds %d", tc.before, got, tc.want, len(w.held))
		}
	}
}
