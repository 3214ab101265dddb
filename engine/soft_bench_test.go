package engine_test

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
)

// BenchmarkSoft evaluates rows of values, by a program without and with rows of evidence, and rows
// whose every cell is one of a few sets or likelihoods.
func BenchmarkSoft(b *testing.B) {
	for _, size := range []struct{ side, categories, latents int }{{4, 2, 32}, {14, 256, 32}} {
		tree, err := structures.GridTree(size.side, size.side, 1)
		if err != nil {
			b.Fatal(err)
		}
		g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: size.latents, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: size.categories} }})
		if err != nil {
			b.Fatal(err)
		}
		const rows = 4096
		rng := rand.New(rand.NewPCG(1, 2))
		s := reference.Schema(g)
		hard, soft := dataset.NewBatch(s, rows), dataset.NewBatch(s, rows)
		for v := range hard.Columns {
			list := make([]*dataset.Evidence, 8)
			for i := range list {
				likelihoods := make([]float64, size.categories)
				for c := range likelihoods {
					likelihoods[c] = 0.1 + rng.Float64()
				}
				if list[i], err = s.Columns[v].LikelihoodEvidence(likelihoods); err != nil {
					b.Fatal(err)
				}
			}
			soft.Columns[v].Soft = dataset.SoftCells{Of: make([]uint32, rows), List: list}
			for r := range rows {
				hard.Columns[v].Codes.Set(r, rng.IntN(size.categories))
				soft.Columns[v].Soft.Of[r] = 1 + uint32(rng.IntN(len(list)))
			}
		}
		for _, bench := range []struct {
			name  string
			rooms int
			batch *dataset.Batch
		}{{"values", 0, hard}, {"values+room", 64, hard}, {"evidence", 64, soft}} {
			b.Run(fmt.Sprintf("vars=%d/%s", size.side*size.side, bench.name), func(b *testing.B) {
				m := buildSoft(b, g, bench.rooms, engine.Options{Rows: 512})
				ll := make([]float64, rows)
				for b.Loop() {
					if err := m.eng.LogLikelihood(context.Background(), bench.batch, ll); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
