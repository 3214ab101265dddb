package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	lower "github.com/pce-engine/pce/compile/forest"
	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/simt"
)

// interpreter is the path of a kernel without machine code.
const interpreter = "interpreter"

// codePaths returns the paths of a forest as code, with each set of instructions of this machine, or on a card if the
// flags name one: under the default schedule, if the forest has code, and under the given ones, which it must have. free
// gives the code back.
func codePaths(ctx context.Context, f *forest.Forest, on deviceFlags, schedules []string, profile string) (paths []*forestPath, free func(), err error) {
	var all []*cpu.Code
	var closers []func() error
	compile := lower.Compile
	if !on.processor() {
		compile = lower.CompileCard
	}
	free = func() {
		for _, c := range closers {
			_ = c() // a device that refuses has lost its card, and nothing is left to free
		}
		for _, c := range all {
			c.Free()
		}
	}
	flags := scheduleFlags{file: "given", profile: profile}
	hits, err := flags.hits(ctx, f)
	if err != nil {
		return nil, free, err
	}
	if profile != "" && len(schedules) == 0 {
		return nil, free, usagef("--profile is for --schedule")
	}
	for i, file := range append([]string{""}, schedules...) {
		name, text := "default", "represent sparse\n" // which takes trees of nearly any depth
		if i > 0 {
			if text, err = readSchedule(ctx, file); err != nil {
				return nil, free, err
			}
			name = file
		}
		s, err := schedule.Parse(text)
		if err != nil {
			return nil, free, fmt.Errorf("%s: %w", file, err)
		}
		c, err := compile(f, s, hits)
		if i == 0 && (errors.Is(err, hir.ErrForest) || errors.Is(err, ir.ErrLower)) {
			continue // no code for such a forest
		}
		if err != nil {
			return nil, free, fmt.Errorf("%s: %w", file, err)
		}
		if c.Module == nil {
			return nil, free, usagef("%s: represent sliced is compared without a schedule already; leave it out", file)
		}
		var leaves *lower.Leaves
		if len(f.Trees) > 0 {
			if leaves, err = c.Leaves(); err != nil {
				return nil, free, fmt.Errorf("%s: %w", file, err)
			}
		}
		if !on.processor() {
			p := &forestPath{scoreCheck: scoreCheck{Path: "code", Schedule: name, Device: on.device, OK: true}, within: c.Bound(f)}
			at, err := device.Find(on.device)
			if err != nil {
				return nil, free, err
			}
			if err := p.by(ctx, f, c.Module, leaves, func(m *nest.Module) (*nest.Program, error) {
				program, closer, err := at.OpenNest(ctx, m, device.Options{Threads: on.threads})
				if err == nil {
					closers, p.KernelPath = append(closers, closer), program.Path()
				}
				return program, err
			}); err != nil {
				return nil, free, err
			}
			paths = append(paths, p)
			continue
		}
		for _, set := range micro.All() {
			p := &forestPath{scoreCheck: scoreCheck{Path: "code", Schedule: name, OK: true}, within: c.Bound(f)}
			var kernels []string // by what they run
			if err := p.by(ctx, f, c.Module, leaves, func(m *nest.Module) (*nest.Program, error) {
				return nest.New(m, 2, func(m *simt.Module) (nest.Code, error) {
					k, err := cpu.CompileCode(m, set.Name, 2)
					if err != nil {
						return nil, err
					}
					if all = append(all, k); !slices.Contains(kernels, k.Path()) {
						kernels = append(kernels, k.Path())
					}
					return k, nil
				})
			}); err != nil {
				return nil, free, err
			}
			p.KernelPath = strings.Join(kernels, ", ")
			if n := len(paths); n > 0 && paths[n-1].Schedule == name && paths[n-1].KernelPath == p.KernelPath {
				continue // another set with the same instructions
			}
			paths = append(paths, p)
		}
	}
	return paths, free, nil
}

// by lets the programs that open makes of two modules compute the path's sums and leaves; leaves is nil of a forest without
// trees.
func (p *forestPath) by(ctx context.Context, f *forest.Forest, sums *nest.Module, leaves *lower.Leaves, open func(*nest.Module) (*nest.Program, error)) error {
	program, err := open(sums)
	if err != nil {
		return err
	}
	p.sums = func(rows, sums []float64) {
		f.Start(sums)
		if f.Input == forest.Float32 {
			p.fail(nest.Sums(ctx, program, narrow(rows), sums))
		} else {
			p.fail(nest.Sums(ctx, program, rows, sums))
		}
	}
	if leaves == nil {
		return nil
	}
	finder, err := open(leaves.Module)
	if err != nil {
		return err
	}
	p.leaves = func(rows, out []float64) {
		words := make([]int32, len(out))
		if f.Input == forest.Float32 {
			p.fail(nest.Words(ctx, finder, narrow(rows), words))
		} else {
			p.fail(nest.Words(ctx, finder, rows, words))
		}
		if p.err == nil {
			leaves.Number(words, out)
		}
	}
	return nil
}

// fail notes the first error of a path, which ends the check.
func (p *forestPath) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}
