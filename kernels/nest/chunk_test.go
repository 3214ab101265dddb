package nest

import "testing"

// TestDeviceChunk wants as many rows as have 2^25 cells, at most 2^18 and at least one, at both sides of where they halve.
func TestDeviceChunk(t *testing.T) {
	for _, c := range []struct {
		m    Module
		want int
	}{
		{Module{Features: 1, Outputs: 1}, 1 << 18},
		{Module{Features: 127, Outputs: 1, Trees: 5000}, 1 << 18},
		{Module{Features: 128, Outputs: 1}, 1 << 17},
		{Module{Features: 128, Outputs: 1, Trees: 127, Kept: true}, 1 << 17},
		{Module{Features: 128, Outputs: 1, Trees: 128, Kept: true}, 1 << 16},
		{Module{Features: 1<<25 - 1, Outputs: 1}, 1},
		{Module{Features: 1 << 30, Outputs: 1}, 1},
	} {
		if got := deviceChunk(&c.m); got != c.want {
			t.Errorf("%d features, %d trees, kept %v: %d rows at a time, want %d", c.m.Features, c.m.Trees, c.m.Kept, got, c.want)
		}
	}
}
