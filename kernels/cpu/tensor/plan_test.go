package tensor

import (
	"slices"
	"testing"
)

// TestCut cuts blocks that follow each other but for gaps, on both sides of the bound on
// a run.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		n, size int
		gaps    []int // blocks that do not continue what is before them
		want    []span
	}{
		{0, 4, nil, []span{{0, 0}}},
		{1, 4, nil, []span{{0, 1}}},
		{3, 4, nil, []span{{0, 3}}},
		{3, 4, []int{1, 2}, []span{{0, 1}, {1, 2}, {2, 3}}},
		{4, 4, []int{3}, []span{{0, 3}, {3, 4}}},
		{maxRun / 32, 32, nil, []span{{0, 16}}},
		{maxRun/32 + 1, 32, nil, []span{{0, 16}, {16, 17}}},
		{40, 32, []int{10}, []span{{0, 10}, {10, 26}, {26, 40}}},
		{2, 2 * maxRun, nil, []span{{0, 1}, {1, 2}}},
	} {
		if got := cut(c.n, c.size, func(k int) bool { return !slices.Contains(c.gaps, k) }); !slices.Equal(got, c.want) {
			t.Errorf("%d blocks of %d with gaps at %v: %v, want %v", c.n, c.size, c.gaps, got, c.want)
		}
	}
	for _, c := range []struct{ ids, want []int32 }{{nil, nil}, {[]int32{0}, nil}, {[]int32{3, 1}, []int32{3, 1}}, {[]int32{3, 0, 4}, []int32{3}}} {
		if got := present(c.ids); !slices.Equal(got, c.want) {
			t.Errorf("of %v %v are there, want %v", c.ids, got, c.want)
		}
	}
}
