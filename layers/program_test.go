package layers_test

import (
	"testing"

	"github.com/pce-engine/pce/layers"
)

// TestTypicalUnits checks the median of sums, weighted by their edge blocks.
func TestTypicalUnits(t *testing.T) {
	program := func(sums ...[2]int32) *layers.Program { // units and edge blocks
		p := &layers.Program{}
		for i, s := range sums {
			p.Vectors = append(p.Vectors, layers.Vector{Units: s[0]})
			p.Sums = append(p.Sums, layers.Sum{Vector: int32(i), NumBlocks: s[1]})
		}
		return p
	}
	for _, tc := range []struct {
		sums [][2]int32
		want int
	}{
		{nil, 0},
		{[][2]int32{{64, 4}, {64, 4}, {1, 2}}, 64},
		{[][2]int32{{1, 2}, {32, 1}, {256, 64}}, 256},
		{[][2]int32{{8, 5}, {128, 5}}, 128},
		{[][2]int32{{8, 6}, {128, 5}}, 8},
	} {
		if got := program(tc.sums...).TypicalUnits(); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.sums, got, tc.want)
		}
	}
}
