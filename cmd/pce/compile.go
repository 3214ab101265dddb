package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// compileFlags are the flags of compile.
type compileFlags struct {
	config       configFlags
	rtl          rtlFlags
	code         codeFlags
	target, arch string
	dir          string
	asJSON       bool
	emit         string
	schedule     scheduleFlags
}

// architectures are what --arch takes, as compute capabilities.
var architectures = map[string][2]int{"sm_80": {8, 0}, "sm_90": {9, 0}}

// compileCommand declares pce compile: its --target decides which of the other flags are allowed,
// and those of another target are usage errors.
func (a *app) compileCommand() *cobra.Command {
	var f compileFlags
	c := &cobra.Command{
		Use:   "compile MODEL | --config FILE",
		Short: "Write the kernels with which a model runs on a card, or its hardware",
		Long: `Write the kernels with which a model runs on a card, one file per kernel: NAME.ptx.

A config gives the kernels of its training, a model those of its queries, a decision forest those of
its predictions under --schedule.

Files of these names in the folder are replaced.

A circuit that runs as code (--path code, or histograms with breaks of their own) has one kernel, or
several if it is large, and others for rows that are computed again, whose names begin with exact_.

With --emit, print a form of a program on its way to code. Of a decision forest, under --schedule: its
trees (hir), its loops and walks (mir), these on buffers (lir), its kernels for a CPU (simt) or a card
(ptx). Of a circuit: its query and graph (hispn), these as operations on numbers of a type in the tasks
of --target x86 or ptx (lospn), its code (simt) or the text of its kernels (ptx).

With --target rtl, write the hardware of a model's likelihoods as Verilog, with testbenches and
report.json, which says what it takes; files of these names in the folder are replaced. See
docs/hardware.md.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.rtl.only(cmd, f.target); err != nil {
				return err
			}
			if name := f.code.given(cmd); name != "" && (len(args) == 0 || f.target == targetRTL) {
				return usagef("--%s is for the kernels of a model", name)
			}
			if len(args) == 1 {
				if err := f.config.ofModel(args[0], "data"); err != nil {
					return err
				}
			}
			if len(args) == 1 && f.target != targetRTL {
				is, err := run.TellForest(args[0])
				if err != nil {
					return err
				}
				if is {
					return a.compileForest(cmd, &f, args[0])
				}
			}
			if f.schedule != (scheduleFlags{}) {
				return usagef("--schedule and --profile are for the file of a decision forest")
			}
			if f.emit != "" && f.target == targetRTL {
				return usagef("--emit %s is a form of code, and --target rtl writes Verilog; leave one of them out", f.emit)
			}
			circuit := len(args) == 1 && f.target != targetRTL
			if f.emit != "" && (!circuit || !slices.Contains(circuitForms, f.emit)) {
				return usagef("--emit %s: want a decision forest and one of %s, or a circuit and one of %s", f.emit, strings.Join(forestForms, ", "), strings.Join(circuitForms, ", "))
			}
			if f.target == targetX86 && (!circuit || f.emit == "" || f.emit == formPTX) {
				return usagef("--target x86 is for a circuit and --emit %s; machine code is not written to files", strings.Join(circuitForms[:len(circuitForms)-1], ", "))
			}
			if f.target == targetRTL {
				if len(args) == 0 || len(f.config.files) > 0 {
					return usagef("compile --target rtl wants a model file")
				}
				if cmd.Flags().Changed("arch") {
					return usagef("--arch is for the kernels of a card; choose the chip with --device")
				}
				if cmd.Flags().Changed("set") {
					return usagef("--set changes nothing of the hardware of %s; leave it out", args[0])
				}
				return a.compileRTL(cmd.Context(), &f, args[0])
			}
			if circuit && (f.target == formPTX || f.target == targetX86) && len(f.config.files) == 0 {
				if err := f.code.unused(cmd, f.emit); err != nil {
					return err
				}
				b, err := f.code.open(cmd, f.emit, args[0])
				if err != nil {
					return err
				}
				if b != nil {
					defer b.Close()
					if b.Unchecked {
						noteUnchecked(a.stderr, args[0])
					}
					if cmd.Flags().Changed("set") {
						return usagef("--set changes nothing of the code of %s; leave it out", args[0])
					}
					return a.compileCode(&f, b)
				}
			}
			return a.compile(cmd.Context(), &f, args)
		},
	}
	f.config.register(c.Flags())
	c.Flags().StringVar(&f.target, "target", "ptx", "what to write: ptx or rtl; with --emit hispn, lospn or simt also x86")
	c.Flags().StringVar(&f.arch, "arch", "sm_90", "for which cards: sm_80 or sm_90 (and later ones)")
	f.rtl.register(c.Flags())
	f.rtl.registerChip(c.Flags())
	f.code.register(c.Flags())
	c.Flags().BoolVar(&f.asJSON, "json", false, "for --target rtl: print report.json")
	c.Flags().StringVar(&f.emit, "emit", "", "print: of a forest "+strings.Join(forestForms, ", ")+"; of a circuit "+strings.Join(circuitForms, ", "))
	f.schedule.register(c.Flags())
	c.Flags().StringVarP(&f.dir, "output", "o", ".", "folder to write to")
	return c
}

// compile writes the kernels that a circuit would run on: those of its training for a config,
// those of its queries for a model. No card is needed. Flags that contradict each other are
// usage errors.
func (a *app) compile(ctx context.Context, f *compileFlags, args []string) error {
	capability, ok := architectures[f.arch]
	switch {
	case len(args) == 1 == (len(f.config.files) > 0):
		return usagef("compile wants a model file or --config FILE, one of them")
	case f.target != "ptx":
		return usagef("--target %s: want ptx or rtl", f.target)
	case !ok:
		return usagef("--arch %s: want sm_80 or sm_90", f.arch)
	}
	cfg, err := a.loadDataConfig(&f.config)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		cfg.Model.Structure, cfg.Model.File = "file", args[0]
		cfg.Data = configs.Data{}
	}
	b, err := a.blueprint(ctx, cfg, run.How{Path: run.PathTensor})
	if err != nil {
		return err
	}
	defer b.Close()
	load := run.QueryLoad(run.Options{Rows: min(shardRowsHere(&cfg.Train), cfg.Train.BatchSize, engine.MaxShardRows)})
	if len(args) == 0 {
		rows := cfg.Train.BatchSize
		if b.Train != nil {
			rows = b.Train.Rows()
		}
		load = run.TrainLoad(a.trainOptions(cfg), rows)
	}
	m, err := plan.Compile(layers.Module{Program: b.Program, Rows: load.Rows, Train: load.Train, Queries: load.Queries, Mixed: load.Mixed}, capability[0], capability[1])
	if err != nil {
		return err
	}
	return a.writeKernels(m, f.dir)
}

// writeKernels writes each kernel of a module to DIR/NAME.ptx, as a module of its own, and
// prints the paths. The folder is made; files that are there are replaced.
func (a *app) writeKernels(m *ptx.Module, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("pce: %w", err)
	}
	for _, k := range m.Kernels {
		one := *m
		one.Kernels = []*ptx.Kernel{k}
		path := filepath.Join(dir, k.Name+".ptx")
		err := atomicfile.Write(path, 0o644, func(w io.Writer) error {
			_, err := w.Write(one.Text())
			return err
		})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.stdout, path); err != nil {
			return err
		}
	}
	return nil
}
