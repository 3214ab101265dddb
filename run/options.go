package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/device"
)

// Errors that callers may test for with errors.Is. They are those of the library,
// by whose name users know them.
var (
	// ErrOptions means that options contradict each other or the data.
	ErrOptions = errors.New("pce: bad options")
	// ErrRun means that a directory holds a run already.
	ErrRun = errors.New("pce: directory holds a run")
)

// Options say where and how a circuit runs. The zero value uses the whole
// machine.
type Options struct {
	Device  string // auto, cpu, cuda, cuda:1, ... or what else is registered with package device; "" is auto
	Threads int    // of a call, up to MaxThreads; 0: one per core. Results do not depend on it
	// Engines are, of a Model, the calls that run at a time, each with its own copy of the parameters; fewer where MaxMemory
	// has no room for that many. 0: 2.
	Engines int
	// Rows are the most of a launch, up to engine.MaxShardRows, of code on a card up to CardRows. 0 is 512, of code on a
	// card CardRows. A Model takes fewer where its calls ask for fewer.
	Rows int
	// MaxMemory is in bytes; 0: no limit. A Model, with all its engines, takes fewer rows, and then fewer engines, where its plan
	// has more, and what is planned to take more with one engine is refused.
	MaxMemory int64
	// KernelPath is one of KernelPaths, for the CPU alone: two paths differ by
	// rounding. "" is what the environment variable PCE_CPU names, else the best.
	KernelPath string
	// Path is how a Model is compiled: as a tensor program or as code.
	Path Path
	// Numbers are the type and space of values of a Model that runs as code, and how exact they have to be. The zero value
	// is float64.
	Numbers spn.Choice
	// Only is the kind of the queries that a Model is asked, such as QueryMoments, if there is but one: what they have no use
	// for is not made then. "": any.
	Only string
	// Soft makes room in a Model for evidence that is a range, a set or likelihoods: SoftCells of
	// batches. It takes memory for 64 rows or more in each table, and no time where rows have values
	// alone, but for circuits of leaves without tables.
	Soft bool
}

// softRows is how many rows of evidence tables have for Options.Soft.
const softRows = 64

// Compile returns the options by which a Model is compiled.
func (o Options) Compile() compile.Options {
	c := compile.DefaultOptions()
	if o.Soft {
		c.Soft = softRows
	}
	return c
}

// How returns how a Model is compiled: as Path says, which Soft limits to tensor programs, for the device.
func (o Options) How() (How, error) {
	var err error
	if o.Path, err = ParsePath(string(o.Path)); err != nil {
		return How{}, err
	}
	switch {
	case o.Only != "" && !slices.Contains(queryKinds, o.Only):
		return How{}, fmt.Errorf("%w: Only is %.40q; want one of %s", ErrOptions, o.Only, strings.Join(queryKinds, ", "))
	case !o.Soft:
		at, err := device.Find(o.Device)
		return How{o.Path, o.Numbers, err == nil && at.Host()}.only(o.Only), nil // opening it says what is wrong with the name
	case o.Path == PathCode:
		return How{}, fmt.Errorf("%w: ranges, sets and likelihoods for a model that runs as code; let it run as a tensor program", ErrOptions)
	case o.Numbers != (spn.Choice{}):
		return How{}, fmt.Errorf("%w: type, space and errors of numbers are chosen for code alone, and tensors answer about ranges, sets and likelihoods; leave them out", ErrOptions)
	}
	return How{Path: PathTensor}, nil
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

// CardRows are the rows of a launch of code on a card: a thread computes a row, and fewer
// leave multiprocessors without work.
const CardRows = 1 << 16

// MaxThreads bounds the threads of a call, as the key threads of a config does: each has memory of its own.
const MaxThreads = 4096

// place checks the options and finds the device that they name.
func (o Options) place() (device.Place, error) { return o.placeFor(engine.MaxShardRows) }

// placeFor is place for launches of up to most rows.
func (o Options) placeFor(most int) (device.Place, error) {
	switch {
	case o.Threads < 0 || o.Threads > MaxThreads:
		return device.Place{}, fmt.Errorf("%w: Threads is %d, want 0..%d", ErrOptions, o.Threads, MaxThreads)
	case o.Engines < 1 || o.Engines > 1024:
		return device.Place{}, fmt.Errorf("%w: Engines is %d, want 1..1024", ErrOptions, o.Engines)
	case o.Rows < 1 || o.Rows > most:
		return device.Place{}, fmt.Errorf("%w: Rows is %d, want 1..%d", ErrOptions, o.Rows, most)
	case o.MaxMemory < 0: // as of a program that subtracts from a budget; it must not mean no limit
		return device.Place{}, fmt.Errorf("%w: MaxMemory is %d bytes; want a positive number, or 0 for no limit", ErrOptions, o.MaxMemory)
	}
	at, err := device.Find(o.Device)
	if err != nil {
		return device.Place{}, err
	}
	return at, at.Check(o.device())
}

// device returns what the options say to a device.
func (o Options) device() device.Options {
	return device.Options{Threads: o.Threads, KernelPath: o.KernelPath}
}

// Probe describes the device that the options name, and the kernel paths that
// Options.KernelPath may choose from there, best first: its only one, for a card.
func Probe(o Options) (info kernels.Info, paths []string, err error) {
	at, err := o.withDefaults().place()
	if err != nil {
		return info, nil, err
	}
	return at.Probe(o.device())
}

// Load says how a circuit will be run, as far as memory and kernels depend on it.
type Load struct {
	Options
	Train bool
	// Queries says that conditionals, moments and most probable completions can be asked for.
	Queries  bool
	Mixed    bool // products of lower precision where the device has them
	Shards   bool // integer flows are kept, as steps of several shards need
	Contrast bool // the counts of rows with and without their class are kept on the host, as discriminative training needs
	// Averages says that averaged flows are kept, as Anemone needs.
	Averages bool
	StepRows int64 // the most rows between two updates
	// AnyRows says that flows of sums are wanted of rows that nothing is known of: statistics of leaves without codes
	// have no digits then, and no overflow.
	AnyRows bool
	Best    bool // the parameters of the best epoch are kept beside the present ones
	// Draws are the rows of an engine that draws beside the one that trains; 0: there is none.
	Draws int
	// Tables are the bytes of the tables in memory other than Blueprint.Train.
	Tables int64
}

// QueryLoad says how a Model runs a circuit.
func QueryLoad(o Options) Load { return Load{Options: o, Queries: true} }

// TrainLoad says how Train runs a circuit on that many training rows; the tables
// of other rows are not counted.
func TrainLoad(opts TrainOptions, rows int) Load {
	o := opts.em()
	l := Load{Options: opts.Options, Train: true, Mixed: opts.Mixed, Best: o.KeepsBest() || opts.learns() && opts.Valid != nil}
	l.Rows = o.LaunchRows(rows)
	for _, p := range o.Phases {
		step := p.StepRows(rows)
		l.StepRows = max(l.StepRows, int64(step))
		l.Averages = l.Averages || p.Epochs > 0 && p.Rule == em.Anemone
		l.Shards = l.Shards || p.Epochs > 0 && (step > l.Rows || p.Rule == em.Anemone)
	}
	if opts.Discriminative > 0 {
		l.Shards, l.Contrast, l.StepRows = true, true, l.StepRows*em.DiscriminativeCounts
		l.Mixed = false // its roundings are larger than what the class changes
	}
	return l
}
