package pce

import "testing"

// TestShares: shares are adjacent, cover all rows, and are neither too large nor, but for the last one, too small.
func TestShares(t *testing.T) {
	for _, rows := range []int{1, 511, 512, 513, 4096, 8192, 8193, 200_000, 200_001} {
		for _, threads := range []int{1, 2, 3, 16} {
			for _, least := range []int{scoreRows, 4096, scoreMost} {
				s := &shares{rows: rows, threads: threads, least: least}
				next := 0
				for {
					at, end := s.take()
					if at == end {
						break
					}
					if at != next || end-at > scoreMost || end-at < least && end != rows {
						t.Fatalf("%d rows, %d threads, least %d: share %d to %d after %d", rows, threads, least, at, end, next)
					}
					next = end
				}
				if next != rows {
					t.Fatalf("%d rows, %d threads, least %d: %d are shared out", rows, threads, least, next)
				}
			}
		}
	}
}
