package emulator

import (
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/device"
)

// Kind is the emulator as a device that a program may register, for use by name.
var Kind = device.Driven("emulator", func(o device.Options) (cuda.Driver, error) {
	return New(Options{Threads: o.Threads}), nil
})
