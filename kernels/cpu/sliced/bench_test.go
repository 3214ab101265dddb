package sliced

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkMux measures the tops of 100 trees, in bytes of masks that are read: with
// few masks they are in the nearest cache, with 4,790, those of the shared forest higgs,
// they are not.
func BenchmarkMux(b *testing.B) {
	for _, l := range All() {
		for _, count := range []int{64, 4790} {
			b.Run(fmt.Sprintf("%s/masks=%d", l.Name, count), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				masks := make([]rowSet, count)
				random(rng, masks)
				offsets := make([]uint32, 100*255)
				for i := range offsets {
					offsets[i] = uint32(setBytes * rng.IntN(count))
				}
				var planes [planeSets]rowSet
				b.SetBytes(100 * 255 * setBytes)
				for b.Loop() {
					for t := range 100 {
						l.mux[8](&masks[0], &offsets[255*t], &planes[0], 2)
					}
				}
			})
		}
	}
}

// BenchmarkWalk measures steps of 4,096 rows in complete trees of some depths.
func BenchmarkWalk(b *testing.B) {
	for _, l := range All() {
		for _, depth := range []int{6, 12, 16} {
			b.Run(fmt.Sprintf("%s/depth=%d", l.Name, depth), func(b *testing.B) {
				const columns, rows = 30, deepMost * blockRows
				rng := rand.New(rand.NewPCG(1, 2))
				nodes := make([]uint64, 2<<depth)
				for i := range nodes[:1<<depth-1] {
					nodes[i] = uint64(rng.IntN(256))<<32 | uint64(i+1)<<16 | uint64(2+2*rng.IntN(columns-1))
				}
				groups, index, starts := make([]uint16, columns*rows), make([]byte, rows), make([]uint32, maxLeaves)
				for i := range groups {
					if i/groupRows%columns > 0 {
						groups[i] = uint16(rng.IntN(256))
					}
				}
				ends, sums := make([]uint32, rows), make([]float32, rows)
				for b.Loop() {
					l.walk(&nodes[0], &starts[0], &index[0], &groups[0], 2*groupRows*columns, rows, &ends[0], &sums[0])
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/rows/float64(depth), "ns/step")
			})
		}
	}
}
