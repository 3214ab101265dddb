// Package parallel divides work among the processors: Each and Stream take items one by one, in as many goroutines as there
// are processors, for work of milliseconds; Shares.Do takes rows in shares, on as many threads as a device has, for work that may be as
// short as waking a thread (handoff.go).
//
// # Errors
//
// A panic in a goroutine, faults in mapped memory included, becomes one of the caller, with
// the same value, after the other goroutines have ended.
//
// # Source
//
// Plain Go; no outside source.
package parallel
