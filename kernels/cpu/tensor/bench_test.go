package tensor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cpu"
	cputensor "github.com/pce-engine/pce/kernels/cpu/tensor"
	"github.com/pce-engine/pce/kernels/tensor"
)

// BenchmarkStep times whole training steps of an HCLT over a 28×28 grid, with
// uniform rows of 256 categories.
func BenchmarkStep(b *testing.B) {
	const rows = 512
	tree, err := structures.GridTree(28, 28, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range []int{32, 64, 128, 256} {
		for _, threads := range []int{1, 2} {
			for _, mixed := range []bool{false, true} {
				b.Run(fmt.Sprintf("m=%d/threads=%d/mixed=%v", m, threads, mixed), func(b *testing.B) {
					benchmarkStep(b, tree, m, threads, rows, mixed)
				})
			}
		}
	}
}

func benchmarkStep(b *testing.B, tree structures.Tree, m, threads, rows int, mixed bool) {
	e, g := benchmarkEngine(b, tree, m, threads, engine.Options{Rows: rows, Train: true, Mixed: mixed})
	batch := dataset.NewBatch(reference.Schema(g), rows)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range batch.Columns {
		for r := range c.Codes.Len() {
			c.Codes.Set(r, rng.IntN(256))
		}
	}
	ll := make([]float64, rows)
	edges := circuit.Count(g).Edges()
	step := func() {
		if err := e.Step(context.Background(), batch, 0, rows, tensor.Rule{Step: 0.1, Pseudocount: 0.1}, ll); err != nil {
			b.Fatal(err)
		}
	}
	step()
	for b.Loop() {
		step()
	}
	b.ReportMetric(6*float64(edges)*float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e9, "gflops")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(rows)*1000, "s/1k")
}

// BenchmarkSample times samples of an HCLT over a 28×28 grid of 256 categories,
// without evidence and given the upper half.
func BenchmarkSample(b *testing.B) {
	const rows = 512
	tree, err := structures.GridTree(28, 28, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, threads := range []int{1, 2} {
		for _, given := range []int{0, 28 * 14} {
			b.Run(fmt.Sprintf("m=64/threads=%d/given=%d", threads, given), func(b *testing.B) {
				e, g := benchmarkEngine(b, tree, 64, threads, engine.Options{Rows: rows})
				batch := dataset.NewBatch(reference.Schema(g), rows)
				rng := rand.New(rand.NewPCG(1, 2))
				sample := func() {
					for v, c := range batch.Columns {
						for r := range c.Codes.Len() {
							c.Codes.Set(r, dataset.Missing)
							if v < given {
								c.Codes.Set(r, rng.IntN(256))
							}
						}
					}
					if err := e.Sample(context.Background(), batch, 1, 0); err != nil {
						b.Fatal(err)
					}
				}
				sample()
				for b.Loop() {
					sample()
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/rows, "ms/row")
			})
		}
	}
}

// benchmarkEngine makes an HCLT over a tree and loads it.
func benchmarkEngine(b *testing.B, tree structures.Tree, m, threads int, o engine.Options) (*engine.Engine, *circuit.Graph) {
	b.Helper()
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: m, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 256} }})
	if err != nil {
		b.Fatal(err)
	}
	return loadedEngine(b, g, threads, o), g
}

// loadedEngine compiles a circuit and loads it with random parameters.
func loadedEngine(b *testing.B, g *circuit.Graph, threads int, o engine.Options) *engine.Engine {
	b.Helper()
	ctx := context.Background()
	res, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	dev, err := cputensor.Open(cpu.Options{Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(ctx, dev, res.Program, o)
	if err != nil {
		b.Fatal(err)
	}
	for i := range res.Map.Len() {
		off, n := res.Map.Region(i)
		id := res.Map.Node(i)
		canonical, region := make([]float32, g.NumParams(id)), make([]float32, n)
		if err := circuit.InitParams(g, id, 1, nil, canonical); err != nil {
			b.Fatal(err)
		}
		if err := res.Map.Pack(i, canonical, region); err != nil {
			b.Fatal(err)
		}
		if err := e.WriteParams(ctx, off, region); err != nil {
			b.Fatal(err)
		}
	}
	return e
}
