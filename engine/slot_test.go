package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/tensor"
)

// watched is a CPU that says that it works while rows are copied, and counts copies.
type watched struct {
	kernels.Device
	async  bool
	writes int
}

func (w *watched) Info() kernels.Info {
	i := w.Device.Info()
	i.Async = w.async
	return i
}

func (w *watched) Write(ctx context.Context, b kernels.Buffer, offset int, src any) error {
	w.writes++
	return w.Device.Write(ctx, b, offset, src)
}

// slotModel is an engine on a watched device, five batches of rows, and what their
// log-likelihoods are one by one.
type slotModel struct {
	dev     *watched
	eng     *engine.Engine
	batches []*dataset.Batch
	want    [][]float64
}

func newSlotModel(t *testing.T, async bool) *slotModel {
	t.Helper()
	ctx := t.Context()
	g := reference.Random(rand.New(rand.NewPCG(7, 8)), reference.RandomOptions{Vars: 4})
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	d, err := cputensor.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := &slotModel{dev: &watched{Device: d, async: async}}
	if m.eng, err = engine.New(ctx, m.dev, r.Program, engine.Options{Rows: 8, Train: true, OwnsDevice: true}); err != nil {
		t.Fatal(err)
	}
	params := make([]float32, r.Program.NumParams)
	for i := range r.Map.Len() {
		id := r.Map.Node(i)
		offset, n := r.Map.Region(i)
		canonical := make([]float32, g.NumParams(id))
		if err := circuit.InitParams(g, id, 1, nil, canonical); err != nil {
			t.Fatal(err)
		}
		if err := r.Map.Pack(i, canonical, params[offset:offset+int64(n)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.eng.WriteParams(ctx, 0, params); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for range 5 {
		b := reference.Batch(reference.Schema(g), reference.RandomRows(g, rng, 8, 0.1))
		ll := make([]float64, 8)
		if err := m.eng.LogLikelihood(ctx, b, ll); err != nil {
			t.Fatal(err)
		}
		m.batches, m.want = append(m.batches, b), append(m.want, ll)
	}
	return m
}

// TestSlots loads, launches and waits for passes in orders that an engine's slots have
// to bear, and counts the copies of rows that each stage makes.
func TestSlots(t *testing.T) {
	const copies = 2 // codes and values
	type stage struct {
		do     string // load, launch or wait
		pass   int
		copies int
	}
	for _, tc := range []struct {
		name   string
		async  bool
		stages []stage
	}{
		{"ahead", true, []stage{
			{"load", 0, copies}, {"load", 1, copies}, {"load", 2, 0}, // both slots are taken
			{"launch", 0, 0}, {"launch", 1, 0}, {"wait", 0, 0},
			{"load", 3, copies}, // in the slot of 0
			{"launch", 3, 0},
			{"launch", 2, copies}, // waits for 1
			{"wait", 3, 0}, {"wait", 2, 0}, {"wait", 1, 0},
		}},
		{"dropped", true, []stage{ // 0 is never launched
			{"load", 0, copies}, {"load", 1, copies}, {"launch", 1, 0}, {"wait", 1, 0},
			{"load", 2, 0}, {"launch", 2, copies}, {"load", 3, copies}, {"launch", 3, 0}, {"load", 4, 0},
			{"wait", 2, 0}, {"wait", 3, 0}, {"launch", 4, copies}, {"wait", 4, 0},
		}},
		{"taken and loaded again", true, []stage{
			{"load", 0, copies}, {"load", 1, copies},
			{"load", 2, 0}, {"launch", 2, copies}, // takes the slot of 0
			{"launch", 0, copies}, {"launch", 1, copies}, // and these the next ones
			{"wait", 1, 0}, {"wait", 0, 0}, {"wait", 2, 0},
		}},
		{"one slot", false, []stage{
			{"load", 0, copies}, {"load", 1, 0}, {"launch", 0, 0}, {"launch", 1, copies}, {"wait", 1, 0}, {"wait", 0, 0},
			{"load", 2, copies}, {"launch", 2, 0}, {"wait", 2, 0},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newSlotModel(t, tc.async)
			defer m.eng.Close()
			ctx := t.Context()
			passes, got := make([]*engine.Pass, 5), make([][]float64, 5)
			for i, s := range tc.stages {
				m.dev.writes = 0
				var err error
				switch s.do {
				case "load":
					got[s.pass] = make([]float64, 8)
					passes[s.pass], err = m.eng.Load(ctx, m.batches[s.pass], 0, 8, got[s.pass])
				case "launch":
					err = passes[s.pass].Evaluate(ctx)
				case "wait":
					if err = passes[s.pass].Wait(ctx); !slices.Equal(got[s.pass], m.want[s.pass]) {
						t.Errorf("stage %d: pass %d has log-likelihoods %v, want %v", i, s.pass, got[s.pass], m.want[s.pass])
					}
				}
				if err != nil {
					t.Fatal(fmt.Errorf("stage %d, %+v: %w", i, s, err))
				}
				if m.dev.writes != s.copies {
					t.Errorf("stage %d, %s %d: %d copies, want %d", i, s.do, s.pass, m.dev.writes, s.copies)
				}
			}
		})
	}
}

// TestPassOrder wants stages out of order to be refused, and a pass to end once.
func TestPassOrder(t *testing.T) {
	for _, async := range []bool{false, true} {
		m := newSlotModel(t, async)
		ctx := t.Context()
		ll := make([]float64, 8)
		load := func() *engine.Pass {
			t.Helper()
			p, err := m.eng.LoadStep(ctx, m.batches[1], 0, 8, ll)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		p, late := load(), load()
		for _, p := range []*engine.Pass{p, late} {
			if err := p.Wait(ctx); !errors.Is(err, kernels.ErrDevice) {
				t.Errorf("Wait before the launch: %v, want ErrDevice", err)
			}
		}
		if err := p.Evaluate(ctx); err != nil {
			t.Fatal(err)
		}
		again := func() {
			t.Helper()
			for _, err := range []error{p.Evaluate(ctx), p.Accumulate(ctx), p.Step(ctx, tensor.Rule{Step: 1})} {
				if !errors.Is(err, kernels.ErrDevice) {
					t.Errorf("launched again: %v, want ErrDevice", err)
				}
			}
		}
		again()
		for range 2 {
			if err := p.Wait(ctx); err != nil || !slices.Equal(ll, m.want[1]) {
				t.Errorf("log-likelihoods %v, want %v (%v)", ll, m.want[1], err)
			}
		}
		again()
		// Close while a pass is under way and another is loaded.
		loaded := load()
		if err := late.Evaluate(ctx); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := m.eng.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := late.Wait(ctx); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("Wait after Close: %v, want ErrDevice", err)
		}
		if err := loaded.Evaluate(ctx); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("a launch after Close: %v, want ErrDevice", err)
		}
		for what, err := range map[string]error{
			"LogLikelihood": m.eng.LogLikelihood(ctx, m.batches[0], ll),
			"Sample":        m.eng.Sample(ctx, m.batches[0], 1, 0),
			"Apply":         m.eng.Apply(ctx, tensor.Rule{Step: 1}),
			"ReadParams":    m.eng.ReadParams(ctx, 0, make([]float32, 1)),
		} {
			if !errors.Is(err, kernels.ErrDevice) {
				t.Errorf("%s after Close: %v, want ErrDevice", what, err)
			}
		}
	}
}
