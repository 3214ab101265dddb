package kernels

// Phase is a part of what a program does: forward, backward, update; or one kernel of it.
type Phase struct {
	Name     string
	Kernel   string // "" where all kernels of the phase were timed together
	Launches int    // of the phase or kernel
	Seconds  float64
}

// Usage is implemented by devices that count the memory they have given out.
type Usage interface {
	// InUse returns the bytes of the buffers and programs that were not freed.
	InUse() int64
}

// Detail is how closely a device measures its launches.
type Detail int

// The details. Timing kernels keeps the host from working ahead of the device.
const (
	MeasureNothing Detail = iota
	MeasurePhases
	MeasureKernels
)

// Meter is implemented by devices that can say what a benchmark wants to know of
// them.
type Meter interface {
	// Measure makes later calls of programs time their phases or their kernels, which
	// costs some time; it starts afresh.
	Measure(Detail)
	// Phases returns the times since Measure, by phase or by phase and kernel.
	Phases() []Phase
	// Allocated returns the most bytes of device memory that were in use.
	Allocated() int64
	// Instructions returns how many instructions of each kind have been executed,
	// counted by threads, on a device that counts them, else nil.
	Instructions() map[string]int64
}
