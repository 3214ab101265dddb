package emulator

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
)

// TestGraphReplay records copies, a clear and launches, and replays them with other
// bytes in the host's memory.
func TestGraphReplay(t *testing.T) {
	b := newBench(t, Options{Strict: true})
	in, out := b.room(4), b.room(4)
	f := b.load(text(".param .u64 x, .param .u64 y", `
	ld.param.u64 %d0, [x];
	ld.param.u64 %d1, [y];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d3, %r0, 4;
	add.u64 %d0, %d0, %d3;
	add.u64 %d1, %d1, %d3;
	ld.global.u32 %r1, [%d0];
	ld.global.u32 %r2, [%d1];
	add.u32 %r2, %r2, %r1;
	st.global.u32 [%d1], %r2;`), 0)
	l := cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 4, Args: []uint64{uint64(in), uint64(out)}}
	if err := b.Launch(l, b.s); err == nil || !strings.Contains(err.Error(), "launch of test outside a graph") {
		t.Fatalf("a launch outside a graph: %v", err)
	}
	host, back := make([]byte, 16), make([]byte, 16)
	steps := []error{
		b.Capture(b.s),
		b.CopyIn(in, host, b.s),
		b.Clear(out, 16, b.s),
		b.Launch(l, b.s),
		b.Launch(l, b.s),
		b.CopyOut(back, out, b.s),
	}
	l.Args[0] = 0 // the graph has its own
	g, err := b.Captured(b.s)
	if err := errors.Join(append(steps, err)...); err != nil {
		t.Fatal(err)
	}
	if len(b.Log()) != 0 || back[0] != 0 {
		t.Fatal("recording did the work")
	}
	for round := range 3 {
		binary.LittleEndian.PutUint32(host[4:], uint32(round+50))
		if err := errors.Join(b.LaunchGraph(g, b.s), b.Wait(b.s)); err != nil {
			t.Fatal(err)
		}
		if v := binary.LittleEndian.Uint32(back[4:]); v != uint32(2*(round+50)) {
			t.Fatalf("round %d: %d", round, v)
		}
	}
	if log := b.Log(); len(log) != 6 || !log[5].Graph || b.Counts()["test"].Launches != 6 {
		t.Fatalf("log %v", log)
	}
	b.ResetCounts()
	if len(b.Log()) != 0 || len(b.Counts()) != 0 {
		t.Fatal("counts are left")
	}
	if err := b.FreeGraph(g); err != nil {
		t.Fatal(err)
	}
	if err := b.LaunchGraph(g, b.s); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("a freed graph: %v", err)
	}
}

// TestGraphBranches records two streams. With seeds their launches come in any order
// that the events allow.
func TestGraphBranches(t *testing.T) {
	orders := map[string]bool{}
	for seed := range uint64(40) {
		b := newBench(t, Options{Seed: seed})
		name := func(name string) cuda.Function {
			m, err := b.Load([]byte(strings.Replace(text("", ""), "test(", name+"(", 1)))
			if err != nil {
				t.Fatal(err)
			}
			f, _, err := b.Function(m, name, 0)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		launch := func(f cuda.Function, s cuda.Stream) error {
			return b.Launch(cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 32}, s)
		}
		side, err := b.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		fork, _ := b.NewEvent()
		join, _ := b.NewEvent()
		first, branch, trunk, last := name("a"), name("b"), name("c"), name("d")
		steps := []error{
			b.Capture(b.s),
			launch(first, b.s),
			b.Record(fork, b.s),
			b.WaitEvent(side, fork),
			launch(branch, side),
			b.Record(join, side),
			launch(trunk, b.s),
		}
		if seed == 1 {
			if _, err := b.Captured(b.s); err == nil || !strings.Contains(err.Error(), "does not wait for") {
				t.Fatalf("a branch left open: %v", err)
			}
			continue
		}
		steps = append(steps, b.WaitEvent(b.s, join), launch(last, b.s))
		g, err := b.Captured(b.s)
		if err := errors.Join(append(steps, err, b.LaunchGraph(g, b.s), b.Wait(b.s))...); err != nil {
			t.Fatal(err)
		}
		order := ""
		for _, r := range b.Log() {
			order += r.Kernel
		}
		if seed == 0 && order != "abcd" {
			t.Fatalf("without a seed the order is %s", order)
		}
		orders[order] = true
	}
	var got []string
	for o := range orders {
		got = append(got, o)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"abcd", "acbd"}) {
		t.Fatalf("orders %v", got)
	}
}

