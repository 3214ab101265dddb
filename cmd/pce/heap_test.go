package main

import (
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
