package ir

import (
	"fmt"
	"strings"

	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/kernels/nest"
)

// EmitCard makes a module for cards of a function of the LIR. A row is a thread, and a launch has all rows of a call,
// whatever the loops over tiles of rows: these say how large a block is, where the rows of a tile are its threads, and
// whether its rows are copied to shared memory. Loops over trees around a kernel are launches one after the other, so
// each row adds its trees in the order of the loops. Trees of a tile that is cached lie in shared memory, if the tile has
// all of them. What the schedule says of trees on several threads is an error.
func EmitCard(f *Func) (*nest.Module, error) {
	if err := onCard(f.Nest.Loops, nil, len(f.Ensemble.Trees)); err != nil {
		return nil, err
	}
	return emit(f, true)
}

// onCard refuses what kernels for cards do not do yet, below a loop over tiles of rows.
func onCard(list []*schedule.Loop, tile *schedule.Loop, trees int) error {
	for _, l := range list {
		why := ""
		rows := l.Dim == schedule.Batch
		block := blockOf(tile, l)
		switch {
		case !rows && (l.Dimension != "" || l.Parallel):
			why = "the trees of a row are walked by one thread; put rows over the grid and the threads of blocks"
		case l.Cache && !rows && l.Step < trees:
			return fmt.Errorf("%w: for a card: cache of %s: tiles of %d of %d trees, and shared memory has all or none; make the tile larger", ErrLower, l.Name, l.Step, trees)
		case rows && (l.Skip > 0 || l.Most > 0):
			return fmt.Errorf("%w: for a card: split of %s: a launch has all rows of a call; tile them", ErrLower, l.Name)
		case rows && l.Interleave > 0:
			why = "each row has a thread of its own; interleave a loop over trees"
		case rows && l.Unroll:
			why = "each row has a thread of its own; unroll a loop over trees"
		case block != 0 && (block < 32 || block > 512 || block&(block-1) != 0):
			return fmt.Errorf("%w: for a card: blocks of %d threads, the rows of a tile of %s; want 32, 64, 128, 256 or 512", ErrLower, block, tile.Name)
		}
		if why != "" {
			return fmt.Errorf("%w: for a card: %s of %s: %s", ErrLower, l.Marks()[0], l.Name, why)
		}
		in := tile
		if rows {
			in = l
		}
		if err := onCard(l.Body, in, trees); err != nil {
			return err
		}
	}
	return nil
}

// blockOf returns how many threads a block has: the rows of a tile that is a block, if the loop over them is over its
// threads; 0 where the schedule does not say.
func blockOf(tile, rows *schedule.Loop) int {
	if tile == nil || rows.Dim != schedule.Batch || !strings.HasPrefix(rows.Dimension, "block") {
		return 0
	}
	return tile.Step
}

// caches reports whether operations bring trees near.
func caches(list []*Op) bool {
	for _, o := range list {
		if o.Kind == CacheTrees || caches(o.Body) {
			return true
		}
	}
	return false
}
