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
// all of them. A tile of trees on the grid has threads of its own, whose sums are added atomically. What the schedule says of
// trees on threads of a block is an error.
func EmitCard(f *Func) (*nest.Module, error) {
	if err := onCard(f, f.Nest.Loops, nil, nil); err != nil {
		return nil, err
	}
	return emit(f, true)
}

// onCard refuses what kernels for cards do not do yet, below a loop over tiles of rows and one over trees, nil where there
// is none.
func onCard(f *Func, list []*schedule.Loop, tile, trees *schedule.Loop) error {
	for _, l := range list {
		if why := offCard(f, l, tile, trees); why != "" {
			return fmt.Errorf("%w: for a card: %s: %s", ErrLower, l.Name, why)
		}
		var err error
		if l.Dim == schedule.Batch {
			err = onCard(f, l.Body, l, trees)
		} else {
			err = onCard(f, l.Body, tile, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// offCard says why a loop is refused, "" if it is not.
func offCard(f *Func, l, tile, trees *schedule.Loop) string {
	if l.Dim == schedule.Tree {
		all := len(f.Ensemble.Trees)
		switch {
		case l.Cache && l.Step < all:
			return fmt.Sprintf("cache of tiles of %d of %d trees: shared memory has all or none; make the tile larger", l.Step, all)
		case l.Shared || (l.Atomic || l.Dimension != "" || l.Parallel) && !strings.HasPrefix(l.Dimension, "grid"):
			return "the trees of a row are on threads of a block; they can be on the grid alone, with atomicReduce"
		case l.Atomic && (trees != nil || l.Skip > 0 || l.Most > 0 || f.Nest.SortTrees):
			return "atomicReduce wants all trees in the order of the model; leave out sortTrees, split, and the loop over trees around it"
		case l.Atomic && !overRows(l.Body):
			return "atomicReduce within a row's thread; reorder the loop over single rows into it"
		}
		return ""
	}
	block := blockOf(tile, l)
	switch {
	case l.Skip > 0 || l.Most > 0:
		return "split of rows: a launch has all rows of a call; tile them"
	case l.Interleave > 0:
		return "each row has a thread of its own; interleave a loop over trees"
	case l.Unroll:
		return "each row has a thread of its own; unroll a loop over trees"
	case block != 0 && (block < 32 || block > 512 || block&(block-1) != 0):
		return fmt.Sprintf("blocks of %d threads, the rows of a tile of %s; want 32, 64, 128, 256 or 512", block, tile.Name)
	}
	return ""
}

// overRows reports whether a loop over single rows is among some or within them.
func overRows(list []*schedule.Loop) bool {
	for _, l := range list {
		if lanesOf(l) || overRows(l.Body) {
			return true
		}
	}
	return false
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
