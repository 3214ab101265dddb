package emulator

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
)

// two is a bench with a second stream and an event.
type two struct {
	*bench
	side  cuda.Stream
	event cuda.Event
}

func newTwo(t *testing.T, o Options) *two {
	b := &two{bench: newBench(t, o)}
	var err error
	if b.side, err = b.NewStream(); err != nil {
		t.Fatal(err)
	}
	if b.event, err = b.NewEvent(); err != nil {
		t.Fatal(err)
	}
	return b
}

// adds makes a launch of four threads that add 1 to words.
func (b *two) adds(x cuda.Ptr) cuda.Launch {
	f := b.load(text(".param .u64 x", `
	ld.param.u64 %d0, [x];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d3, %r0, 4;
	add.u64 %d0, %d0, %d3;
	ld.global.u32 %r1, [%d0];
	add.u32 %r1, %r1, 1;
	st.global.u32 [%d0], %r1;`), 0)
	return cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 4, Args: []uint64{uint64(x)}}
}

// TestStreamsAreLate copies in and out and looks at the host's memory too early.
func TestStreamsAreLate(t *testing.T) {
	b := newTwo(t, Options{})
	x := b.room(4)
	l := b.adds(x)
	host, back := make([]byte, 16), make([]byte, 16)
	steps := []error{b.CopyIn(x, host, b.s), b.Launch(l, b.s), b.CopyOut(back, x, b.s)}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	if len(b.Log()) != 0 || back[0] != 0 {
		t.Fatal("work is done before anybody waits")
	}
	host[0] = 40 // too early for the copy
	if err := b.Wait(b.side); err != nil || len(b.Log()) != 0 {
		t.Fatalf("waiting for an empty stream did the other's work: %v", err)
	}
	if err := b.Wait(b.s); err != nil {
		t.Fatal(err)
	}
	if v := binary.LittleEndian.Uint32(back); v != 41 {
		t.Fatalf("%d came back, want 41", v)
	}
}

