package simnet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// got are the frames that a peer has handled, by their offset.
type got struct {
	mu   sync.Mutex
	list []int64
	from []string
}

func (g *got) handle(from string, f *cluster.Frame) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, f.Offset)
	g.from = append(g.from, from)
}

func (g *got) all() []int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.list)
}

// introduce admits hosts to each other.
func introduce(hosts ...*Host) {
	all := map[string]cluster.Endpoint{}
	for _, h := range hosts {
		all[h.ID()] = h.Peers().Endpoint()
	}
	for _, h := range hosts {
		h.Peers().Admit(all)
	}
}

func frame(i int, bytes int) *cluster.Frame {
	return &cluster.Frame{Kind: cluster.FlowFrame, Offset: int64(i), Payload: make([]byte, bytes)}
}

func TestFramesInOrder(t *testing.T) {
	within(t, 1, Faults{MinDelay: time.Millisecond, MaxDelay: time.Second, Late: 0.1, LateBy: time.Minute}, func(t *testing.T, n *Network) {
		a, b := n.Host("a"), n.Host("b")
		var at got
		in, most := 0, 0
		var kept []byte
		b.Peers().Handle(func(from string, f *cluster.Frame) {
			in++
			most = max(most, in)
			at.handle(from, f)
			want := make([]byte, 8)
			binary.LittleEndian.PutUint64(want, uint64(f.Offset))
			if !bytes.Equal(f.Payload, want) || f.Kind != cluster.FlowFrame || from != "a" {
				t.Errorf("frame %d from %s: %+v", f.Offset, from, f)
			}
			kept = f.Payload
			time.Sleep(time.Millisecond)
			in--
		})
		introduce(a, b)
		const sent = 500
		f := frame(0, 8)
		for i := range sent {
			f.Offset = int64(i)
			binary.LittleEndian.PutUint64(f.Payload, uint64(i))
			ok(t, a.Peers().Send(t.Context(), "b", f)) // and f is ours again
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if list := at.all(); len(list) != sent || !slices.IsSorted(list) || most != 1 {
			t.Errorf("%d frames, in order %v, %d at once", len(list), slices.IsSorted(list), most)
		}
		if !bytes.Equal(kept, bytes.Repeat([]byte{0xA5}, 8)) {
			t.Errorf("a frame that was kept reads % x", kept)
		}
		if err := a.Peers().Send(t.Context(), "b", frame(0, cluster.MaxFrameBytes+1)); err == nil {
			t.Error("a frame that is too long was taken")
		}
	})
}

func TestBackPressure(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		a, b, c := n.Host("a"), n.Host("b"), n.Host("c")
		var at got
		gate := make(chan struct{})
		b.Peers().Handle(func(from string, f *cluster.Frame) {
			if from == "a" {
				<-gate
			}
			at.handle(from, f)
		})
		introduce(a, b, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		sent := 0
		for a.Peers().Send(ctx, "b", frame(sent, cluster.MaxFrameBytes-frameOverhead)) == nil {
			sent++
		}
		if want := Window / cluster.MaxFrameBytes; sent != want || ctx.Err() == nil {
			t.Errorf("%d frames found room, want %d; %v", sent, want, ctx.Err())
		}
		ok(t, c.Peers().Send(t.Context(), "b", frame(100, 0))) // is not held up
		synctest.Wait()
		if got := at.all(); !slices.Equal(got, []int64{100}) {
			t.Errorf("handled %v", got)
		}
		go func() { gate <- struct{}{} }()
		ok(t, a.Peers().Send(t.Context(), "b", frame(sent, cluster.MaxFrameBytes-frameOverhead)))
		close(gate)
		time.Sleep(time.Second)
		if got := at.all(); !slices.Equal(got, []int64{100, 0, 1, 2, 3, 4}) {
			t.Errorf("handled %v", got)
		}
	})
}

