package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/kernels/device"
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

// processor reports whether the flags leave a forest on the CPU, which auto does.
func (f *deviceFlags) processor() bool { return f.device == "auto" || f.device == "cpu" }

// pathFlag has the flags of commands that choose how a model is compiled.
type pathFlag struct {
	name, space, kind string
	numbers           spn.Choice
}

func (f *pathFlag) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "path", "auto", "how the circuit is compiled: auto, tensor, or code (log-likelihoods and classes alone)")
	flags.StringVar(&f.numbers.Type, "type", spn.AutoType, "numbers of code: f32, f64, or auto: f32 where --max-error is proven for every row, else f64")
	flags.StringVar(&f.space, "space", string(spn.Auto), "values of code: auto, linear, log or scaled")
	flags.Float64Var(&f.numbers.MaxError, "max-error", 0, fmt.Sprintf("the largest error that f32 may have; 0: %g, and any with --type f32", spn.DefaultMaxError))
	flags.StringVar(&f.kind, "error", string(spn.AbsoluteLog), "what --max-error bounds: absolute or relative, of likelihoods, or absolute-log, in nats")
}

// how returns what the flags say; the zero value where all have their defaults.
func (f *pathFlag) how() (run.How, error) {
	path, err := run.ParsePath(f.name)
	n := f.numbers
	n.Space, n.Error = spn.Space(f.space), spn.ErrorKind(f.kind)
	if n == (spn.Choice{Space: spn.Auto, Type: spn.AutoType, Error: spn.AbsoluteLog}) {
		n = spn.Choice{}
	}
	return run.How{Path: path, Numbers: n}, err
}

// howOn is how for queries on a device.
func (f *pathFlag) howOn(device string) (run.How, error) {
	how, err := f.how()
	if err != nil {
		return how, err
	}
	return run.Options{Device: device, Path: how.Path, Numbers: how.Numbers}.How()
}

// forest refuses the flags that were given for a forest, which has no use for any.
func (f *pathFlag) forest(model string) error {
	how, err := f.how()
	if err == nil && how != (run.How{Path: run.PathAuto}) {
		err = usagef("%s is a forest; --path, --type, --space, --max-error and --error are for circuits, leave them out", model)
	}
	return err
}

// check refuses numbers of threads that a config cannot have either.
func (f *deviceFlags) check() error {
	if f.threads < 0 || f.threads > run.MaxThreads {
		return usagef("--threads %d: want 0 to %d", f.threads, run.MaxThreads)
	}
	return nil
}

// override puts the flags that were given into a config.
func (f *deviceFlags) override(cfg *configs.Config, given func(flag string) bool) error {
	if given("device") {
		cfg.Device = f.device
	}
	if given("threads") {
		cfg.Threads = f.threads
	}
	// A misspelt device is told before rows are read and a structure is learned from them.
	if _, err := device.Find(cfg.Device); err != nil {
		return err
	}
	return f.check()
}

// runOptions limits a run to the memory that the machine has available.
func runOptions(device string, threads int) run.Options {
	return run.Options{Device: device, Threads: threads, Engines: 1, MaxMemory: memoryBound(memory())}
}

// memoryBound is the bound on a run where the machine has total bytes of memory. If none of them is available, as where others have
// filled a container, the bound is the smallest: 0 would be none at all, which is for systems that do not tell.
func memoryBound(total, available uint64) int64 {
	if total > 0 {
		available = max(available, 1)
	}
	return int64(available)
}
