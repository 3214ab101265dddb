package main

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestHeadroom wants Go's own setting replaced and restored, and any other one kept.
func TestHeadroom(t *testing.T) {
	was := debug.SetGCPercent(defaultGC) // no other test runs beside one that is not parallel
	defer debug.SetGCPercent(was)
	now := func() int {
		percent := debug.SetGCPercent(defaultGC)
		debug.SetGCPercent(percent)
		return percent
	}
	restore := headroom(trainGC)
	inner := headroom(openGC)
	if got := now(); got != trainGC {
		t.Errorf("the heap grows by %d %%, want %d", got, trainGC)
	}
	if inner(); now() != trainGC {
		t.Errorf("a second caller's end leaves %d %%, want %d", now(), trainGC)
	}
	if restore(); now() != defaultGC {
		t.Errorf("%d %% afterwards, want %d", now(), defaultGC)
	}
	for _, own := range []int{-1, 50, 400} {
		debug.SetGCPercent(own)
		restore := headroom(trainGC)
		if got := now(); got != own {
			t.Errorf("a process with %d %% has %d", own, got)
		}
		if restore(); now() != own {
			t.Errorf("a process with %d %% has %d afterwards", own, now())
		}
	}
}

// TestBoundHeap wants the heap bounded by all memory but a sixteenth, whatever of it is available, and the bound of GOMEMLIMIT kept.
func TestBoundHeap(t *testing.T) {
	was := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct {
		own              int64 // bound before
		total, available uint64
		want             int64
	}{
		{math.MaxInt64, 16 << 30, 3 << 30, 15 << 30},
		{math.MaxInt64, 16 << 30, 0, 15 << 30},
		{math.MaxInt64, 0, 0, math.MaxInt64}, // not known
		{1 << 30, 8 << 30, 3 << 30, 1 << 30},
	} {
		debug.SetMemoryLimit(c.own)
		boundHeap(c.total, c.available)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("of %d bytes %d are available, and the heap was bounded by %d: now by %d, want %d", c.total, c.available, c.own, got, c.want)
		}
	}
}
