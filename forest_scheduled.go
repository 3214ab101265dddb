package pce

import (
	"context"
	"fmt"
	"runtime"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
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
}

// NewScheduledForest is NewForest for a forest whose walks are compiled under a schedule, a text in the language of
// docs/forests.md. The model gives the same scores, to the bit unless the schedule says vectorReduce. Leaves are found as
// without a schedule. Scores take threads only where the schedule says parallel; of the options, Threads is how many, and
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
	var code *scheduled
	if onCPU {
		code, err = newScheduled(c.Module, m.opts, m.forest.threads)
	} else {
		code, err = newOnDevice(c.Module, m.opts)
	}
	if err != nil {
		return nil, err
	}
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
	s := &scheduled{}
	s.program, err = nest.New(m, threads, func(k *simt.Module) (nest.Code, error) {
		c, err := cpu.CompileCode(k, kernels, threads)
		if err != nil {
			return nil, err
		}
		s.code, s.path = append(s.code, c), c.Path()
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
	return &scheduled{program: program, path: program.Path(), close: closer}, nil
}

func (s *scheduled) free() {
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
	sums := grow(&memory.sums, len(rows)/f.Features*f.Outputs)
	f.Start(sums)
	var err error
	if f.Input == forest.Float32 { // cells are rounded before they are compared
		cells, same := any(rows).([]float32)
		if !same {
			cells = grow(&memory.cells, len(rows))
			for i, x := range rows {
				cells[i] = float32(x)
			}
		}
		err = nest.Sums(ctx, s.code.program, cells, sums)
	} else {
		err = nest.Sums(ctx, s.code.program, rows, sums)
	}
	if err != nil {
		return err
	}
	wide, same := any(out).([]float64)
	if !same {
		wide = grow(&memory.wide, len(out))
	}
	f.Finish(what, sums, wide)
	if !same {
		for i, x := range wide {
			out[i] = U(x)
		}
	}
	return nil
}
