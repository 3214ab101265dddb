package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/ptx"
)

// The forms of a forest that compile --emit prints. All but the last are those of code for a CPU.
var forestForms = []string{"hir", "mir", "lir", formSIMT, formPTX}

// compileForest writes the kernels of a forest for cards, or prints a form of it. Flags of circuits, and flags
// that the form does not take, are usage errors.
func (a *app) compileForest(cmd *cobra.Command, f *compileFlags, path string) error {
	if f.emit != "" && !slices.Contains(forestForms, f.emit) {
		return usagef("--emit %s of a decision forest: want one of %s, or leave it out to write kernels", f.emit, strings.Join(forestForms, ", "))
	}
	for _, name := range append([]string{"config", "set", "target"}, f.code.names...) {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for circuits; %s is a decision forest", name, path)
		}
	}
	if f.emit == "" || f.emit == formPTX {
		if f.emit != "" && cmd.Flags().Changed("output") {
			return usagef("--output is for kernels in files; leave --emit out")
		}
		return a.compileForestPTX(f, path)
	}
	for _, name := range []string{"arch", "output"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for the kernels of cards; --emit %s has those of a CPU", name, f.emit)
		}
	}
	return a.emitForest(path, f.emit, &f.schedule)
}

// emitForest prints a form of a forest under a schedule. A form that there is before an error is printed.
func (a *app) emitForest(path, form string, f *scheduleFlags) error {
	c, err := f.compile(a, path, lower.Compile)
	if c == nil {
		return err
	}
	printed, ok := c.Text(form)
	if !ok {
		if err == nil {
			err = usagef("%s: represent sliced has no %s; ask for hir or mir", path, form)
		}
		return err
	}
	_, err = io.WriteString(a.stdout, printed)
	return err
}

// compileForestPTX writes or prints the kernels of a forest for cards.
func (a *app) compileForestPTX(f *compileFlags, path string) error {
	capability, ok := architectures[f.arch]
	if !ok {
		return usagef("--arch %s: want sm_80 or sm_90", f.arch)
	}
	if f.schedule.file == autoSchedule {
		return usagef("--schedule %s has no kernels for cards: schedules are chosen for the CPU; name one, such as preset:tahoe-direct", autoSchedule)
	}
	c, err := f.schedule.compile(a, path, lower.CompileCard)
	if err != nil {
		return err
	}
	text, err := forestKernels(c.Module, capability[0])
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case f.emit == formPTX:
		_, err = a.stdout.Write(text.Text())
		return err
	}
	return a.writeKernels(text, f.dir)
}

// compile compiles the forest of a file under the schedule of the flags. The code is nil without a schedule to compile; else it
// has what there is up to an error.
func (f *scheduleFlags) compile(a *app, path string, by func(*forest.Forest, *schedule.Schedule, [][]int64) (*lower.Code, error)) (*lower.Code, error) {
	fo, text, hits, err := f.read(a, path, 0, forestBatch)
	if err != nil {
		return nil, err
	}
	s, err := schedule.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.file, err)
	}
	c, err := by(fo, s, hits)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return c, err
}

// forestKernels lowers the kernels of a forest for cards, whose names begin with those of their code.
func forestKernels(m *nest.Module, major int) (*ptx.Module, error) {
	if m == nil {
		return nil, usagef("represent sliced has no kernels for cards; choose array, sparse or reorg")
	}
	var all *ptx.Module
	var err error
	seen := map[*nest.Kernel]bool{}
	m.Kernels(func(k *nest.Kernel) {
		if err != nil || seen[k] {
			return
		}
		seen[k] = true
		o := device.CardOptions(m, k)
		o.Major = major
		var text *ptx.Module
		if text, err = kernelsOf(k.Code, o, k.Code.Name+"_"); err != nil {
			return
		}
		if all == nil {
			all = text
		} else {
			all.Kernels = append(all.Kernels, text.Kernels...)
		}
	})
	if err == nil && all == nil {
		err = usagef("a forest without trees has no kernels")
	}
	return all, err
}
