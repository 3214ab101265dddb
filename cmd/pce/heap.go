package main

import (
	"runtime/debug"
	"slices"
	"strings"
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

// boundHeap has garbage collected more often as the process comes near to all memory that the machine, or its container, has: the heap may
// grow to twice what is in use otherwise, as while queries are answered. What others take is left out, as they may give it back while a
// server, or a run of hours, would spend half of its time on collections. A bound that the user of the process has set in env, GOMEMLIMIT,
// stays, also where that is off.
func boundHeap(env []string, total uint64) {
	own := slices.ContainsFunc(env, func(kv string) bool {
		value, ok := strings.CutPrefix(kv, "GOMEMLIMIT=")
		return ok && value != ""
	})
	if total > 0 && !own {
		debug.SetMemoryLimit(int64(total - total/16)) // a part is the program's own, and the system's
	}
}
