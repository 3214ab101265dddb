package kernels

// Phase is a part of what a program does: forward, backward, update.
type Phase struct {
	Name    string
	Seconds float64
}

// Usage is implemented by devices that count the memory they have given out.
type Usage interface {
	// InUse returns the bytes of the buffers and programs that were not freed.
	InUse() int64
}

// Meter is implemented by devices that can say what a benchmark wants to know of
// them.
type Meter interface {
	// Measure makes later calls of programs time their phases, which costs some time; it
	// starts afresh.
	Measure(on bool)
	// Phases returns the time in each phase since Measure.
	Phases() []Phase
	// Allocated returns the most bytes of device memory that were in use.
	Allocated() int64
	// Instructions returns how many instructions of each kind have been executed,
	// counted by threads, on a device that counts them, else nil.
	Instructions() map[string]int64
}
