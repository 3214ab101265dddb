package learnspn

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
)

// Learned is a circuit with its parameters.
type Learned struct {
	Graph  *circuit.Graph
	Params circuit.ParamFunc
	// Options are those that it was learned with: Search has chosen some of them.
	Options     Options
	Multipliers int // as hardware, before tables are packed

	trees int // of a mixture within MaxMultipliers
}

// String returns the settings of the circuit in one line.
func (l *Learned) String() string {
	o := &l.Options
	if o.MaxMultipliers > 0 {
		return fmt.Sprintf("max_multipliers %d, smoothing %.4g, Chow-Liu trees %d, %d multipliers", o.MaxMultipliers, o.Smoothing, l.trees, l.Multipliers)
	}
	mixed := ""
	if o.Components > 1 {
		mixed = fmt.Sprintf("%d components, ", o.Components)
	}
	return fmt.Sprintf("columns %s, rows %s, threshold %.4g, min_rows %d, clusters %d, leaf %s, smoothing %.4g, %s%d multipliers",
		o.Columns, o.Rows, o.Threshold, o.MinRows, o.Clusters, o.Leaf, o.Smoothing, mixed, l.Multipliers)
}

// Learn learns structure and parameters of a circuit from the rows of src. Equal options,
// rows and processors give equal bits, whatever the number of workers. Settings out of range
// give an error that matches structures.ErrOptions, rows that cannot be learned from one that
// matches structures.ErrData; when ctx ends, its error is returned.
func Learn(ctx context.Context, src dataset.Source, opts Options) (*Learned, error) {
	src, err := dataset.Checked(src)
	if err == nil && opts.Valid != nil {
		opts.Valid, err = dataset.Checked(opts.Valid)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: learnspn: %w", structures.ErrData, err)
	}
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
	opts.choose(all)
	if err := opts.checkThreshold(); err != nil {
		return nil, err
	}
	var valid []variable
	if opts.Valid != nil && opts.Valid.Rows() > 0 {
		if valid, err = readTable(ctx, opts.Valid, opts.Leaves); err != nil {
			return nil, err
		}
	}
	var root *node
	switch {
	case opts.MaxMultipliers > 0:
		if root, err = learnMixture(ctx, all, valid, &opts); err != nil {
			return nil, err
		}
	case opts.Search:
		best := search(ctx, all, valid, opts)
		opts, root = best.opts, best.root
	default:
		root = learn(ctx, all, &opts)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("learnspn: over %d rows of %d columns: %w", src.Rows(), len(all), err)
	}
	out := &Learned{Options: opts, Multipliers: root.multipliers(), trees: max(1, len(root.children))}
	out.Graph, out.Params = assemble(all, root)
	return out, nil
}

// choose puts in what the options leave to the columns.
func (o *Options) choose(all []variable) {
	if o.Columns == Auto {
		o.Columns = GTest
		for v := range all {
			if !all[v].asLabels() {
				o.Columns = RDC
			}
		}
	}
	switch {
	case o.Threshold != 0:
	case o.Columns == RDC:
		o.Threshold = rdcThreshold
	default:
		o.Threshold = gTestThreshold
	}
}

// learn returns the circuit of all rows with given settings.
func learn(ctx context.Context, all []variable, opts *Options) *node {
	l := &learner{ctx: ctx, opts: opts, fit: newLeafFitter(all, opts.Smoothing), idle: make(chan struct{}, opts.Workers-1)}
	for range opts.Workers - 1 {
		l.idle <- struct{}{}
	}
	if opts.Components > 1 {
		return l.bag(whole(all))
	}
	return l.grow(whole(all), 1)
}
