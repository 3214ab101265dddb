// Package parallel divides work among the processors.
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
