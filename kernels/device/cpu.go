package device

import (
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/layers"
)

// processor is the machine's CPU.
var processor = Kind{
	Name:    "cpu",
	Present: func() bool { return true },
	Open: func(_ int, o Options) (kernels.Device, error) {
		c, err := cpuOptions(o)
		if err != nil {
			return nil, err
		}
		return cputensor.Open(c)
	},
	Plan: func(m layers.Module, o Options) (Memory, error) {
		c, err := cpuOptions(o)
		if err != nil {
			return Memory{}, err
		}
		work, err := cputensor.Plan(m, c)
		return Memory{Values: work.Values + m.RowBytes(), Flows: work.Flows, Scratch: work.Scratch}, err
	},
	PlanCode: planProcessorCode,
	Paths:    cpu.KernelPaths,
	Check: func(o Options) error {
		_, err := cpuOptions(o)
		return err
	},
}

// planProcessorCode counts what calls take on the threads, and the code.
func planProcessorCode(m *simt.Module, o Options) (Memory, error) {
	c, err := cpuOptions(o)
	if err != nil {
		return Memory{}, err
	}
	d, err := cpu.Open(c)
	if err != nil {
		return Memory{}, err
	}
	call, program, err := cpu.PlanCode(m, d.Set().Name)
	return Memory{Scratch: int64(d.Threads()) * call, Program: program, Threads: d.Threads()}, err
}

func cpuOptions(o Options) (c cpu.Options, err error) {
	c.Threads = o.Threads
	if o.KernelPath != "" {
		c.Set, err = cpu.KernelPath(o.KernelPath)
	}
	c.Loaders = cpu.Loaders{simt.Kind: cpu.LoadCode}
	return c, err
}
