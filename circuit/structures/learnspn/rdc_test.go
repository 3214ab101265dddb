package learnspn

import (
	"math"
	"math/rand/v2"
	"testing"
)

// kinds are five kinds of columns that are drawn apart from all others.
func kinds(rows int, rng *rand.Rand) []column {
	columns := []column{
		{values: make([]float32, rows)}, {values: make([]float32, rows)}, {categories: 400, codes: make([]int, rows)},
		{categories: 2, codes: make([]int, rows)}, {categories: 7, codes: make([]int, rows)},
	}
	for r := range rows {
		columns[0].values[r] = float32(rng.NormFloat64())
		columns[1].values[r] = float32(math.Exp(2 * rng.NormFloat64()))
		for p := rng.Float64(); p < 0.9; p = rng.Float64() { // geometric
			columns[2].codes[r] = min(columns[2].codes[r]+1, 399)
		}
		if rng.Float64() < 0.2 {
			columns[3].codes[r] = 1
		}
		columns[4].codes[r] = rng.IntN(7)
	}
	return columns
}

// TestIndependentColumnsPart draws five kinds of independent columns, a normal one, a
// log-normal one, counts, a bit and a category, with 100 seeds: at least 99 times, all must
// part at the default threshold, whatever the number of rows.
func TestIndependentColumnsPart(t *testing.T) {
	for _, rows := range []int{200, 1000} {
		parted := 0
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, 9))
			src, leaves := tableOf(t, kinds(rows, rng)...)
			all, err := readTable(t.Context(), src, leaves)
			if err != nil {
				t.Fatal(err)
			}
			if len(components(5, rdcTest(whole(all), rdcThreshold, rng))) == 5 {
				parted++
			}
		}
		if parted < 99 {
			t.Errorf("%d rows: independent columns part in %d of 100 seeds", rows, parted)
		}
	}
}
