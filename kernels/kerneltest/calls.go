package kerneltest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// testCalls wants calls that a program cannot do to be refused: rows that it has no
// room for, flows without training, anything after Free.
func testCalls(t *testing.T, open Open, _ Depth) {
	const rows = 5
	dev := open(t)
	ctx := t.Context()
	g := reference.Random(rand.New(rand.NewPCG(3, 4)), reference.RandomOptions{Vars: 3})
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	start, err := reference.Init(g, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	params, err := packed(g, start, r.Map, r.Program.NumParams)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, words ...string) {
		t.Helper()
		if !errors.Is(err, kernels.ErrDevice) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want ErrDevice in one line", what, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, which does not say %q", what, err, w)
			}
		}
	}
	for _, n := range []int{-1, 0, 1<<20 + 1} {
		_, err := dev.Load(ctx, layers.Module{Program: r.Program, Rows: n})
		refused("Load", err, "1048576")
	}
	for _, load := range []layers.Module{{}, {Train: true}, {Queries: true}} {
		load.Program, load.Rows = r.Program, rows
		p, err := kernels.LoadAs[tensor.Program](ctx, dev, load)
		if err != nil {
			t.Fatal(err)
		}
		calls := callsOf(t, dev, p, r.Program, params, rows)
		for _, c := range calls {
			if c.training && !load.Train || c.queries && !load.Queries {
				refused(c.name, c.call(ctx, 1), c.name, map[bool]string{true: "training", false: "queries"}[c.training])
				continue
			}
			for _, n := range []int{1, rows} {
				if err := errors.Join(calls[0].call(ctx, n), c.call(ctx, n)); err != nil {
					t.Errorf("%s of %d rows: %v", c.name, n, err)
				}
			}
			if c.name == "Update" {
				continue // of no rows
			}
			for _, n := range []int{-1, 0, rows + 1} {
				refused(c.name, c.call(ctx, n), c.name, "1..5")
			}
		}
		p.Free() // what was started may still be under way
		p.Free()
		for _, c := range calls {
			if (load.Train || !c.training) && (load.Queries || !c.queries) {
				refused(c.name, c.call(ctx, 1), c.name, "freed")
			}
		}
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// namedCall is a method of a program with arguments that fit it.
type namedCall struct {
	name              string
	training, queries bool // it wants a module that was loaded for these
	call              func(ctx context.Context, rows int) error
}

// callsOf returns all calls of a program. Each may follow the first one, Forward.
func callsOf(t *testing.T, dev kernels.Device, p tensor.Program, prog *layers.Program, params []float32, rows int) []namedCall {
	t.Helper()
	alloc := func(kind kernels.DType, n int64) kernels.Buffer {
		b, err := dev.Alloc(t.Context(), kind, int(n))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	cells := int64(len(prog.Columns) * rows)
	codes := kernels.Uint16
	if prog.WideCodes() {
		codes = kernels.Uint32
	}
	f := tensor.ForwardArgs{
		Params: alloc(kernels.Float32, prog.NumParams), Codes: alloc(codes, cells), Values: alloc(kernels.Float32, cells), LL: alloc(kernels.Float64, int64(rows)),
	}
	flows := alloc(kernels.Int64, prog.FlowLen())
	if err := dev.Write(t.Context(), f.Params, 0, params); err != nil {
		t.Fatal(err)
	}
	of := allColumns(prog)
	offsets, err := prog.PosteriorOffsets(of)
	if err != nil {
		t.Fatal(err)
	}
	out := alloc(kernels.Float32, int64(rows*offsets[len(of)]))
	return []namedCall{
		{"Forward", false, false, func(ctx context.Context, n int) error { return p.Forward(ctx, n, &f) }},
		{"Inspect", false, false, func(ctx context.Context, n int) error {
			return p.Inspect(ctx, n, &tensor.InspectArgs{
				Params: f.Params, Codes: f.Codes, Values: f.Values, Vector: int(prog.Root), Log: make([]float64, rows*int(prog.Vectors[prog.Root].Units)),
			})
		}},
		{"Sample", false, false, func(ctx context.Context, n int) error {
			return p.Sample(ctx, n, &tensor.SampleArgs{Params: f.Params, Codes: f.Codes, Values: f.Values, Units: make([]int32, rows*len(prog.Functions()))})
		}},
		{"Posteriors", false, true, func(ctx context.Context, n int) error {
			return p.Posteriors(ctx, n, &tensor.PosteriorsArgs{Params: f.Params, Codes: f.Codes, Values: f.Values, Of: of, Out: out})
		}},
		{"Maximise", false, true, func(ctx context.Context, n int) error {
			return p.Maximise(ctx, n, &tensor.MaximiseArgs{
				Params: f.Params, Codes: f.Codes, Values: f.Values, Modes: make([]float64, offsets[len(of)]), Log: make([]float64, rows), Units: make([]int32, rows*len(prog.Functions())),
			})
		}},
		{"Backward", true, false, func(ctx context.Context, n int) error {
			return p.Backward(ctx, n, &tensor.BackwardArgs{Params: f.Params, Codes: f.Codes, Values: f.Values, Flows: flows})
		}},
		{"Step", true, false, func(ctx context.Context, n int) error {
			return p.Step(ctx, n, &tensor.StepArgs{ForwardArgs: f, Flows: flows})
		}},
		{"Update", true, false, func(ctx context.Context, n int) error {
			return p.Update(ctx, &tensor.UpdateArgs{Params: f.Params, Flows: flows, Rule: tensor.Rule{Step: 0.5, Pseudocount: 0.1}})
		}},
	}
}
