package pce

import (
	"fmt"

	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
)

// Options say where and how a circuit runs. The zero value uses the whole
// machine.
type Options struct {
	Device    string // auto or cpu; "" is auto
	Threads   int    // of a call; 0: one a core. Results do not depend on it
	Engines   int    // of a Model: calls that run at a time, each with its own copy of the parameters; 0: 2
	Rows      int    // rows of a launch, at most engine.MaxShardRows; 0: 512
	MaxMemory int64  // refuse what is planned to take more bytes; 0: no limit
}

func (o Options) withDefaults() Options {
	if o.Engines == 0 {
		o.Engines = 2
	}
	if o.Rows == 0 {
		o.Rows = 512
	}
	return o
}

func (o Options) validate() error {
	switch {
	case o.Threads < 0 || o.Engines < 1 || o.Engines > 1024:
		return fmt.Errorf("%w: %d threads and %d engines; want 0 or more threads and 1 to 1024 engines", ErrOptions, o.Threads, o.Engines)
	case o.Rows < 1 || o.Rows > engine.MaxShardRows:
		return fmt.Errorf("%w: %d rows a launch; want 1 to %d", ErrOptions, o.Rows, engine.MaxShardRows)
	}
	return nil
}

// openDevice opens the device that the options name.
func openDevice(o Options) (kernels.Device, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	switch o.Device {
	case "", "auto", "cpu":
		return cpu.Open(cpu.Options{Threads: o.Threads})
	}
	return nil, fmt.Errorf("%w: no device %q in this build; use auto or cpu", kernels.ErrDevice, o.Device)
}
