package structures

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestPDEdgeBlocks draws the edge blocks of a last sum on both sides of the bound on
// all of them.
func TestPDEdgeBlocks(t *testing.T) {
	const most = 1 << 26
	o := PDOptions{Latents: 2 * pdBlock, MaxProductBlocks: 1}
	const each = 2 * 2 * 2 // two blocks of rows, which take two products of two blocks each
	for before, want := range map[int]error{0: nil, most - each: nil, most - each + 1: ErrOptions} {
		e, err := o.edges(&builder{blocks: before}, 4, rand.New(rand.NewPCG(1, 2)))
		if !errors.Is(err, want) {
			t.Errorf("%d blocks before: %v, want %v", before, err, want)
		}
		if err == nil && len(e.Pairs) != each {
			t.Errorf("%d blocks before: %d more, want %d", before, len(e.Pairs), each)
		}
	}
}