// TestMemory checks what the host may do with memory.
func TestMemory(t *testing.T) {
	b := newBench(t, Options{Memory: 1000})
	p, err := b.Alloc(900)
	if err != nil {
		t.Fatal(err)
	}
	if p%256 != 0 {
		t.Fatalf("base %#x", p)
	}
	if _, err := b.Alloc(101); !errors.Is(err, kernels.ErrMemory) {
		t.Fatalf("too much: %v", err)
	}
	if err := b.Leaks(); err == nil {
		t.Fatal("900 bytes leak and nobody says so")
	}
	buf := make([]byte, 8)
	waited := func(err error) error { return errors.Join(err, b.Wait(b.s)) }
	for name, err := range map[string]error{
		"CopyIn":  waited(b.CopyIn(p+893, buf, b.s)),
		"CopyOut": waited(b.CopyOut(buf, p+893, b.s)),
		"Clear":   waited(b.Clear(p+893, 8, b.s)),
		"Free":    b.Free(p + 256),
		"before":  waited(b.CopyOut(buf, p-1, b.s)),
		"stream":  b.CopyOut(buf, p, 999),
		"Wait":    b.Wait(999),
	} {
		if !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(b.CopyIn(p+892, []byte("abcdefgh"), b.s), b.CopyOut(buf, p+891, b.s), b.Wait(b.s)); err != nil || string(buf) != "\xa5abcdefg" {
		t.Fatalf("%q, %v", buf, err)
	}
	if err := errors.Join(b.Clear(p+894, 2, b.s), b.CopyOut(buf, p+892, b.s), b.Wait(b.s)); err != nil || string(buf) != "ab\x00\x00efgh" {
		t.Fatalf("%q, %v", buf, err)
	}
	if err := errors.Join(b.Free(p), b.Leaks()); err != nil {
		t.Fatal(err)
	}
	if err := b.Free(p); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("freed twice: %v", err)
	}
	if q, err := b.Alloc(1000); err != nil || q == p {
		t.Fatalf("%#x, %v", q, err)
	}
	host, err := b.AllocHost(64)
	if err := errors.Join(err, b.FreeHost(host)); err != nil || len(host) != 64 {
		t.Fatal(err)
	}
	if err := b.FreeHost(host); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("freed twice: %v", err)
	}
	from, _ := b.NewEvent()
	to, _ := b.NewEvent()
	if _, err := b.Elapsed(from, to); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("events that did not happen: %v", err)
	}
	if err := errors.Join(b.Record(from, b.s), b.Record(to, b.s), b.Wait(b.s)); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Elapsed(from, to); err != nil || s < 0 {
		t.Fatalf("%g s, %v", s, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCaptureRefuses wants no call that may wait for the card while a stream is
// captured.
func TestCaptureRefuses(t *testing.T) {
	b := newBench(t, Options{})
	p, err := b.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	host, err := b.AllocHost(64)
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.Load([]byte(text("", "")))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Alloc":     func() error { _, err := b.Alloc(64); return err },
		"AllocHost": func() error { _, err := b.AllocHost(64); return err },
		"Load":      func() error { _, err := b.Load([]byte(text("", ""))); return err },
		"Free":      func() error { return b.Free(p) },
		"FreeHost":  func() error { return b.FreeHost(host) },
		"Unload":    func() error { return b.Unload(m) },
	}
	if err := b.Capture(b.s); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), name+" while stream") {
			t.Errorf("%s while a stream is captured: %v", name, err)
		}
	}
	if _, err := b.Captured(b.s); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}
