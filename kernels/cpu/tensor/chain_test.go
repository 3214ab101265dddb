package tensor

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// TestChain wants of every set that has one the bits of layers.Links.Walk, and the
// floats between and behind the units left alone.
func TestChain(t *testing.T) {
	for _, set := range micro.All() {
		if set.Chain == nil {
			continue
		}
		t.Run(set.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for _, trials := range []int{1, 63, 255, 5000} {
				for _, width := range []int{0, 8, 16, 32, 40, 72, 96} {
					params := make([]float32, width)
					for u := range params {
						params[u] = rng.Float32()
						if u%7 < 4 {
							params[u] = []float32{0, 1, 1e-45, 1 - 0x1p-24}[u%7]
						}
					}
					f := circuit.Binomial{Trials: trials}
					row := width + 5
					fill := func() []float32 { return slices.Repeat([]float32{-7}, (trials+1)*row+1) }
					table, exps, wantTable, wantExps := fill(), fill(), fill(), fill()
					layers.NewLinks(f, params).Walk(wantTable, wantExps, row)
					l := layers.NewLinks(f, params)
					at := func(s []float64) *float64 {
						if len(s) == 0 {
							return nil
						}
						return &s[0]
					}
					set.Chain(&micro.ChainArgs{
						Rows: trials + 1, Width: width, T: &table[0], Exps: &exps[0], Row: row,
						M: at(l.M), E: at(l.E), Odds: at(l.Odds), Factors: &l.Factors[0],
					})
					for i := range table {
						if math.Float32bits(table[i]) != math.Float32bits(wantTable[i]) || exps[i] != wantExps[i] {
							t.Fatalf("%d trials, %d units: float %d is %v·2^%v, want %v·2^%v", trials, width, i, table[i], exps[i], wantTable[i], wantExps[i])
						}
					}
				}
			}
		})
	}
}
