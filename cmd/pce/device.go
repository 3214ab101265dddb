package main

import (
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/run"
)

// deviceFlags are the flags of every command that runs a circuit.
type deviceFlags struct {
	device  string
	threads int
}

func (f *deviceFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.device, "device", "auto", "where to compute: auto, cpu, cuda, cuda:1, ... or emulator")
	flags.IntVar(&f.threads, "threads", 0, "CPU threads; 0: one per core. Results do not depend on it")
}

// pathFlag is the flag of commands that choose how a model is compiled.
type pathFlag struct{ name string }

func (f *pathFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "path", "auto", "how the circuit is compiled: auto, tensor, or code (log-likelihoods alone)")
}

func (f *pathFlag) path() (run.Path, error) { return run.ParsePath(f.name) }

// override puts the flags that were given into a config.
func (f *deviceFlags) override(cfg *configs.Config, given func(flag string) bool) {
	if given("device") {
		cfg.Device = f.device
	}
	if given("threads") {
		cfg.Threads = f.threads
	}
}

// runOptions limits a run to the memory that the machine has available.
func runOptions(device string, threads int) run.Options {
	_, available := memory()
	return run.Options{Device: device, Threads: threads, Engines: 1, MaxMemory: int64(available)}
}