// TestStreamOrder lets two streams use the same memory, ordered and not.
func TestStreamOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		work func(b *two, x cuda.Ptr, l cuda.Launch) []error
		says string // of the race, "" for none
	}{
		{"copy, event, kernel, event, copy", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyIn(x, make([]byte, 16), b.side), b.Record(b.event, b.side), b.WaitEvent(b.s, b.event), b.Launch(l, b.s),
				b.Record(b.event, b.s), b.WaitEvent(b.side, b.event), b.CopyOut(make([]byte, 16), x, b.side), b.Wait(b.side)}
		}, ""},
		{"copy, wait, kernel", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyIn(x, make([]byte, 16), b.side), b.Wait(b.side), b.Launch(l, b.s), b.Wait(b.s)}
		}, ""},
		{"an event of a third stream that waits", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			third, err := b.NewStream()
			other, failed := b.NewEvent()
			return []error{err, failed, b.CopyIn(x, make([]byte, 16), b.side), b.Record(b.event, b.side), b.WaitEvent(third, b.event),
				b.Record(other, third), b.WaitEvent(b.s, other), b.Launch(l, b.s), b.Wait(b.s)}
		}, ""},
		{"copies out on two streams", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyOut(make([]byte, 16), x, b.side), b.CopyOut(make([]byte, 16), x, b.s), b.Wait(b.side), b.Wait(b.s)}
		}, ""},
		{"copy in, kernel", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyIn(x, make([]byte, 16), b.side), b.Launch(l, b.s), b.Wait(b.side), b.Wait(b.s)}
		}, "kernel test (stream 1) touches 16 bytes"},
		{"copy in, kernel, the other way round", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyIn(x, make([]byte, 16), b.side), b.Launch(l, b.s), b.Wait(b.s), b.Wait(b.side)}
		}, "by kernel test (stream 1)"},
		{"kernel, copy out", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.Launch(l, b.s), b.CopyOut(make([]byte, 16), x, b.side), b.Wait(b.s), b.Wait(b.side)}
		}, "CopyOut of 16 bytes (stream 2)"},
		{"copy out, kernel", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyOut(make([]byte, 16), x, b.side), b.Launch(l, b.s), b.Wait(b.side), b.Wait(b.s)}
		}, "read by CopyOut of 16 bytes (stream 2)"},
		{"kernels", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.Launch(l, b.side), b.Launch(l, b.s), b.Wait(b.side), b.Wait(b.s)}
		}, "written by kernel test (stream 2)"},
		{"clear, graph", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			steps := []error{b.Capture(b.s), b.Launch(l, b.s)}
			g, err := b.Captured(b.s)
			return append(steps, err, b.Clear(x, 16, b.side), b.LaunchGraph(g, b.s), b.Wait(b.side), b.Wait(b.s))
		}, "written by Clear of 16 bytes (stream 2)"},
		{"an event before the copy", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.Record(b.event, b.side), b.CopyIn(x, make([]byte, 16), b.side), b.WaitEvent(b.s, b.event), b.Launch(l, b.s), b.Wait(b.side), b.Wait(b.s)}
		}, "with no event or wait between them"},
		{"an event that nobody records", func(b *two, x cuda.Ptr, l cuda.Launch) []error {
			return []error{b.CopyIn(x, make([]byte, 16), b.side), b.WaitEvent(b.s, b.event), b.Launch(l, b.s), b.Wait(b.side), b.Wait(b.s)}
		}, "race between streams"},
	} {
		for seed := range uint64(6) {
			b := newTwo(t, Options{Seed: seed})
			x := b.words(1, 2, 3, 4)
			l := b.adds(x)
			if err := b.Wait(b.s); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(c.work(b, x, l)...)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("%s, seed %d: %v", c.name, seed, err)
			case c.says == "":
			case seed == 0 && (err == nil || !strings.Contains(err.Error(), c.says)),
				err == nil || !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), "race between streams"):
				t.Errorf("%s, seed %d: %v, want %q", c.name, seed, err, c.says)
			}
		}
	}
}

// TestFaultEndsStreams wants a fault at the next wait, once, and nothing of the work
// that came after it.
func TestFaultEndsStreams(t *testing.T) {
	for seed := range uint64(6) {
		b := newTwo(t, Options{Seed: seed})
		x, y := b.words(1, 2, 3, 4), b.words(5, 6, 7, 8)
		bad, good := b.adds(x+8), b.adds(y)
		if err := b.Wait(b.s); err != nil {
			t.Fatal(err)
		}
		steps := []error{b.Launch(bad, b.s), b.Record(b.event, b.s), b.WaitEvent(b.side, b.event), b.Launch(good, b.side)}
		if err := errors.Join(steps...); err != nil {
			t.Fatalf("seed %d: %v; want the fault when somebody waits", seed, err)
		}
		var f *Fault
		if err := b.Wait(b.side); !errors.As(err, &f) {
			t.Fatalf("seed %d: %v, want a fault", seed, err)
		}
		if err := errors.Join(b.Wait(b.side), b.Wait(b.s)); err != nil {
			t.Errorf("seed %d: the fault comes twice: %v", seed, err)
		}
		if got := b.read(y, 1)[0]; got != 5 {
			t.Errorf("seed %d: work after the fault was done: %d", seed, got)
		}
		if err := b.launch(good); err != nil {
			t.Error(err)
		}
	}
}

// TestSeedsRunEarly wants work to be done before anybody waits, with some seeds.
func TestSeedsRunEarly(t *testing.T) {
	early := 0
	for seed := range uint64(20) {
		b := newTwo(t, Options{Seed: 1 + seed})
		l := b.adds(b.words(1, 2, 3, 4))
		for range 3 {
			if err := b.Launch(l, b.s); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(b.Log()); n > 0 && n < 3 {
			early++
		}
	}
	if early < 3 {
		t.Errorf("%d of 20 seeds run some of three launches before anybody waits", early)
	}
}