func TestPeerLinks(t *testing.T) {
	within(t, 1, Faults{MinDelay: time.Second}, func(t *testing.T, n *Network) {
		a, b := n.Host("a"), n.Host("b")
		var at got
		b.Peers().Handle(at.handle)
		introduce(a, b)
		fails := func(what string, after time.Duration) {
			t.Helper()
			start := time.Now()
			if err := a.Peers().Send(t.Context(), "b", frame(99, 8)); !errors.Is(err, cluster.ErrUnreachable) || time.Since(start) != after {
				t.Errorf("%s: %v after %v, want %v", what, err, time.Since(start), after)
			}
		}
		works := func(i int) {
			t.Helper()
			ok(t, a.Peers().Send(t.Context(), "b", frame(i, 8)))
		}
		works(0)
		time.Sleep(time.Minute)
		works(1) // under way
		n.Cut("a", "b")
		fails("cut", Stall)
		time.AfterFunc(Stall/2, n.HealAll)
		works(2) // waits for the link
		time.Sleep(time.Minute)
		n.CutOneWay("b", "a")
		fails("cut one way", Stall)
		n.Heal("a", "b")
		works(3)
		time.Sleep(time.Minute)
		n.Isolate("b")
		fails("isolated", Stall)
		n.Rejoin("b")

		a.Peers().Admit(nil)
		fails("not admitted here", 0)
		introduce(a, b)
		b.Peers().Admit(nil)
		fails("not admitted there", Stall)
		time.AfterFunc(time.Second, func() { introduce(a, b) })
		works(4)
		time.Sleep(time.Minute)
		works(5) // b does not want it any more when it arrives
		b.Peers().Admit(nil)
		time.Sleep(time.Minute)
		introduce(a, b)
		works(6)
		time.Sleep(time.Minute)

		works(7)
		n.Crash("b")
		fails("crashed", Stall)
		b = n.Host("b")
		var young got
		b.Peers().Handle(young.handle)
		b.Peers().Admit(map[string]cluster.Endpoint{"a": a.Peers().Endpoint()})
		fails("another life", Stall)
		introduce(a, b)
		works(8)
		time.Sleep(time.Minute)
		ok(t, b.Peers().Close())
		fails("closed there", Stall)
		ok(t, a.Peers().Close())
		fails("closed here", 0)
		n.Crash("a")
		fails("crashed here", 0)

		if got := at.all(); !slices.Equal(got, []int64{0, 2, 3, 4, 6}) {
			t.Errorf("handled %v", got)
		}
		if got := young.all(); !slices.Equal(got, []int64{8}) {
			t.Errorf("the new life handled %v", got)
		}
	})
}

// TestWaitingSend ends a Send that waits for room in each way.
func TestWaitingSend(t *testing.T) {
	for _, tc := range []struct {
		name  string
		end   func(n *Network, cancel func())
		after time.Duration
	}{
		{"context", func(_ *Network, cancel func()) { cancel() }, 0},
		{"cut", func(n *Network, _ func()) { n.Cut("a", "b") }, Stall},
		{"receiver crashes", func(n *Network, _ func()) { n.Crash("b") }, Stall},
		{"sender crashes", func(n *Network, _ func()) { n.Crash("a") }, 0},
		{"sender closes", func(n *Network, _ func()) { n.Host("a").Peers().Close() }, 0},
		{"receiver closes", func(n *Network, _ func()) { n.Host("b").Peers().Close() }, Stall},
	} {
		t.Run(tc.name, func(t *testing.T) {
			within(t, 1, Faults{}, func(t *testing.T, n *Network) {
				a, b := n.Host("a"), n.Host("b")
				gate := make(chan struct{})
				b.Peers().Handle(func(string, *cluster.Frame) { <-gate })
				introduce(a, b)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start := time.Now()
				time.AfterFunc(time.Hour, func() { tc.end(n, cancel) })
				var err error
				for err == nil {
					err = a.Peers().Send(ctx, "b", frame(0, cluster.MaxFrameBytes))
				}
				if took := time.Since(start); !errors.Is(err, cluster.ErrUnreachable) || took != time.Hour+tc.after {
					t.Errorf("%v after %v, want %v", err, took, time.Hour+tc.after)
				}
				close(gate)
			})
		})
	}
}

