// Package metrics counts what a server of package serve does: requests, rows, times and memory,
// for each model in the statistics extension of the protocol and for all of them as Prometheus'
// text. It knows names, numbers and durations alone.
//
// # Shapes and units
//
// Durations are time.Duration in calls, nanoseconds in statistics and seconds in metrics; memory
// is in bytes.
//
// # Errors
//
// Nothing fails. Methods may be called from any goroutine; those of Metrics that add models come
// first.
//
// # Source
//
// Names follow Prometheus' conventions; the statistics are those that Triton documents.
package metrics
