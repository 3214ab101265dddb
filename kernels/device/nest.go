package device

import (
	"context"
	"errors"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
)

// CardOptions says how a kernel of a module becomes one for a card, for any architecture.
func CardOptions(m *nest.Module, k *nest.Kernel) scalar.Options {
	o := scalar.Options{Threads: k.Block, Shared: k.Shared}
	if k.Staged {
		o.Staging = scalar.Always
	}
	if k.Pages > 0 {
		o.Pages = &scalar.Pages{Count: k.Pages, First: 2, Step: k.Page}
	}
	if k.Share > 0 {
		o.Threads = max(k.Block, 1) * k.Share
		o.Share = &scalar.Share{Sums: 1, Thread: len(k.Code.Inputs) - 1, Threads: k.Share}
	}
	if k.Spread > 0 {
		o.Spread = &scalar.Spread{Sums: 1, First: 2, End: 3, Step: k.Spread, Total: m.Trees}
	}
	return o
}

// OpenNest opens the device, a card or what is driven as one, and loads a module of loops and kernels there, with
// blocks and shared memory as its kernels say. close gives the program and the device back.
func (p Place) OpenNest(ctx context.Context, m *nest.Module, o Options) (_ *nest.Program, close func() error, err error) {
	dev, err := p.Open(o)
	if err != nil {
		return nil, nil, err
	}
	program, err := LoadNest(ctx, dev, m)
	if err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return program, func() error {
		program.Free()
		return dev.Close()
	}, nil
}

// LoadNest loads a module of loops and kernels on a device that is open, as OpenNest does.
func LoadNest(ctx context.Context, dev kernels.Device, m *nest.Module) (*nest.Program, error) {
	return nest.NewOn(ctx, dev, m, func(k *nest.Kernel) kernels.Module {
		return scalar.Chosen{Module: k.Code, Options: CardOptions(m, k)}
	})
}
