package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// forestCommand makes the command pce forest.
func (a *app) forestCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "forest",
		Short: "Measure decision forests, choose schedules for them, and make circuits of them",
		Long: `Measure decision forests, choose schedules for them, and make circuits of them. Their predictions are
written by pce predict; pce info describes a forest, pce convert writes it as XGBoost's JSON, and pce check compares all ways of
computing it with the plain one, and these with scores of the library. docs/forests.md is the guide.`,
		Args: cobra.NoArgs,
	}
	var f predictFlags
	p := &cobra.Command{
		Use:   "profile MODEL --data FILE",
		Short: "Count how many rows visit each node of a decision forest",
		Long: `Count how many rows visit each node of a decision forest, and print it as one JSON object. The
tilings probability and hybrid of a schedule take it: pce predict --schedule FILE --profile FILE.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.model = args[0]
			return a.profileForest(cmd.Context(), &f)
		},
	}
	f.rows(p.Flags())
	c.AddCommand(p, a.tuneCommand(), a.forestCircuitCommand())
	return c
}

// profileForest counts visits of the rows of the flags, which are read as predict reads them.
func (a *app) profileForest(ctx context.Context, f *predictFlags) error {
	if len(f.data) == 0 {
		return usagef("no --data; give the rows that visit the nodes")
	}
	fo, err := run.OpenForest(f.model)
	if err != nil {
		return err
	}
	if err := checkRows(fo); err != nil {
		return fmt.Errorf("%s: %w", f.model, err)
	}
	if fo.Linear != nil {
		return usagef("%s: a linear model has no nodes", f.model)
	}
	p := run.Profile{Digest: fmt.Sprintf("%x", fo.Digest()), Hits: hir.Profile(fo, nil)}
	err = a.eachNumbers(ctx, &f.config, f.data, fo, dataset.ToFloat32, 512, func(rows []float64) error {
		p.Rows += len(rows) / fo.Features
		for i, more := range hir.Profile(fo, rows) {
			for k, n := range more {
				p.Hits[i][k] += n
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return a.printJSON(p)
}
