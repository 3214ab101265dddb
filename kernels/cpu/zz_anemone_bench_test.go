package cpu_test

import (
	"context"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"math/rand/v2"
)

func BenchmarkZZ(b *testing.B) {
	tree, _ := structures.GridTree(28, 28, 1)
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 32, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 256} }})
	if err != nil {
		b.Fatal(err)
	}
	r, _ := compile.Compile(g, compile.DefaultOptions())
	d, _ := cpu.Open(cpu.Options{Threads: 2})
	ctx := context.Background()
	e, err := engine.New(ctx, d, r.Program, engine.Options{Rows: 512, Train: true})
	if err != nil {
		b.Fatal(err)
	}
	p := make([]float32, r.Program.NumParams)
	for i := range p {
		p[i] = 1.0 / 32
	}
	for i := range r.Program.Inputs {
		in := &r.Program.Inputs[i]
		for k := range 256 * 32 {
			p[in.Table+int64(k)] = 1.0 / 256
		}
		for k := 256 * 32; k < 257*32; k++ {
			p[in.Table+int64(k)] = 1
		}
	}
	e.WriteParams(ctx, 0, p)
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(1, 2)), 512, 0)
	batch := reference.Batch(reference.Schema(g), rows)
	ll := make([]float64, 512)
	b.Run("step", func(b *testing.B) {
		for b.Loop() {
			e.Step(ctx, batch, 0, 512, kernels.Rule{Step: 0.1, Pseudocount: 0.1}, ll)
		}
	})
	b.Run("accumulate", func(b *testing.B) {
		for b.Loop() {
			e.Accumulate(ctx, batch, 0, 512, ll)
		}
	})
	b.Run("apply", func(b *testing.B) {
		for b.Loop() {
			e.Apply(ctx, kernels.Rule{Step: 0.1, Pseudocount: 0.1})
		}
	})
	v := make([]float32, r.Program.VisitLen())
	b.Run("topdown", func(b *testing.B) {
		for b.Loop() {
			e.TopDown(ctx, v)
		}
	})
	b.Run("anemone", func(b *testing.B) {
		for b.Loop() {
			if err := e.Apply(ctx, kernels.Rule{Step: 0.1, Pseudocount: 1e-6, Anemone: &kernels.Anemone{Momentum: 0.9, Weight: 0.9, Rows: 512}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
