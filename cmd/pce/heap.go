package main

import (
	"math"
	"runtime/debug"
)

// How much the heap may grow, in percent of what is in use, before garbage is collected.
const (
	// trainGC holds while training: nearly all of the heap are big buffers that live as long
	// as the run, so little headroom keeps the memory near the plan.
	trainGC = 10
	// openGC holds while a model is opened: reading and compiling a long circuit leave several
	// times what the program keeps.
	openGC = 25
	// simplifyGC holds while equations are simplified, which makes some 10 MB again and again.
	simplifyGC = 400
)

// defaultGC is what a process has whose environment does not set GOGC.
const defaultGC = 100

// headroom lets the heap grow by percent between collections until restore is called. A
// setting other than Go's own stays: the user of the process has decided between memory and
// time, or a caller that is not done yet has.
func headroom(percent int) (restore func()) {
	if before := debug.SetGCPercent(percent); before != defaultGC {
		debug.SetGCPercent(before)
		return func() {}
	}
	return func() { debug.SetGCPercent(defaultGC) }
}

// leastBound is the least bound on the heap: where less memory is available, commands that need little would spend their time on
// collections.
const leastBound = 256 << 20

// boundHeap has garbage collected more often before the process takes more memory than the machine has available, for which plans of
// memory are accepted: the heap may grow to twice what is in use otherwise, as while queries are answered. A bound that the user of the
// process has set, GOMEMLIMIT, stays.
func boundHeap(total, available uint64) {
	if total > 0 && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(max(leastBound, memoryBound(total, available)))
	}
}
