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
