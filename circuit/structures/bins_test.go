package structures

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

func TestBins(t *testing.T) {
	nan := float32(math.NaN())
	inf := float32(math.Inf(1))
	const gone = dataset.Missing
	src := &table{}
	src.addCodes(2, nil, []int{1, 0, gone, 1, 1, 0, 1, 0})                                 // fits
	src.addCodes(8, nil, []int{0, 1, 2, 3, 4, 5, 6, 7})                                    // two codes a bin
	src.addCodes(10, nil, []int{9, 0, 2, 3, 5, 7, gone, 8})                                // 2.5 codes a bin
	src.addCodes(6, []string{"", "", "", "", "", ""}, []int{5, 5, 5, 0, 3, 3, 1, 2})       // 5, 3, 0, the rest
	src.addCodes(3, []string{"", "", ""}, []int{2, 1, 0, gone, 2, 1, 0, 2})                // labels that fit
	src.addValues([]float32{5, 1e9, 2, -inf, 3, 8, inf, 7})                                // two rows a bin
	src.addValues([]float32{0, 0, 0, 0, 0, 9, 8, 7})                                       // four values: categories
	src.addValues([]float32{0, 0, 0, 0, 6, 9, 8, 7})                                       // ties stay together
	src.addValues([]float32{nan, nan, 1, 5, nan, 5, 2, float32(math.Copysign(0, -1)) + 1}) // categories beside NaN
	src.addValues([]float32{nan, nan, nan, nan, nan, nan, nan, nan})
	src.addCodes(6, []string{"", "", "", "", "", ""}, []int{5, 5, 5, 0, 3, 3, gone, 2}) // likewise, beside a missing one
	opts := DefaultChowLiu()
	opts.Bins = 4
	got, err := sampleBinned(t.Context(), src, opts)
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range []struct {
		bin    []uint8
		count  []int
		smooth bool
	}{
		{[]uint8{1, 0, 2, 1, 1, 0, 1, 0}, []int{3, 4, 1}, false},
		{[]uint8{0, 0, 1, 1, 2, 2, 3, 3}, []int{2, 2, 2, 2, 0}, true},
		{[]uint8{3, 0, 0, 1, 2, 2, 4, 3}, []int{2, 1, 2, 2, 1}, true},
		{[]uint8{0, 0, 0, 2, 1, 1, 3, 3}, []int{3, 2, 1, 2, 0}, false},
		{[]uint8{2, 1, 0, 3, 2, 1, 0, 2}, []int{2, 2, 3, 1}, false},
		{[]uint8{1, 3, 0, 0, 1, 2, 3, 2}, []int{2, 2, 2, 2, 0}, true},
		{[]uint8{0, 0, 0, 0, 0, 3, 2, 1}, []int{5, 1, 1, 1, 0}, false},
		{[]uint8{0, 0, 0, 0, 2, 3, 3, 2}, []int{4, 0, 2, 2, 0}, true},
		{[]uint8{4, 4, 0, 2, 4, 2, 1, 0}, []int{2, 1, 2, 0, 3}, false},
		{[]uint8{4, 4, 4, 4, 4, 4, 4, 4}, []int{0, 0, 0, 0, 8}, false},
		{[]uint8{0, 0, 0, 2, 1, 1, 4, 3}, []int{3, 2, 1, 1, 1}, false},
	} {
		if !slices.Equal(got[v].bin, want.bin) || !slices.Equal(got[v].count, want.count) || got[v].smooth != want.smooth {
			t.Errorf("column %d: bins %v, counts %v, smooth %v; want %+v", v, got[v].bin, got[v].count, got[v].smooth, want)
		}
	}
}

// TestBinsOfNumbersFarFromZero wants whole numbers to tell of each other what they tell when they are near 0: years lie in few of
// the bins of equal width from 0 on, as do numbers beside a far one. Levels of images keep these.
func TestBinsOfNumbersFarFromZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	const rows, years = 500, 60
	near, far, beside := make([]int, rows), make([]int, rows), make([]int, rows)
	for r := range rows {
		near[r] = rng.IntN(years)
		far[r], beside[r] = 1990+near[r], near[r]
	}
	near[0], near[1], beside[2] = 0, years-1, 4000
	far[0], far[1] = 1990, 1990+years-1
	src := &table{}
	src.addCodes(years, nil, near)
	src.addCodes(1990+years, nil, far)
	src.addCodes(4001, nil, beside)
	for _, image := range []bool{false, true} {
		if image {
			src.schema.Image = [3]int{1, 3, 1}
		}
		for _, bins := range []int{32, 4} {
			o := DefaultChowLiu()
			o.Bins = bins
			vars, err := sampleBinned(t.Context(), src, o)
			if err != nil {
				t.Fatal(err)
			}
			for v := range vars {
				used := 0
				for _, n := range vars[v].count[:vars[v].missing()] {
					used += min(n, 1)
				}
				if few := image && v > 0; few != (used < bins*3/4) {
					t.Errorf("image %v, column %d: %d of %d bins have rows", image, v, used, bins)
				}
			}
		}
	}
}
