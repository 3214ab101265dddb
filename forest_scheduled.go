package pce

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/simt"
)

// scheduled is a forest as code under a schedule.
type scheduled struct {
	program *nest.Program
	code    []*cpu.Code
	close   func() error // of a device; nil: it runs on the CPU
	path    string       // of its kernels: the fastest set of instructions
	host    int          // threads for what the host does for all rows: one on the CPU, where schedules have the threads
	leaves  *scheduledLeaves
}

// interpreter is the path of a kernel without machine code. It takes most of the time where other kernels have some.
const interpreter = "interpreter"

// scheduledLeaves are the same walks as code that finds leaves, which the first call for leaves compiles.
type scheduledLeaves struct {
	once    sync.Once
	compile func() (*lower.Leaves, *scheduled, error)
	of      *lower.Leaves
	code    *scheduled
	err     error
}

// NewScheduledForest is NewForest for a forest whose walks are compiled under a schedule, a text in the language of
// docs/forests.md. The model gives the same scores, to the bit unless the schedule has a reduction, and the same leaves; code for
// these is compiled when they are first asked for. Scores take threads only where the schedule says parallel; of the options, Threads is how many, and
// KernelPath chooses instructions as for circuits. With Device a card or the emulator, each row has a thread there, and calls
// take turns; "", auto and cpu are the CPU. hits counts how many rows visit each node of each tree, as the tilings probability and
// hybrid want; nil if none is known. An error says what is illegal, or what the forest has that code does not do.
func NewScheduledForest(f *forest.Forest, text string, hits [][]int64, opts Options) (*Model, error) {
	s, err := schedule.Parse(text)
	if err != nil {
		return nil, err
	}
	m, err := NewForest(f, opts)
	if err != nil {
		return nil, err
	}
	return m.scheduled(s, hits)
}

// scheduled returns a model of the same forest under a schedule, which is m itself if that represents it sliced.
func (m *Model) scheduled(s *schedule.Schedule, hits [][]int64) (*Model, error) {
	compile, onCPU := lower.Compile, m.opts.Device == "" || m.opts.Device == "auto" || m.opts.Device == "cpu"
	if !onCPU {
		compile = lower.CompileCard
	}
	c, err := compile(m.forest.forest, s, hits)
	if err != nil {
		return nil, err
	}
	if c.Module == nil { // represent sliced, which is what NewForest makes
		if !onCPU {
			return nil, fmt.Errorf("%w: represent sliced runs on the CPU; leave the device out", ErrOptions)
		}
		if m.forest.sliced == nil {
			return nil, fmt.Errorf("%w: represent sliced: the forest is not a sum of trees with few enough thresholds", lower.ErrLower)
		}
		return m, nil
	}
	load := func(module *nest.Module) (*scheduled, error) {
		if onCPU {
			return newScheduled(module, m.opts, m.forest.threads)
		}
		return newOnDevice(module, m.opts)
	}
	code, err := load(c.Module)
	if err != nil {
		return nil, err
	}
	f := m.forest.forest
	code.leaves = &scheduledLeaves{compile: func() (*lower.Leaves, *scheduled, error) { // again, rather than keep all forms until then
		c, err := compile(f, s, hits)
		if err != nil {
			return nil, nil, err
		}
		leaves, err := c.Leaves()
		if err != nil {
			return nil, nil, err
		}
		code, err := load(leaves.Module)
		return leaves, code, err
	}}
	score := &scorer{forest: m.forest.forest, sliced: m.forest.sliced, code: code, start: m.forest.start, threads: m.forest.threads}
	score.memory.New = m.forest.memory.New
	return &Model{plan: m.plan, opts: m.opts, forest: score, exact: m.exact, close: score.close}, nil
}

// kernelPath returns the kernels of the options, or else the fastest of the machine.
func kernelPath(opts Options) (string, error) {
	set, err := micro.Select()
	if opts.KernelPath != "" {
		set, err = micro.ByName(opts.KernelPath)
	}
	if err != nil {
		return "", err
	}
	return set.Name, nil
}

