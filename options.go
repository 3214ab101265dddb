package pce

import (
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/run"
)

// Options say where and how a circuit runs. The zero value uses the whole machine.
type Options = run.Options

// KernelPaths lists the kernels that this machine's CPU can run, best first: what
// Options.KernelPath may be.
func KernelPaths() []string { return cpu.KernelPaths() }
