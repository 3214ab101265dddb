package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/circuit/resize"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// resizeFlags are the flags of prune and grow.
type resizeFlags struct {
	queryFlags
	out    outputFlags
	prune  resize.PruneOptions
	grow   resize.GrowOptions
	asJSON bool
}

func (f *resizeFlags) registerOut(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "model file")
	c.Flags().StringVar(&f.out.path, "out", "", "model file to write")
	c.Flags().BoolVar(&f.out.force, "force", false, "replace the file of --out if there is one")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
}

// check refuses what is missing before any work is done.
func (f *resizeFlags) check(ctx context.Context, a *app) error {
	switch {
	case f.model == "":
		return usagef("no --model; give a model file, such as model.safetensors of a run")
	case f.out.stdout():
		return usagef("no --out; name the model file to write")
	}
	if err := nativeName(f.out.path); err != nil {
		return err
	}
	return a.checkOutput(ctx, &f.out, f.inputs()...)
}

// pruneCommand makes the command pce prune.
func (a *app) pruneCommand() *cobra.Command {
	var f resizeFlags
	c := &cobra.Command{
		Use:   "prune --model MODEL --data FILE --out MODEL",
		Short: "Write a circuit without the edges that rows use least",
		Long: `Write a circuit without the weights of sums that have the least flow: the expected number of rows that use
them. What is left is normalised. Units that nothing leads to any more go too. Training continues from the file
with model.structure=file, and should, since it finds again most of the likelihood that was lost.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(f.data) == 0 {
				return usagef("no --data; give the rows whose edges stay, such as those that the model was trained on")
			}
			if err := f.check(cmd.Context(), a); err != nil {
				return err
			}
			next := &pathReader{a: a, f: &f.queryFlags}
			r, err := run.Prune(cmd.Context(), f.model, f.out.path, next.read, runOptions(f.run.device, f.run.threads), f.prune)
			return a.tellResized(&f, r, errors.Join(err, next.close()))
		},
	}
	f.registerOut(c)
	f.registerData(c.Flags())
	c.Flags().StringArrayVar(&f.config.files, "config", nil, "config file whose data section says how rows are read; repeatable")
	c.Flags().StringArrayVar(&f.config.set, "set", nil, "key=value, such as data.header=no; repeatable")
	f.run.register(c.Flags())
	c.Flags().Float64Var(&f.prune.Keep, "keep", 0.25, "share of the weights of sums that stays")
	c.Flags().IntVar(&f.prune.Block, "block", 4, "units on each side of the blocks in which weights go: a power of two. Small ones lose less likelihood, those of 16 and 32 save more time")
	return c
}

// growCommand makes the command pce grow.
func (a *app) growCommand() *cobra.Command {
	var f resizeFlags
	c := &cobra.Command{
		Use:   "grow --model MODEL --out MODEL",
		Short: "Write a circuit with every unit twice, to train it further",
		Long: `Write a circuit in which every unit is there twice, but for the root, with four times the weights of sums.
Without noise it has the distribution of the old one; with it, training finds different things for the copies
to do. Training continues from the file with model.structure=file.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Context(), a); err != nil {
				return err
			}
			r, err := run.GrowContext(cmd.Context(), f.model, f.out.path, f.grow)
			return a.tellResized(&f, r, err)
		},
	}
	f.registerOut(c)
	c.Flags().Float64Var(&f.grow.Noise, "noise", 0.3, "standard deviation of the logarithms that are added to those of the weights")
	c.Flags().Uint64Var(&f.grow.Seed, "seed", 42, "seed of the noise")
	return c
}

// tellResized prints what became of a circuit.
func (a *app) tellResized(f *resizeFlags, r *run.Resized, err error) error {
	if err != nil {
		return err
	}
	if err := a.warn(r.Warnings); err != nil {
		return err
	}
	if f.asJSON {
		return a.printJSON(r)
	}
	if r.Flow != nil {
		kept := fmt.Sprintf("%.4g", 100**r.Flow)
		if kept == "100" && *r.Flow < 1 { // which would say that nothing was left out
			kept = "over 99.99"
		}
		if err := a.tell("kept %s %% of the flow of %s", kept, several(r.Rows, "row")); err != nil {
			return err
		}
	}
	return a.tell("written %s: %s of inputs and sums, %s of sums, %s, of %d, %d and %d", f.out.path,
		several(r.After.Nodes, "unit"), several(r.After.SumEdges, "edge"), several(r.After.Parameters, "parameter"), r.Before.Nodes, r.Before.SumEdges, r.Before.Parameters)
}

// pathReader reads the rows of paths, one after another, as a run.RowReader.
type pathReader struct {
	a     *app
	f     *queryFlags
	next  int
	open  dataset.Reader
	batch dataset.Batch
}

func (p *pathReader) read(ctx context.Context, s *dataset.Schema, most int) (*dataset.Batch, error) {
	for {
		if p.open == nil {
			groups := p.f.groups()
			if p.next == len(groups) {
				return nil, io.EOF
			}
			r, err := p.a.reader(ctx, p.f, s, groups[p.next])
			if err != nil {
				return nil, err
			}
			p.open = r
			p.next++
		}
		err := p.open.Read(ctx, &p.batch, most)
		if err == nil {
			return &p.batch, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err := p.close(); err != nil {
			return nil, err
		}
	}
}

func (p *pathReader) close() error {
	if p.open == nil {
		return nil
	}
	err := p.open.Close()
	p.open = nil
	return err
}
