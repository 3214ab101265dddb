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
// each row adds its trees in the order of the loops. Trees of a tile that is cached lie in shared memory, each tile's
// in place of the one before. A tile of trees on the grid has threads of its own, whose sums are added atomically. A loop over trees on threads
// of a block gives each row as many threads, whose sums are added in shared memory.
func EmitCard(f *Func) (*nest.Module, error) {
	if err := onCard(f, f.Nest.Loops, around{}); err != nil {
		return nil, err
	}
	return emit(f, true)
}

// around is the nearest loops around another, nil where there is none: over tiles of rows, over single rows, over trees, and over trees on
// the threads of a row.
type around struct{ tile, row, trees, team *schedule.Loop }

// onCard refuses what kernels for cards do not do.
func onCard(f *Func, list []*schedule.Loop, out around) error {
	for _, l := range list {
		if why := offCard(f, l, out); why != "" {
			return fmt.Errorf("%w: for a card: %s: %s", ErrLower, l.Name, why)
		}
		in := out
		switch {
		case lanesOf(l):
			in.row = l
		case l.Dim == schedule.Batch:
			in.tile = l
		default:
			if in.trees = l; l.Shared {
				in.team = l
			}
		}
		if err := onCard(f, l.Body, in); err != nil {
			return err
		}
	}
	return nil
}

// offCard says why a loop is refused, "" if it is not.
func offCard(f *Func, l *schedule.Loop, out around) string {
	if out.row != nil && out.team == nil && l.Innermost() && !l.Shared && team(out.row.Body) != nil {
		return fmt.Sprintf("sharedReduce of %s leaves it out, so every thread would add its trees; leave out split", team(out.row.Body).Name)
	}
	if l.Dim == schedule.Tree {
		all := len(f.Ensemble.Trees)
		switch {
		case l.Cache && l.Step < all && out.row != nil:
			return fmt.Sprintf("cache of tiles of %d of %d trees within a row's thread; reorder the loop over single rows into it, or make the tile larger", l.Step, all)
		case l.Cache && l.Step < all && (out.trees != nil || l.Skip > 0 || l.Most > 0 || l.Unroll || overTrees(l.Body)):
			return fmt.Sprintf("cache of tiles of %d of %d trees wants to be the one loop over trees around that over single rows; leave out split, unroll and other tiles, or make the tile larger", l.Step, all)
		case l.Cache && l.Step < all && f.Nest.SortTrees:
			return fmt.Sprintf("cache of tiles of %d of %d trees, whose leaves sortTrees keeps; leave one out, or make the tile larger", l.Step, all)
		case l.Shared && out.row == nil:
			return "sharedReduce around the loop over single rows; reorder that around it"
		case l.Shared && out.team != nil:
			return fmt.Sprintf("its trees are on threads within those of %s; choose one", out.team.Name)
		case l.Shared && f.Nest.SortTrees:
			return "sharedReduce adds on threads, and sortTrees in the order of the model; leave one out"
		case l.Shared && l.Interleave > 0:
			return "it is over threads, whose walks are apart; tile it and interleave the loop within"
		case !l.Shared && (l.Atomic || l.Dimension != "" || l.Parallel) && !strings.HasPrefix(l.Dimension, "grid"):
			return "the trees of a row are on threads of a block, which wants sharedReduce; atomicReduce is for the grid"
		case l.Atomic && (out.trees != nil || l.Skip > 0 || l.Most > 0 || f.Nest.SortTrees):
			return "atomicReduce wants all trees in the order of the model; leave out sortTrees, split, and the loop over trees around it"
		case l.Atomic && !overRows(l.Body):
			return "atomicReduce within a row's thread; reorder the loop over single rows into it"
		}
		return ""
	}
	block, tile := blockOf(out.tile, l), out.tile
	switch {
	case l.Skip > 0 || l.Most > 0:
		return "split of rows: a launch has all rows of a call; tile them"
	case l.Interleave > 0:
		return "each row has a thread of its own; interleave a loop over trees"
	case l.Unroll:
		return "each row has a thread of its own; unroll a loop over trees"
	case lanesOf(l) && team(l.Body) != nil:
		if out.trees != nil && out.trees.Atomic {
			return "its trees are on the grid and on threads of a block; choose atomicReduce or sharedReduce"
		}
		if block > mostBlock/2 || block&(block-1) != 0 {
			return fmt.Sprintf("blocks of %d rows, those of a tile of %s, with several threads each; want a power of two up to %d", block, tile.Name, mostBlock/2)
		}
	case block != 0 && (block < 32 || block > mostBlock || block&(block-1) != 0):
		return fmt.Sprintf("blocks of %d threads, the rows of a tile of %s; want 32, 64, 128, 256 or 512", block, tile.Name)
	}
	return ""
}

