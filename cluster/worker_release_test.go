package cluster

import (
	"context"
	"log/slog"
	"slices"
	"testing"
)

// noted is a session that notes what is done to it.
type noted struct {
	Session
	calls []string
}

func (s *noted) WriteFlows(context.Context, int64, []int64) error {
	s.calls = append(s.calls, "clear")
	return nil
}

func (s *noted) Close() error {
	s.calls = append(s.calls, "close")
	return nil
}

// deadEnd is a transport that reaches no member.
type deadEnd struct{ Peers }

func (deadEnd) Endpoint() Endpoint        { return Endpoint{Transport: "memory"} }
func (deadEnd) Admit(map[string]Endpoint) {}

// TestReleaseBehindOrders releases a run while the executor has not done yet what
// was ordered before: that is for the session which the order was for, and
// nothing is done to that after its end.
func TestReleaseBehindOrders(t *testing.T) {
	term := Term{Fence: 1, Generation: 1}
	for _, tc := range []struct {
		name  string
		order func(w *Worker, sess Session)
		want  []string
	}{
		{"commit", func(w *Worker, sess Session) {
			w.ex, w.exSums = &exchange{sess: sess, layout: w.layout, version: Version{Lineage: 1}, term: term}, map[string]uint32{}
			w.commit(t.Context(), w.ex.version.Next(), term)
		}, []string{"clear", "close"}},
		{"enroll", func(w *Worker, _ Session) {
			w.enroll(t.Context(), &message{Run: "r", Term: term}, &enrollOrder{
				Reset: true, Leader: memberRef{Endpoint: deadEnd{}.Endpoint()}, Members: []memberRef{{Inbox: w.inbox}},
			})
		}, []string{"close"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sess := &noted{}
			w := &Worker{
				o: WorkerOptions{Peers: []Peers{deadEnd{}}}, log: slog.New(slog.DiscardHandler), inbox: "w-1", fence: &fenceFile{}, gate: newGate(),
				after: make(chan func(), 64), ops: make(chan func(), 64), current: -1,
				spec: &Spec{Run: "r"}, state: ready, sess: sess, layout: Layout{Flows: 3},
			}
			tc.order(w, sess)
			w.unload()
			for w.busy > 0 {
				(<-w.ops)()
				w.busy--
				(<-w.after)()
			}
			if !slices.Equal(sess.calls, tc.want) || w.enrolls != 0 {
				t.Errorf("the session saw %v, want %v; %d enrollments are pending", sess.calls, tc.want, w.enrolls)
			}
		})
	}
}
