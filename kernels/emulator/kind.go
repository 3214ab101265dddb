package emulator

import (
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/device"
)

// Kind is the emulator as a device that a program may register, for use by name. It
// refuses launches outside a graph, as no step of training has any.
var Kind = device.Driven("emulator", func(o device.Options) (cuda.Driver, error) {
	return New(Options{Threads: o.Threads, Strict: true}), nil
})
