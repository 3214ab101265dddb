package run

import (
	"testing"
)

// TestLatents wants the defaults on both sides of each threshold.
func TestLatents(t *testing.T) {
	for rows, want := range map[int]int{1: 8, 1600: 8, 2047: 8, 2048: 16, 8191: 16, 8192: 32, 17_412: 32, 32_767: 32, 32_768: 64, 60_000: 64, 1 << 30: 64} {
		if got := latentsFor(rows); got != want {
			t.Errorf("%d rows get %d units, want %d", rows, got, want)
		}
	}
}
