package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// infoCommand makes the command pce info, which describes the circuit of a model file, or the
// one that a config would train.
func (a *app) infoCommand() *cobra.Command {
	var flags configFlags
	var run deviceFlags
	var by pathFlag
	var asJSON bool
	var model string
	c := &cobra.Command{
		Use:   "info MODEL | --config FILE",
		Short: "Describe a model: of a circuit sizes, passes, memory, properties, queries; of a forest trees and link",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case model != "" && len(args) == 1:
				return usagef("a model by --model and another one, %s, without it; give one", args[0])
			case model != "":
				args = []string{model}
			}
			if len(args) == 1 == (len(flags.files) > 0) {
				return usagef("info wants a model file or --config FILE, one of them")
			}
			if len(args) == 1 {
				if err := flags.ofModel(args[0], "data", "train"); err != nil {
					return err
				}
				f, err := describeForest(args[0])
				if f != nil && err == nil {
					err = cmp.Or(by.forest(args[0]), forCircuits(cmd, args[0]))
				}
				switch {
				case err != nil:
					return err
				case f != nil && asJSON:
					return a.printJSON(f)
				case f != nil:
					return a.printForest(f)
				}
			}
			given := func(cfg *configs.Config) error { return run.override(cfg, cmd.Flags().Changed) }
			info, err := a.info(cmd.Context(), &flags, args, &by, given)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(info)
			}
			return a.printInfo(info)
		},
	}
	flags.register(c.Flags())
	run.register(c.Flags())
	c.Flags().StringVar(&model, "model", "", "the same as MODEL")
	by.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// forCircuits refuses flags that change nothing of what is said of a forest.
func forCircuits(cmd *cobra.Command, forest string) error {
	for _, name := range []string{"set", "device", "threads"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for circuits; %s is a decision forest", name, forest)
		}
	}
	return nil
}

