package main

import (
	"runtime"
	"testing"
)

// TestPeakOfCores wants the rates of as many threads as compute at the same time: threads that are more than the
// cores would count these several times.
func TestPeakOfCores(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for _, threads := range []int{1, cores, cores + 1, 16 * cores} {
		if got, want := together(threads, func() float64 { return 1.5 }), 1.5*float64(min(threads, cores)); got != want {
			t.Errorf("%d threads on %d cores reach %v, want %v", threads, cores, got, want)
		}
	}
}
