package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

// Pass is one call of the program over some rows of a batch, in stages that let the
// caller work in between: Load, then one of Evaluate, Step and Accumulate, which may
// return before the device is done, then Wait. On a device that works meanwhile two
// passes may be in flight: while it computes one, the rows of the next are copied.
// Load may be called ahead of time for any number of passes; if the slot that is next
// is busy, the rows are copied at launch.
type Pass struct {
	eng    *Engine
	batch  *dataset.Batch // as long as it was not launched
	lo, hi int
	train  bool // for a training step
	ll     []float64
	at     *slot // nil: its rows are not on the device
	args   tensor.StepArgs

	launched, done bool
	err            error
}

// Load brings the rows lo..hi-1 of b, at most Rows of them, to the device ahead of
// their launch. Wait will write their log-likelihoods to ll. The batch stays as it
// is until the launch; a pass that is not launched needs no end.
func (e *Engine) Load(ctx context.Context, b *dataset.Batch, lo, hi int, ll []float64) (*Pass, error) {
	return e.loadPass(ctx, &Pass{eng: e, batch: b, lo: lo, hi: hi, ll: ll})
}

// LoadStep is Load for a training step, which treats values beyond Options.Limits
// as missing.
func (e *Engine) LoadStep(ctx context.Context, b *dataset.Batch, lo, hi int, ll []float64) (*Pass, error) {
	return e.loadPass(ctx, &Pass{eng: e, batch: b, lo: lo, hi: hi, ll: ll, train: true})
}

func (e *Engine) loadPass(ctx context.Context, p *Pass) (*Pass, error) {
	if err := e.check(p.batch, p.lo, p.hi, p.ll); err != nil {
		return nil, err
	}
	p.ll = p.ll[:p.hi-p.lo]
	// Rows of evidence are written as their launch comes: before it they may be those of another.
	if s := e.slot(); s.pass == nil && !(e.soft != nil && p.batch.HasSoft()) {
		return p, p.move(ctx, s)
	}
	return p, nil
}

// move copies the rows to a free slot.
func (p *Pass) move(ctx context.Context, s *slot) error {
	if err := p.eng.load(ctx, s, p.batch, p.lo, p.hi, p.train); err != nil {
		return err
	}
	p.at, s.pass = s, p
	p.eng.loaded++
	return nil
}

// launch brings the rows to the device, unless they are there, and starts a call of
// the program on them.
func (p *Pass) launch(ctx context.Context, call func() error) error {
	e := p.eng
	if p.launched {
		return fmt.Errorf("%w: a pass was launched twice; load its rows again", kernels.ErrDevice)
	}
	if p.at == nil {
		s := e.slot()
		s.clear(ctx)
		if err := p.move(ctx, s); err != nil {
			return err
		}
	}
	p.args.ForwardArgs = tensor.ForwardArgs{Params: e.params, Codes: p.at.codes, Values: p.at.values, LL: p.at.ll}
	if err := call(); err != nil {
		p.leave()
		return err
	}
	p.launched, p.batch = true, nil
	return nil
}

// leave gives the slot back.
func (p *Pass) leave() { p.at.pass, p.at = nil, nil }

// Evaluate starts the forward pass.
func (p *Pass) Evaluate(ctx context.Context) error {
	return p.launch(ctx, func() error {
		if p.at.rows == 0 {
			return nil
		}
		return p.eng.exec.Forward(ctx, p.at.rows, &p.args.ForwardArgs)
	})
}

// Step starts a training step with these rows as its only shard.
func (p *Pass) Step(ctx context.Context, rule tensor.Rule) error {
	rule = rule.Rounded()
	p.args.Rule = &rule
	return p.launchStep(ctx)
}

// Accumulate starts to add the expected counts of the rows, as one shard, to the
// flows. Any order of shards gives the same bits.
func (p *Pass) Accumulate(ctx context.Context) error {
	e, rows := p.eng, int64(p.hi-p.lo)
	if err := e.needFlows(ctx); err != nil {
		return err
	}
	if e.added+rows > e.most {
		return fmt.Errorf("%w: flows of %d rows before an update, with room for %d; set StepRows", kernels.ErrDevice, e.added+rows, e.most)
	}
	p.args.Flows = e.flows
	if err := p.launchStep(ctx); err != nil {
		return err
	}
	e.added += rows
	return nil
}

func (p *Pass) launchStep(ctx context.Context) error {
	return p.launch(ctx, func() error {
		switch {
		case p.at.rows > 0:
			return p.eng.exec.Step(ctx, p.at.rows, &p.args)
		case p.args.Rule != nil: // no row is possible, but the pseudocount counts
			return p.eng.apply(ctx, tensor.UpdateArgs{Rule: *p.args.Rule})
		}
		return nil
	})
}

// Wait waits for the launch and writes the log-likelihoods.
func (p *Pass) Wait(ctx context.Context) error {
	if !p.launched {
		return fmt.Errorf("%w: wait for a pass that was not launched", kernels.ErrDevice)
	}
	if !p.done {
		p.finish(ctx)
	}
	return p.err
}

// finish takes what the call has left in the slot, and gives that back.
func (p *Pass) finish(ctx context.Context) {
	left := p.at.rows
	if left > 0 {
		p.err = p.eng.dev.Read(ctx, p.ll[:left], p.at.ll, 0)
	}
	for i := len(p.ll) - 1; i >= 0; i-- { // from the end: rows that were left out make room
		x := p.at.excess[i]
		if p.train && math.IsInf(x, 1) {
			p.ll[i] = math.Inf(-1)
			continue
		}
		left--
		p.ll[i] = p.ll[left] - x
	}
	p.eng.recomputed += p.args.Recomputed
	p.done = true
	p.leave()
}

// Evaluate hands the log-likelihoods of batch after batch to take, those of a
// launch at a time, in order. next returns io.EOF after the last batch and may use
// a batch again that it has returned. While the device works on rows the next ones
// are read and copied.
func (e *Engine) Evaluate(ctx context.Context, next func() (*dataset.Batch, error), take func(ll []float64)) error {
	var before *Pass // launched
	end := func(p *Pass) error {
		if p == nil {
			return nil
		}
		if err := p.Wait(ctx); err != nil {
			return err
		}
		take(p.ll)
		return nil
	}
	for i := 0; ; {
		b, err := next()
		for lo, hi := 0, 0; err == nil && lo < b.Rows; lo = hi {
			var p *Pass
			if err = ctx.Err(); err != nil {
				break
			}
			hi = e.launchEnd(b, lo)
			if p, err = e.Load(ctx, b, lo, hi, e.lls[i%2]); err != nil {
				break
			}
			if err = p.Evaluate(ctx); err != nil {
				break
			}
			i++
			if failed := end(before); failed != nil {
				_ = p.Wait(ctx) // that error came first
				return failed
			}
			before = p
		}
		if err != nil {
			if failed := end(before); failed != nil || errors.Is(err, io.EOF) {
				return failed
			}
			return err
		}
	}
}
