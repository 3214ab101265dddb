package em

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// Discriminative says that training raises the mean of
//
//	log p(class, x) - Share·log p(x)
//
// in place of that of log p(class, x): with Share 1 it is log p(class | x), whose negative is the cross-entropy. A row
// whose class is missing counts with (1-Share)·log p(x).
type Discriminative struct {
	Class int     // variable of the class, counted from 0
	Share float64 // 0 to 1
}

// Validate reports what cannot be of rows of a schema and leaves of a program.
func (d *Discriminative) Validate(s *dataset.Schema, p *layers.Program) error {
	switch {
	case !(d.Share >= 0 && d.Share <= 1):
		return badOption("a discriminative share of %v; want 0 to 1", d.Share)
	case d.Class < 0 || d.Class >= len(s.Columns):
		return badOption("column %d of %d, counted from 0, as the class", d.Class, len(s.Columns))
	case s.Columns[d.Class].Kind != dataset.Discrete:
		return badOption("%s is the class and is continuous; choose a column of categories", s.ColumnName(d.Class))
	}
	for i := range p.Inputs {
		if f := p.Inputs[i].Family; f.NumParams() > 0 && !contrasts(f) {
			return badOption("discriminative training of %s leaves, whose steps from what they expect do not stay where they are; choose other leaves", f.Name())
		}
	}
	return nil
}

// discriminator computes what Discriminative adds to a Local.
type discriminator struct {
	Discriminative
	contrast *contrast
	hidden   dataset.Batch // rows without their class
	given    []float64     // their log-likelihoods
}

// Discriminate makes Step and LogLikelihood those of d. Steps by Anemone are refused then. Call it before Begin, with phases of
// MiniBatch: the length of a discriminative step does not fall by itself, as that of a step of FullBatch does.
func (l *Local) Discriminate(d Discriminative) error {
	if err := d.Validate(l.src.Schema(), l.eng.Program()); err != nil {
		return err
	}
	l.discriminator = nil
	if d.Share == 0 {
		return nil
	}
	l.discriminator = &discriminator{Discriminative: d, contrast: newContrast(l.eng, d), given: make([]float64, max(l.eng.Info().Rows, EvalRows))}
	return nil
}

// hide returns the rows of b with their class missing, but for those whose log-likelihood, in ll, is that of an impossible
// row: with its class it remains impossible, and has no counts. Rows share the other cells, and are valid until the next call.
func (d *discriminator) hide(b *dataset.Batch, ll []float64) *dataset.Batch {
	missing := d.hidden.Columns
	d.hidden = dataset.Batch{Rows: b.Rows, Columns: append(missing[:0], b.Columns...)}
	given, codes := &b.Columns[d.Class].Codes, dataset.MissingCodes(b.Columns[d.Class].Codes.Wide != nil, b.Rows)
	for i, x := range ll {
		if code := given.At(i); code >= 0 && math.IsInf(x, -1) {
			codes.Set(i, code)
		}
	}
	d.hidden.Columns[d.Class] = dataset.Cells{Codes: codes}
	return &d.hidden
}

// objective makes log-likelihoods of rows, ll, those of the objective, given those of the rows without their class. A
// row that is impossible remains so.
func (d *discriminator) objective(ll, given []float64) {
	for i, x := range ll {
		if !math.IsInf(x, -1) {
			ll[i] = x - d.Share*given[i]
		}
	}
}

// discriminate is Step of a discriminator: shard by shard, the expected counts of the rows and of the rows without
// their class.
func (l *Local) discriminate(ctx context.Context, rule tensor.Rule) (StepResult, error) {
	d := l.discriminator
	var res StepResult
	if rule.Anemone != nil {
		return res, badOption("a discriminative step by anemone; choose minibatch-em")
	}
	before := l.eng.Recomputed()
	for ends := false; !ends; {
		r, err := l.next(ctx)
		if err != nil {
			return res, err
		}
		ends = r.of.Ends
		further := r.of.Span.Lo > 0
		ll := l.ll[:r.of.Span.Hi-r.of.Span.Lo]
		given := d.given[:len(ll)]
		l.stale = true
		if err := r.pass.Accumulate(ctx); err != nil {
			return res, err
		}
		if err := r.pass.Wait(ctx); err != nil {
			return res, err
		}
		if err := d.contrast.take(ctx, d.contrast.with, further); err != nil {
			return res, err
		}
		if err := l.eng.Accumulate(ctx, d.hide(r.of.Batch, ll), 0, len(ll), given); err != nil {
			return res, err
		}
		if err := d.contrast.take(ctx, d.contrast.without, further); err != nil {
			return res, err
		}
		d.objective(ll, given)
		res.Add(ll)
		l.ahead, _ = l.read(ctx) // what goes wrong with the rows that come next is the next step's error
	}
	res.Recomputed = l.eng.Recomputed() - before
	moving := context.WithoutCancel(ctx)
	if err := d.contrast.put(moving); err != nil {
		return res, err
	}
	if err := l.eng.Apply(moving, rule); err != nil {
		return res, err
	}
	l.stale = false
	return res, nil
}

// evaluate is Evaluate of the objective.
func (l *Local) evaluate(ctx context.Context, src dataset.Source) (Evaluation, error) {
	d := l.discriminator
	loader, err := dataset.NewLoader(ctx, src, dataset.LoaderOptions{BatchRows: EvalRows, InOrder: true, Epochs: 1})
	if err != nil {
		return Evaluation{}, err
	}
	defer loader.Close()
	var t Tally
	ll := make([]float64, EvalRows)
	before := l.eng.Recomputed()
	for {
		s, err := loader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Evaluation{}, err
		}
		ll, given := ll[:s.Batch.Rows], d.given[:s.Batch.Rows]
		if err := l.eng.LogLikelihood(ctx, s.Batch, ll); err != nil {
			return Evaluation{}, err
		}
		if err := l.eng.LogLikelihood(ctx, d.hide(s.Batch, ll), given); err != nil {
			return Evaluation{}, err
		}
		d.objective(ll, given)
		t.Add(slices.Clone(ll)...)
	}
	e := t.Evaluation()
	e.Recomputed = l.eng.Recomputed() - before
	return e, e.Check()
}
