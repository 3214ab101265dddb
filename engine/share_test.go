package engine

import "testing"

// TestLeastShare: shares are groups of rows that take long enough together, and have 512 rows at most.
func TestLeastShare(t *testing.T) {
	for n, want := range map[int]int{0: 512, 1: 64, 64: 64, 65: 128, 448: 448, 449: 512, 512: 512, 513: 512, 1 << 30: 512} {
		if got := leastShare(n); got != want {
			t.Errorf("%d rows take long enough: shares of %d, want %d", n, got, want)
		}
	}
}
