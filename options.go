package pce

import (
	"fmt"

	"github.com/pce-engine/pce/engine"
)

// Options say where and how a circuit runs. The zero value uses the whole
// machine.
type Options struct {
	Device    string // auto, cpu, cuda, cuda:1, ... or emulator; "" is auto
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
	_, err := o.place()
	return err
}