// info describes a model file as queries run it, or a config's circuit as train
// runs it. No parameters are allocated.
func (a *app) info(ctx context.Context, flags *configFlags, args []string, by *pathFlag, override func(*configs.Config) error) (*run.Info, error) {
	cfg, err := a.loadDataConfig(flags)
	if err != nil {
		return nil, err
	}
	if err := override(cfg); err != nil {
		return nil, err
	}
	how, err := by.how()
	switch {
	case len(args) == 0 && err == nil && how != (run.How{}) && how != (run.How{Path: run.PathTensor}):
		return nil, usagef("info --config describes training, which code does not do; leave out --path code, --type, --space, --max-error and --error")
	case len(args) == 0:
		how.Path = run.PathTensor
	default:
		how, err = by.howOn(cfg.Device)
		cfg.Model.Structure, cfg.Model.File = "file", args[0]
		cfg.Data = configs.Data{}
		if err := a.verify(args[0]); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	b, err := a.blueprint(ctx, cfg, how)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if how.Path == run.PathCode { // of its own accord a circuit that is code has the layers of other queries, too
		if err := flags.ofCode(args[0]); err != nil {
			return nil, err
		}
	}
	load := run.QueryLoad(runOptions(cfg.Device, cfg.Threads))
	if b.Train != nil {
		load = run.TrainLoad(a.trainOptions(cfg), b.Train.Rows())
	}
	for _, paths := range []configs.Paths{cfg.Data.Valid, cfg.Data.Test} {
		rows := a.split(&cfg.Data, paths)
		if rows == nil {
			continue
		}
		src, err := rows(ctx, b.Schema)
		if err != nil {
			return nil, err
		}
		if t, ok := src.(*dataset.Table); ok {
			load.Tables += t.Bytes()
		}
	}
	return b.Info(load)
}

// verify reads and checks all parameters of a model file.
func (a *app) verify(path string) error {
	m, err := format.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Verify(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if m.Unchecked {
		noteUnchecked(a.stderr, path)
	}
	return nil
}

// printInfo prints a description for people, a fact per line, in an order that does not change
// from one call to the next.
func (a *app) printInfo(i *run.Info) error {
	var b strings.Builder
	fmt.Fprintf(&b, "variables    %d\n", i.Variables)
	fmt.Fprintf(&b, "nodes        %d\n", i.Nodes)
	fmt.Fprintf(&b, "edges        %d, of them %d of sums\n", i.Edges, i.SumEdges)
	if i.PublishedNodes > 0 {
		fmt.Fprintf(&b, "as published %s, %s, with trainable pass-through sums\n", several(i.PublishedNodes, "node"), several(i.PublishedEdges, "edge"))
	}
	fmt.Fprintf(&b, "parameters   %d\n", i.Parameters)
	fmt.Fprintf(&b, "depth        %d\n", i.Depth)
	var leaves []string
	for name, n := range i.Leaves {
		leaves = append(leaves, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(leaves)
	fmt.Fprintf(&b, "leaves       %s\n", strings.Join(leaves, ", "))
	var props []string
	for name, has := range i.Properties {
		if has {
			props = append(props, strings.ReplaceAll(name, "_", " "))
		}
	}
	slices.Sort(props)
	fmt.Fprintf(&b, "properties   %s\n", orNone(props))
	var soft []string
	for _, q := range i.Queries {
		answer := "exact: the circuit is "
		switch {
		case !q.Allowed:
			answer = "no; only where the circuit is "
		case !q.Exact:
			answer = "approximate; exact where the circuit is "
		}
		fmt.Fprintf(&b, "query        %-12s %s\n", q.Name, answer+q.Needs)
		if q.Soft {
			soft = append(soft, q.Name)
		}
	}
	fmt.Fprintf(&b, "path         %s\n", pathText(i))
	if len(soft) > 0 {
		fmt.Fprintf(&b, "--soft       %s: ranges, sets and likelihoods as evidence\n", strings.Join(soft, ", "))
	}
	for _, p := range i.Compile.Passes {
		fmt.Fprintf(&b, "pass         %-14s %s\n", p.Pass, p.Did)
	}
	for _, l := range i.Compile.Layers {
		fmt.Fprintf(&b, "layer %-6d %s with %s child blocks, grouped to %s, %s of %d padded\n",
			l.Depth, several(l.NodeBlocks, "node block"), counts(l.ChildCounts), counts(l.Groups), several(l.Edges, "edge block"), l.Padded)
	}
	if i.Code == nil {
		fmt.Fprintf(&b, "blocks       %s; %.1f %% of the multiplied weights are padding\n", several(i.BlockSize, "unit"), 100*i.PaddingWaste)
	}
	m := &i.Memory
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"parameters", m.Parameters}, {"values", m.Values}, {"flows", m.Flows}, {"scratch", m.Scratch},
		{"program", m.Program}, {"data", m.Data}, {"runtime", m.Runtime}, {"total", m.Total},
	} {
		fmt.Fprintf(&b, "memory       %-12s %14d bytes\n", part.name, part.bytes)
	}
	fmt.Fprintf(&b, "compiled in  %.3f s\n", i.CompileSeconds)
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// pathText describes how a circuit is compiled.
func pathText(i *run.Info) string {
	c := i.Code
	if c == nil {
		return i.Path
	}
	text := fmt.Sprintf("%s: %s in %s space, %s, %s, %s; within %.3g + %.3g·|ll| nats of float64",
		i.Path, c.Type, c.Space, leaves(c.Leaves), several(c.Products, "multiplication"), several(c.Sums, "addition"), c.Bound.Absolute, c.Bound.Relative)
	for ; c != nil && c.Least != nil; c = c.Exact {
		how := "in log space"
		if c.Exact != nil {
			how = fmt.Sprintf("in %s space, %s", c.Exact.Space, c.Exact.Type)
		}
		text += fmt.Sprintf("; rows below %.4g nats again %s", *c.Least, how)
	}
	return text
}

// counts lists numbers; of many, the first and the last.
func counts(ns []int) string {
	const most = 12
	text := fmt.Sprint(ns)
	if len(ns) > most {
		text = fmt.Sprintf("[%s ... %d] (%d)", strings.Trim(fmt.Sprint(ns[:most-1]), "[]"), ns[len(ns)-1], len(ns))
	}
	return text
}
