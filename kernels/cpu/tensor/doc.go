// Package tensor runs tensor programs on the CPU: float32 values with a shared
// exponent for each row, panels of weights, nodes over cores.
//
// # Shapes and units
//
// Values of a vector are rows of Width floats, one row for each sample:
// [sample][unit]. A value is mantissa · 2^e, e shared by the row. Flows are
// expected counts.
//
// # Errors
//
// Errors match kernels.ErrDevice or kernels.ErrMemory.
//
// # Goroutines
//
// A call of a program starts Threads-1 goroutines and waits for them. They take
// tasks from a common queue; a node is computed by one of them, or by all in
// lockstep where the circuit is a chain. No float depends on their number.
//
// # Source
//
// Layout and schedule are described in docs/architecture.md.
package tensor
