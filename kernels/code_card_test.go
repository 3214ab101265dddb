package kernels_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx"
)

// sumThreads is the threads of a block of the kernel.
const sumThreads = 128

// sumText is a module of one kernel, out[r] = x[r] + y[r] for the rows that the control
// word says.
func sumText() []byte {
	b := ptx.NewKernel("sum", sumThreads, 1)
	row := b.Mad(b.Special("%ctaid.x"), sumThreads, b.Special("%tid.x"))
	control, x, y, out := b.Pointer("control"), b.Pointer("x"), b.Pointer("y"), b.Pointer("out")
	b.ReturnIf(b.Ge(row, b.Load(ptx.U32, control, 0)))
	b.Store(ptx.F32, b.At(out, row, 4), 0, b.Add(b.Load(ptx.F32, b.At(x, row, 4), 0), b.Load(ptx.F32, b.At(y, row, 4), 0)))
	m := ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: []*ptx.Kernel{b.Kernel()}}
	return m.Text()
}

// cardSum is the program on a card: its code, the control word, and the work for each
// set of columns that it was run on.
type cardSum struct {
	sumModule
	dev     *cuda.Device // nil once it is freed
	code    *cuda.Code
	control cuda.Span
	works   map[[3]cuda.Ptr]*cuda.Work
}

func loadCardSum(_ context.Context, d *cuda.Device, m kernels.Module) (kernels.Program, error) {
	p := &cardSum{sumModule: m.(sumModule), dev: d, works: map[[3]cuda.Ptr]*cuda.Work{}}
	err := d.Do(func(t *cuda.Thread) (err error) {
		if p.code, err = t.Load(sumText()); err != nil {
			return err
		}
		p.control, err = t.Alloc(4)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Free ignores what the driver says: a card that is lost says it at the next call.
func (p *cardSum) Free() {
	if p.dev == nil {
		return
	}
	_ = p.dev.Do(func(t *cuda.Thread) error {
		errs := []error{t.Settle()}
		for _, w := range p.works {
			errs = append(errs, t.Drop(w))
		}
		return errors.Join(append(errs, t.Unload(p.code), t.Free(p.control))...)
	})
	p.dev = nil
}

func (p *cardSum) Run(_ context.Context, rows int, in, out []kernels.Buffer) error {
	if p.dev == nil {
		return errFreed
	}
	if err := p.columns(rows, in, out); err != nil {
		return err
	}
	var columns []*cuda.Buffer
	var at [3]cuda.Ptr
	for i, b := range append(in[:2:2], out...) {
		own, err := p.dev.Own(b)
		if err != nil {
			return err
		}
		columns, at[i] = append(columns, own), own.At()
	}
	return p.dev.Do(func(t *cuda.Thread) error {
		w, err := p.work(t, at)
		if err != nil {
			return err
		}
		if err := t.Ready(w); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(w.Control, uint32(rows))
		_, err = t.Start(w, columns, nil)
		return err
	})
}

// work returns the work on some columns, recorded for the most rows.
func (p *cardSum) work(t *cuda.Thread, at [3]cuda.Ptr) (*cuda.Work, error) {
	if w, ok := p.works[at]; ok {
		return w, nil
	}
	f, err := t.Function(p.code, "sum", sumThreads, 0)
	if err != nil {
		return nil, err
	}
	w, err := t.Record(p.control, cuda.Span{}, func() error {
		return t.Launch(cuda.Launch{
			Function: f, Grid: [3]int{(p.rows + sumThreads - 1) / sumThreads, 1, 1}, Block: sumThreads,
			Args: []uint64{uint64(p.control.At), uint64(at[0]), uint64(at[1]), uint64(at[2])},
		})
	})
	if err == nil {
		p.works[at] = w
	}
	return w, err
}

// TestSecondKindOnEmulator loads and runs a kind of program that is no circuit's, with
// a kernel of its own, whenever the card does its work.
func TestSecondKindOnEmulator(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			testSecondKind(t, func(t *testing.T) kernels.Device {
				d, err := cuda.Open("emulator", func() (cuda.Driver, error) {
					return emulator.New(emulator.Options{Seed: seed, Strict: true}), nil
				}, cuda.Loaders{sumKind: loadCardSum})
				if err != nil {
					t.Fatal(err)
				}
				return d
			})
		})
	}
}
