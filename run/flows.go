package run

import (
	"context"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
)

// Flows is where a run is computed. Its parameters may be anything at first:
// Train writes the starting ones.
type Flows interface {
	em.FlowSource
	Device() string // what computes, for people
	// Kernels describes what the bits depend on of the device that computes, or
	// of all devices: Name and KernelPath. Where they differ, these are "mixed".
	Kernels() kernels.Info
	PrecisionUsed() string // mixed or fp32
	Recomputed() int64     // rows of vectors recomputed in log space so far
	// Lost reports whether an error of the source means that its parameters are
	// gone. Train then opens another one and continues from the last checkpoint.
	Lost(err error) bool
	Close() error
}

// OpenFlows opens what computes a run of a circuit: b.Train are its training
// rows, l is how one machine would run it. valid and test, nil where there are
// none, are rows whose log-likelihood is asked for, as is that of b.Train.
type OpenFlows func(ctx context.Context, b *Blueprint, l Load, valid, test dataset.Source) (Flows, error)

// Elsewhere says how a run is computed by others than an engine of this process.
type Elsewhere struct {
	Flows OpenFlows
	// Prepare is called once the number of training rows is known, before anything
	// is written; nil: nothing is left to do. It may complete EM, Settings and Config.
	Prepare func(ctx context.Context, rows int, opts *TrainOptions) error
}

// local is an engine of this process.
type local struct {
	*em.Local
	engine    *engine.Engine
	precision string
}

func openLocal(ctx context.Context, b *Blueprint, l Load) (*local, error) {
	e, err := b.Engine(ctx, l)
	if err != nil {
		return nil, err
	}
	return &local{em.NewLocal(e, b.Train), e, e.Precision().String()}, nil
}

func (l *local) Device() string        { return l.engine.Info().Device.Name }
func (l *local) Kernels() kernels.Info { return l.engine.Info().Device }
func (l *local) PrecisionUsed() string { return l.precision }
func (l *local) Recomputed() int64     { return l.engine.Recomputed() }
func (l *local) Lost(error) bool       { return false }

// Close ends the engine, and with it the parameters; they are in the model file by then.
func (l *local) Close() error {
	l.Local.Close()
	return l.engine.Close()
}

// open opens what computes the run.
func (r *training) open(ctx context.Context) (Flows, error) {
	if r.flows == nil {
		l, err := openLocal(ctx, r.plan, r.load)
		if err != nil {
			return nil, err
		}
		if r.opts.Discriminative > 0 {
			if err := l.Discriminate(*r.discriminative()); err != nil {
				l.Close()
				return nil, err
			}
		}
		return l, nil
	}
	return r.flows(ctx, r.plan, r.load, r.valid, r.test)
}

// drawnAtOnce bounds the rows of a launch of an engine that draws the samples of a run alone.
const drawnAtOnce = 64

// drawing is the load of an engine that draws the samples of a run alone.
func (r *training) drawing() Load {
	o := r.load.withDefaults()
	o.Rows = min(o.Rows, r.opts.Samples, drawnAtOnce)
	return Load{Options: o, Mixed: r.load.Mixed}
}

// drawsApart reports whether a run that trains in this process draws its samples by an engine of its own: the CPU trains single units a few
// rows at a time, and would have to make room for draws of as many rows as a launch has, several times all else.
func (r *training) drawsApart() bool {
	at, err := r.load.withDefaults().place()
	return err == nil && at.Host() && r.flows == nil && r.draws() && r.plan.Program.BlockSize == 1
}

// sampler returns an engine with the parameters of f, to draw from; the caller calls done when
// it has drawn. It is the engine of a run that trains in this process, for which done does
// nothing, or else a new one, to which the parameters are copied piece by piece.
func (r *training) sampler(ctx context.Context, f Flows) (_ *engine.Engine, done func(), err error) {
	if l, ok := f.(*local); ok && r.load.Draws == 0 {
		return l.engine, func() {}, nil
	}
	e, err := r.plan.bare(ctx, r.drawing())
	if err != nil {
		return nil, nil, err
	}
	buf := make([]float32, min(f.Program().NumParams, 1<<16))
	for at := int64(0); at < f.Program().NumParams && err == nil; at += int64(len(buf)) {
		part := buf[:min(int64(len(buf)), f.Program().NumParams-at)]
		if err = f.ReadParams(ctx, at, part); err == nil {
			err = e.WriteParams(ctx, at, part)
		}
	}
	if err != nil {
		e.Close()
		return nil, nil, err
	}
	return e, func() { e.Close() }, nil
}