// TestStranger has a new life of a sender whose old life was admitted.
func TestStranger(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		b := n.Host("b")
		b.Peers().Handle(func(from string, _ *cluster.Frame) { t.Errorf("a frame from %s", from) })
		introduce(n.Host("a"), b)
		n.Crash("a")
		young := n.Host("a").Peers()
		young.Admit(map[string]cluster.Endpoint{"b": b.Peers().Endpoint()})
		if err := young.Send(t.Context(), "b", frame(0, 8)); !errors.Is(err, cluster.ErrUnreachable) {
			t.Errorf("Send by a stranger: %v", err)
		}
		synctest.Wait()
	})
}

// TestStallStartsAnew has short cuts while Send waits for room.
func TestStallStartsAnew(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		a, b := n.Host("a"), n.Host("b")
		gate := make(chan struct{})
		b.Peers().Handle(func(string, *cluster.Frame) { <-gate })
		introduce(a, b)
		go func() {
			for range 5 {
				time.Sleep(Stall / 2)
				n.Cut("a", "b")
				time.Sleep(Stall - time.Second)
				n.Heal("a", "b")
			}
			close(gate)
		}()
		for i := range 6 {
			ok(t, a.Peers().Send(t.Context(), "b", frame(i, cluster.MaxFrameBytes)))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Hour)
	})
}

// TestClose waits for the handler.
func TestClose(t *testing.T) {
	within(t, 1, Faults{}, func(t *testing.T, n *Network) {
		a, b := n.Host("a"), n.Host("b")
		b.Peers().Handle(func(string, *cluster.Frame) { time.Sleep(time.Minute) })
		introduce(a, b)
		ok(t, a.Peers().Send(t.Context(), "b", frame(0, 0)))
		ok(t, a.Peers().Send(t.Context(), "b", frame(1, 0)))
		time.Sleep(time.Second)
		start := time.Now()
		ok(t, b.Peers().Close())
		ok(t, b.Peers().Close())
		if took := time.Since(start); took != 59*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestFrameFaults(t *testing.T) {
	run := func(f Faults) (list []int64) {
		within(t, 5, f, func(t *testing.T, n *Network) {
			a, b := n.Host("a"), n.Host("b")
			var at got
			b.Peers().Handle(at.handle)
			introduce(a, b)
			for i := range 1000 {
				ok(t, a.Peers().Send(t.Context(), "b", frame(i, 8)))
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Hour)
			list = at.all()
			n.mu.Lock()
			defer n.mu.Unlock()
			if c := n.conns[0]; c.flying != 0 || c.held != 0 {
				t.Errorf("%d bytes under way and %d held at the end", c.flying, c.held)
			}
		})
		return list
	}
	delays := Faults{MinDelay: 3 * time.Millisecond, MaxDelay: 5 * time.Millisecond}
	breaks := delays
	breaks.Break = 0.05
	list := run(breaks)
	// 50 breaks lose 3 to 6 frames each.
	if len(list) < 600 || len(list) > 900 || !slices.IsSorted(list) || len(slices.Compact(list)) != len(list) {
		t.Errorf("%d frames came over a connection that breaks, in order %v", len(list), slices.IsSorted(list))
	}
	overtakes := delays
	overtakes.Overtake = 0.5
	list = run(overtakes)
	if len(list) != 1000 || slices.IsSorted(list) {
		t.Errorf("%d frames came that overtake each other, in order %v", len(list), slices.IsSorted(list))
	}
	doubles := delays
	doubles.DuplicateFrame = 0.1
	list = run(doubles)
	if len(list) < 1050 || len(list) > 1150 || slices.IsSorted(list) {
		t.Errorf("%d frames came over a connection that doubles, in order %v", len(list), slices.IsSorted(list))
	}
	slices.Sort(list)
	if got := len(slices.Compact(list)); got != 1000 {
		t.Errorf("%d different frames came", got)
	}
}
