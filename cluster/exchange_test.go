package cluster

import (
	"testing"

	"github.com/pce-engine/pce/layers"
)

// TestStrangersFrames sends frames from outside the term, and from the member itself: they are ignored, and the flows and the
// parameters of each member still count once.
func TestStrangersFrames(t *testing.T) {
	own, others := []layers.Range{{Lo: 0, Hi: 2}}, []layers.Range{{Lo: 2, Hi: 4}}
	e := &exchange{
		members: []memberRef{{ID: "a"}, {ID: "b"}}, self: 1, shards: []int{1, 1}, staged: make([]float32, 4),
		parts:  []part{{flows: others, state: others}, {hi: 1, flows: own, state: own}},
		layout: Layout{Params: 4, Flows: 4, Owners: make([]layers.Owner, 1)},
	}
	e.prepare()
	send := func(from string, flows [2]int64, state [2]float32) {
		e.accept(from, &Frame{Kind: FlowFrame, Count: 2, Payload: bytesOf(flows[:])})
		e.accept(from, &Frame{Kind: ParamFrame, Offset: 2, Count: 2, Payload: bytesOf(state[:])})
	}
	send("stranger", [2]int64{7, 7}, [2]float32{7, 7})
	send("b", [2]int64{7, 7}, [2]float32{7, 7})
	if got := e.received(); got != 0 {
		t.Errorf("%d bytes of strangers count", got)
	}
	send("a", [2]int64{1, 2}, [2]float32{3, 4})
	if e.sums[0] != 1 || e.sums[1] != 2 || e.staged[2] != 3 || e.staged[3] != 4 || e.failure != nil {
		t.Errorf("sums %v and state %v, failure %v; want those of the member", e.sums, e.staged, e.failure)
	}
}
