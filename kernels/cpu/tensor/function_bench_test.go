package tensor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// BenchmarkGaussians times log-likelihoods and training steps of circuits whose leaves are
// Gaussians: a RAT-SPN of the size that code is measured with, where leaves are most of the work, an HMM whose steps share their
// leaves, and an HCLT.
func BenchmarkGaussians(b *testing.B) {
	const rows = 512
	leaf := func(int) circuit.Leaf { return circuit.Gaussian{} }
	rat := structures.DefaultRATSPN()
	rat.Vars, rat.Latents, rat.Seed, rat.Leaf = 784, 46, 1, leaf
	for _, c := range []struct {
		name string
		make func() (*circuit.Graph, error)
	}{
		{"ratspn-46", func() (*circuit.Graph, error) { return structures.RATSPN(rat) }},
		{"hmm-64", func() (*circuit.Graph, error) {
			return structures.HMM(structures.HMMOptions{Length: 32, Latents: 64, Tied: true, Leaf: leaf})
		}},
		{"hclt-32", func() (*circuit.Graph, error) {
			tree, err := structures.GridTree(4, 4, 1)
			if err != nil {
				return nil, err
			}
			return structures.HCLT(tree, structures.HCLTOptions{Latents: 32, Leaf: leaf})
		}},
	} {
		g, err := c.make()
		if err != nil {
			b.Fatal(err)
		}
		batch := dataset.NewBatch(reference.Schema(g), rows)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, column := range batch.Columns {
			for r := range column.Values {
				column.Values[r] = float32(rng.NormFloat64())
			}
		}
		ctx, ll := context.Background(), make([]float64, rows)
		for _, threads := range []int{1, 2} {
			e := loadedEngine(b, g, threads, engine.Options{Rows: rows, Train: true})
			for _, call := range []struct {
				name string
				do   func() error
			}{
				{"loglik", func() error { return e.LogLikelihood(ctx, batch, ll) }},
				{"step", func() error {
					return e.Step(ctx, batch, 0, rows, tensor.Rule{Step: 0.1, Pseudocount: 0.1}, ll)
				}},
			} {
				b.Run(fmt.Sprintf("%s/threads=%d/%s", c.name, threads, call.name), func(b *testing.B) {
					for b.Loop() {
						if err := call.do(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/rows, "us/row")
				})
			}
		}
	}
}
