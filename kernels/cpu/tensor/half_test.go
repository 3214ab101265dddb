package tensor

import "testing"

// TestTogether takes exponents together that are at most 16 apart, and leaves those
// of 100 and more out.
func TestTogether(t *testing.T) {
	for _, tc := range []struct {
		top  []int32
		want int32
	}{
		{[]int32{0, 16}, 16},
		{[]int32{0, 0, 17}, 16}, // two of three: 0 is at the low end of what 16 takes
		{[]int32{0, 17, 17}, 32 + 1},
		{[]int32{-5, 40, 50, 56}, 56},
		{[]int32{99, -99, -99}, -99 + 16},
		{[]int32{100, 100, 0}, 16},
		{[]int32{-100, -100, 0}, 16},
	} {
		if got := together(tc.top); got != tc.want {
			t.Errorf("%v: up to %d, want %d", tc.top, got, tc.want)
		}
	}
}
