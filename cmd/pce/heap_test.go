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

// TestBoundHeap wants the heap bounded by all memory but a sixteenth, and the bound of GOMEMLIMIT kept, or its being off.
func TestBoundHeap(t *testing.T) {
	was := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(was)
	for _, c := range []struct {
		variable string
		own      int64 // bound before
		total    uint64
		want     int64
	}{
		{"", math.MaxInt64, 16 << 30, 15 << 30},
		{"", math.MaxInt64, 0, math.MaxInt64}, // not known
		{"1GiB", 1 << 30, 16 << 30, 1 << 30},
		{"off", math.MaxInt64, 16 << 30, math.MaxInt64},
	} {
		debug.SetMemoryLimit(c.own)
		boundHeap([]string{"PATH=/bin", "GOMEMLIMIT=" + c.variable}, c.total)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%+v: the heap is bounded by %d", c, got)
		}
	}
}
