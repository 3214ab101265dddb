package kerneltest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
)

// testFreeing wants an engine that does not own its device to give all memory back
// when it closes, with work in flight too, and other engines on the device to keep
// theirs.
func testFreeing(t *testing.T, open Open, _ Depth) {
	dev := open(t)
	defer dev.Close()
	usage, ok := dev.(kernels.Usage)
	if !ok {
		t.Fatalf("%T does not count its memory", dev)
	}
	empty := usage.InUse()
	stays := newTenant(t, dev, 11)
	want := stays.work(t)
	alone := usage.InUse()
	if alone <= empty {
		t.Fatalf("%d bytes in use with an engine, %d without", alone, empty)
	}
	for round := range 3 {
		goes := newTenant(t, dev, 12)
		if after := usage.InUse(); after <= alone {
			t.Errorf("%d bytes in use with two engines, %d with one", after, alone)
		}
		switch round {
		case 0: // fresh
		case 1:
			goes.work(t)
		case 2:
			goes.start(t)
		}
		for range 2 {
			if err := goes.Engine.Close(); err != nil {
				t.Fatal(err)
			}
			if after := usage.InUse(); after != alone {
				t.Errorf("round %d: %d bytes in use after Close, want %d", round, after, alone)
			}
		}
		ctx := context.Background()
		for what, err := range map[string]error{
			"Apply":        goes.Engine.Apply(ctx, tensor.Rule{Step: 1}),
			"ReadAverages": goes.Engine.ReadAverages(ctx, 0, make([]float32, 1)),
			"TopDown":      goes.Engine.TopDown(ctx, make([]float32, 1)),
		} {
			if after := usage.InUse(); !errors.Is(err, kernels.ErrDevice) || after != alone {
				t.Errorf("round %d: %s after Close: %v and %d bytes in use, want ErrDevice and %d", round, what, err, after, alone)
			}
		}
		if got := stays.work(t); !slices.Equal(got, want) {
			t.Errorf("round %d: the engine that stays computes %v, before %v", round, got, want)
		}
	}
	testFailingAlloc(t, dev, usage)
	if err := stays.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	if after := usage.InUse(); after != empty {
		t.Errorf("%d bytes in use in the end, %d at the start", after, empty)
	}
}

// tenant is a model with rows to work on. What it computes starts from the same
// parameters each time.
type tenant struct {
	*Model
	batch *dataset.Batch
}

func newTenant(t *testing.T, dev kernels.Device, seed uint64) *tenant {
	t.Helper()
	const rows = 9
	g := tenantGraph(seed)
	m := Build(t, dev, g, initial(t, g), compile.DefaultOptions(), engine.Options{Rows: rows, Train: true})
	return &tenant{m, reference.Batch(reference.Schema(g), reference.RandomRows(g, rand.New(rand.NewPCG(seed, 2)), rows, 0.2))}
}

func tenantGraph(seed uint64) *circuit.Graph {
	return reference.Random(rand.New(rand.NewPCG(seed, 1)), reference.RandomOptions{Vars: 3})
}

// work uses all that an engine allocates, and returns log-likelihoods before and after
// two updates.
func (n *tenant) work(t *testing.T) []float64 {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rows := n.batch.Rows
	must(n.Write(ctx))
	ll := make([]float64, 3*rows)
	must(n.Engine.Accumulate(ctx, n.batch, 0, rows, ll))
	must(n.Engine.Apply(ctx, tensor.Rule{Step: 0.5, Pseudocount: 0.1, Anemone: &tensor.Anemone{Momentum: 0.5, Rows: rows}}))
	must(n.Engine.Step(ctx, n.batch, 0, rows, tensor.Rule{Step: 0.5, Pseudocount: 0.1}, ll[rows:]))
	must(n.Engine.LogLikelihood(ctx, n.batch, ll[2*rows:]))
	return ll
}

// start leaves a step in flight and rows loaded.
func (n *tenant) start(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	p, err := n.Engine.LoadStep(ctx, n.batch, 0, n.batch.Rows, make([]float64, n.batch.Rows))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Step(ctx, tensor.Rule{Step: 1, Pseudocount: 0.1}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Engine.LoadStep(ctx, n.batch, 0, 1, make([]float64, 1)); err != nil {
		t.Fatal(err)
	}
}

// short is a device that has too little memory for one of its buffers.
type short struct {
	kernels.Device
	buffers int // that it has memory for
}

func (s *short) Alloc(ctx context.Context, t kernels.DType, n int) (kernels.Buffer, error) {
	if s.buffers--; s.buffers < 0 {
		return nil, kernels.ErrMemory
	}
	return s.Device.Alloc(ctx, t, n)
}

// testFailingAlloc wants an engine that could not be made to leave nothing behind.
func testFailingAlloc(t *testing.T, dev kernels.Device, usage kernels.Usage) {
	t.Helper()
	before := usage.InUse()
	r, err := compile.Compile(tenantGraph(13), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for buffers := 0; ; buffers++ {
		e, err := engine.New(t.Context(), &short{dev, buffers}, r.Program, engine.Options{Rows: 9, Train: true})
		if err == nil {
			if buffers < 4 { // parameters, codes, values, log-likelihoods
				t.Errorf("an engine was made with memory for %d buffers", buffers)
			}
			err = e.Close()
		} else if !errors.Is(err, kernels.ErrMemory) {
			t.Fatalf("memory for %d buffers: %v, want ErrMemory", buffers, err)
		}
		if after := usage.InUse(); after != before {
			t.Errorf("memory for %d buffers: %d bytes in use afterwards, %d before", buffers, after, before)
		}
		if err == nil {
			return
		}
	}
}