// mostBlock is the most threads of a block.
const mostBlock = 512

// team returns the first loop over the threads of a row among some and those within them, nil if there is none.
func team(list []*schedule.Loop) *schedule.Loop {
	for _, l := range list {
		if l.Shared {
			return l
		}
		if in := team(l.Body); in != nil {
			return in
		}
	}
	return nil
}

// teamOf returns how many threads each row of a kernel has, whose block has so many rows: as many as the loops over them have
// iterations, of at most so many trees, as far as a block has threads and shared memory for their sums, of so many bytes each, and at
// least those of a warp; 0 if no loop is over threads.
func teamOf(row *schedule.Loop, rows, trees, sums int) int {
	if team(row.Body) == nil {
		return 0
	}
	n := 2
	for most := widest(row.Body, trees); n < most && n*rows < mostBlock && 2*n*rows*sums <= sharedBytes || n*rows < 32; {
		n *= 2
	}
	return n
}

// widest returns the most iterations of a loop over threads, of what the loops around it leave.
func widest(list []*schedule.Loop, left int) int {
	most := 0
	for _, l := range list {
		if l.Shared {
			most = max(most, iterations(l, left))
		} else {
			most = max(most, widest(l.Body, min(left, l.Step)))
		}
	}
	return most
}

// overTrees reports whether a loop over trees is among some or within them before one over single rows.
func overTrees(list []*schedule.Loop) bool {
	for _, l := range list {
		if l.Dim == schedule.Tree || !lanesOf(l) && overTrees(l.Body) {
			return true
		}
	}
	return false
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

// sharedBytes is the shared memory that a kernel may declare.
const sharedBytes = 48 << 10

// fits reports what does not fit into shared memory: trees, and the sums of the threads that share a row's.
func fits(k *nest.Kernel) error {
	trees, sums, threads := 0, 0, max(k.Block, 1)*k.Share
	if k.Shared {
		for _, t := range k.Code.Tables {
			trees += (len(t.Bits)/max(k.Pages, 1)*t.Type.Bits()/8 + 7) / 8 * 8 // each begins at a multiple of eight
		}
	}
	if k.Share > 0 {
		q := &k.Code.Outputs[0]
		sums = threads * q.Width * q.Type.Bits() / 8
	}
	switch {
	case sums > sharedBytes:
		return fmt.Errorf("%w: for a card: sharedReduce: the sums of %d threads take %d bytes of shared memory, which has %d; put fewer rows on a block, or leave sharedReduce out", ErrLower, threads, sums, sharedBytes)
	case trees > sharedBytes:
		return fmt.Errorf("%w: for a card: cache of trees: those of a tile take %d bytes of shared memory, which has %d; make the tile smaller, or leave cache out", ErrLower, trees, sharedBytes)
	case trees+sums > sharedBytes:
		return fmt.Errorf("%w: for a card: cache of trees: those of a tile take %d bytes of shared memory and the sums of sharedReduce %d, of %d that there are; make the tile smaller, or leave cache out", ErrLower, trees, sums, sharedBytes)
	}
	return nil
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
