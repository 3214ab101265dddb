package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/circuit/structures/trees"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// maxCircuitCells bounds the cells of the rows that a circuit of a forest counts.
const maxCircuitCells = 1 << 27

// circuitFlags are the flags of forest circuit.
type circuitFlags struct {
	predictFlags
	smoothing float64
}

// forestCircuitCommand makes the command pce forest circuit.
func (a *app) forestCircuitCommand() *cobra.Command {
	var f circuitFlags
	c := &cobra.Command{
		Use:   "circuit MODEL --data FILE --out MODEL",
		Short: "Write a decision forest as a circuit, which every query takes",
		Long: `Write a decision forest and rows as a circuit: the mean over the trees of a density that each leaf
has of the rows that reach it, and of a classifier the class that the forest predicts for them. With it
missing cells are averaged over exactly, and pce query answers about the features and the class.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.model = args[0]
			return a.forestCircuit(cmd.Context(), &f)
		},
	}
	f.rows(c.Flags())
	c.Flags().StringVar(&f.out.path, "out", "", "model file to write")
	c.Flags().BoolVar(&f.out.force, "force", false, "replace the file of --out if there is one")
	c.Flags().Float64Var(&f.smoothing, "smoothing", 1, "rows that are spread over the leaves of a tree, and over the bins of a leaf, in addition to those that are there")
	return c
}

// forestCircuit makes the circuit of a forest and of the rows of the flags, which are read as predict reads them.
func (a *app) forestCircuit(ctx context.Context, f *circuitFlags) error {
	switch {
	case len(f.data) == 0:
		return usagef("no --data; give rows to count in the leaves")
	case f.out.stdout():
		return usagef("no --out; name the model file to write")
	case !(f.smoothing > 0 && f.smoothing <= math.MaxFloat32):
		return usagef("--smoothing %v: want a number above 0, at most 3.4e38", f.smoothing)
	}
	if err := nativeName(f.out.path); err != nil {
		return err
	}
	if err := a.checkOutput(ctx, &f.out, f.inputs()...); err != nil {
		return err
	}
	fo, err := run.OpenForest(f.model)
	if err == nil {
		err = checkRows(fo)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.model, err)
	}
	if fo.Linear != nil {
		return usagef("%s: a linear model has no leaves", f.model)
	}
	o, err := a.numberOptions(&f.config)
	if err != nil {
		return err
	}
	var rows []float64
	err = a.eachNumbersOf(ctx, o, f.data, fo, dataset.ToFloat32, 512, func(more []float64) error {
		if len(rows)+len(more) > maxCircuitCells {
			return fmt.Errorf("%w: more than %d rows of %d cells; give fewer", run.ErrOptions, maxCircuitCells/fo.Features, fo.Features)
		}
		rows = append(rows, more...)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	c, err := trees.New(fo, rows, f.smoothing)
	if err != nil {
		return fmt.Errorf("%s: %w", f.model, err)
	}
	return run.WriteCircuitContext(ctx, f.out.path, c.Graph, c.Schema.WithMarks(o.Missing), c.Params) // which queries take for missing, too
}