// newScheduled makes a program of a module on the CPU, for as many threads; 0: one for each core.
func newScheduled(m *nest.Module, opts Options, threads int) (*scheduled, error) {
	kernels, err := kernelPath(opts)
	if err != nil {
		return nil, err
	}
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	s := &scheduled{host: 1}
	s.program, err = nest.New(m, threads, func(k *simt.Module) (nest.Code, error) {
		c, err := cpu.CompileCode(k, kernels, threads)
		if err != nil {
			return nil, err
		}
		if s.code = append(s.code, c); s.path != interpreter {
			s.path = c.Path()
		}
		return c, nil
	})
	if err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// newOnDevice makes a program of a module on the device of the options.
func newOnDevice(m *nest.Module, opts Options) (*scheduled, error) {
	at, err := device.Find(opts.Device)
	if err != nil {
		return nil, err
	}
	program, closer, err := at.OpenNest(context.Background(), m, device.Options{Threads: opts.Threads, KernelPath: opts.KernelPath})
	if err != nil {
		return nil, err
	}
	threads := opts.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &scheduled{program: program, path: program.Path(), close: closer, host: threads}, nil
}

// bytes returns the memory of the tables of trees: the elements as the module keeps them, which kernels may have in common, and those
// of each kernel.
func (s *scheduled) bytes() (n int64) {
	seen := map[*uint64]bool{}
	s.program.Module().Kernels(func(k *nest.Kernel) {
		for _, t := range k.Code.Tables {
			if len(t.Bits) == 0 {
				continue
			}
			if n += int64(len(t.Bits)) * int64(t.Type.Bits()/8); !seen[&t.Bits[0]] {
				n += 8 * int64(len(t.Bits))
			}
			seen[&t.Bits[0]] = true
		}
	})
	return n
}

// free gives back the programs. No call may be running.
func (s *scheduled) free() {
	if s.leaves != nil && s.leaves.code != nil {
		s.leaves.code.free()
	}
	if s.close != nil {
		_ = s.close() // a device that refuses has lost its card, and nothing is left to free
	}
	for _, c := range s.code {
		c.Free()
	}
}

// ForestPath names what evaluates a forest: "sliced" and the loops, "code" and the instructions of a schedule's kernels,
// or "plain"; "" for a circuit.
func (m *Model) ForestPath() string {
	switch {
	case m.forest == nil:
		return ""
	case m.forest.code != nil:
		return "code " + m.forest.code.path
	case m.forest.sliced != nil:
		return "sliced " + m.forest.sliced.Loops().Name
	}
	return "plain"
}

// codeScores evaluates rows by code under a schedule.
func codeScores[T, U float32 | float64](ctx context.Context, s *scorer, what forest.What, rows []T, out []U) error {
	f := s.forest
	memory := s.memory.Get().(*scoreMemory)
	defer s.memory.Put(memory)
	if what == forest.Leaves {
		wide, same := any(out).([]float64)
		if !same {
			wide = grow(&memory.wide, len(out))
		}
		if err := codeLeaves(ctx, s, rows, wide); err != nil || same {
			return err
		}
		narrow(out, wide)
		return nil
	}
	n, width := len(rows)/f.Features, f.Width(what)
	sums, wide := grow(&memory.sums, n*f.Outputs), grow(&memory.wide, len(out))
	share := parallel.Shares{Threads: s.code.host, Least: finishRows, Most: 16 * finishRows, Step: finishRows}
	start := func(_, at, n int) error {
		f.Start(sums[at*f.Outputs : (at+n)*f.Outputs])
		return nil
	}
	finish := func(_, at, n int) error {
		part := wide[at*width : (at+n)*width]
		f.Finish(what, sums[at*f.Outputs:(at+n)*f.Outputs], part)
		narrow(out[at*width:(at+n)*width], part)
		return nil
	}
	if err := share.Do(n, start); err != nil {
		return err
	}
	if err := nest.Sums(ctx, s.code.program, rows, sums); err != nil { // in the precision in which cells are compared
		return err
	}
	return share.Do(n, finish)
}

// finishRows is the least share of a thread of the host in the rows of which a device adds the trees.
const finishRows = 4096

// narrow writes numbers in another type.
func narrow[U float32 | float64](out []U, wide []float64) {
	for i, x := range wide {
		out[i] = U(x)
	}
}

// codeLeaves finds the leaves of rows by code under a schedule.
func codeLeaves[T float32 | float64](ctx context.Context, s *scorer, rows []T, out []float64) error {
	if len(out) == 0 { // also of a forest without trees
		return nil
	}
	l := s.code.leaves
	l.once.Do(func() { l.of, l.code, l.err = l.compile() })
	if l.err != nil {
		return l.err
	}
	words := make([]int32, len(out))
	if err := nest.Words(ctx, l.code.program, rows, words); err != nil {
		return err
	}
	l.of.Number(words, out)
	return nil
}
