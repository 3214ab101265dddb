package learnspn

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// Learned is a circuit with its parameters.
type Learned struct {
	Graph  *circuit.Graph
	Params circuit.ParamFunc
	// Options are those that it was learned with: Search has chosen some of them.
	Options     Options
	Multipliers int // as hardware, before tables are packed
}

// Learn learns structure and parameters of a circuit from the rows of src. Equal options,
// rows and processors give equal bits, whatever the number of workers. Settings out of range
// give an error that matches structures.ErrOptions, rows that cannot be learned from one that
// matches structures.ErrData; when ctx ends, its error is returned.
func Learn(ctx context.Context, src dataset.Source, opts Options) (*Learned, error) {
	if err := opts.check(src); err != nil {
		return nil, err
	}
	all, err := readTable(ctx, src, opts.Leaves)
	if err != nil {
		return nil, err
	}
	if err := requireCells(all, src.Schema()); err != nil {
		return nil, err
	}
	root := learn(ctx, all, &opts)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("learnspn: over %d rows of %d columns: %w", src.Rows(), len(all), err)
	}
	out := &Learned{Options: opts, Multipliers: root.multipliers()}
	out.Graph, out.Params = assemble(all, root)
	return out, nil
}

// learn returns the circuit of all rows with given settings.
func learn(ctx context.Context, all []variable, opts *Options) *node {
	l := &learner{ctx: ctx, opts: opts, fit: newLeafFitter(all, opts.Smoothing), idle: make(chan struct{}, opts.Workers-1)}
	for range opts.Workers - 1 {
		l.idle <- struct{}{}
	}
	return l.grow(whole(all), 1)
}
