package forest

import (
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// TestIllegal: each verb that makes no sense where it stands is refused with its reason, and a neighbour of it
// that does make sense is not.
func TestIllegal(t *testing.T) {
	for _, c := range []struct{ text, want, legal string }{
		{"shuffle tree", "not a verb", "unroll tree"},
		{"tile batch b0 b1", "want \"tile LOOP NAME NAME N\"", "tile batch b0 b1 2"},
		{"tile batch b0 b1 1", "not a size from 2", "tile batch b0 b1 2"},
		{"tile batch b0 b1 08", "not a size", "tile batch b0 b1 8"},
		{"tile batch b0 b.1 8", "not a name", "tile batch b0 b_1 8"},
		{"tile rows b0 b1 8", "no loop is named rows; there are batch, tree", "tile tree b0 b1 8"},
		{"tile batch b0 b0 8", "take another name", "tile batch b0 b1 8"},
		{"tile batch batch b1 8", "take another name", "tile batch b0 b1 8"},
		{"tile batch b0 b1 8\ntile batch b2 b3 8", "no loop is named batch", "tile batch b0 b1 8\ntile b0 b2 b3 8"},
		{"unroll tree\ntile tree t0 t1 8", "marked with unroll, which would be lost", "tile tree t0 t1 8\nunroll t1"},
		{"tile batch b0 b1 1073741824\ntile b0 b2 b3 2", "want at most", "tile batch b0 b1 536870912\ntile b0 b2 b3 2"},
		{"split tree t0 t1 0", "not a size from 1", "split tree t0 t1 1"},
		{"split tree t0 t1 8\nsplit t0 t2 t3 8", "nothing is left for t3", "split tree t0 t1 8\nsplit t0 t2 t3 7"},
		{"split batch b0 b1 8\nunroll tree\nunroll b1.nothing", "no loop is named b1.nothing", "split batch b0 b1 8\nunroll tree\nunroll b1.tree"},
		{"reorder tree", "two or more", "reorder tree batch"},
		{"reorder tree tree", "named twice", "reorder tree batch"},
		{"reorder tree rows", "no loop is named rows", "reorder tree batch"},
		{"tile batch b0 b1 8\nreorder b0 tree", "reorder neighbours", "tile batch b0 b1 8\nreorder b0 tree b1"},
		{"tile batch b0 b1 8\nreorder b1 b0", "b0 goes over tiles of b1", "tile batch b0 b1 8\nreorder b0 b1"},
		{"split tree t0 t1 8\nreorder t0 batch", "within batch is not one of them alone", "tile tree t0 t1 8\nreorder t0 batch"},
		{"split tree t0 t1 8\nreorder t0 t1", "none of them is around all others", "tile tree t0 t1 8\nreorder t0 t1"},
		{"interleave tree 2\nreorder tree batch", "marked with interleave 2 already", "reorder batch tree\ninterleave tree 2"},
		{"unroll batch", "depends on the rows of a call", "tile batch b0 b1 4\nunroll b1"},
		{"unroll tree\nunroll tree", "said already", "unroll tree"},
		{"specialize batch", "only a loop over single trees has depths", "specialize tree"},
		{"tile tree t0 t1 4\nspecialize t0", "only a loop over single trees", "tile tree t0 t1 4\nspecialize t1"},
		{"gpuDimension batch grid.w", "not one of grid.x", "gpuDimension batch grid.x"},
		{"tile batch b0 b1 8\ngpuDimension b0 block.x\ngpuDimension b1 grid.x", "blocks are within the grid", "tile batch b0 b1 8\ngpuDimension b0 grid.x\ngpuDimension b1 block.x"},
		{"tile batch b0 b1 8\ngpuDimension b0 grid.x\ngpuDimension b1 grid.x", "both on grid.x", "tile batch b0 b1 8\ngpuDimension b0 grid.x\ngpuDimension b1 grid.y"},
		{"gpuDimension tree block.x", "race on the sums", "gpuDimension tree block.x\nsharedReduce tree"},
		{"cache batch", "wants a loop over tiles", "tile batch b0 b1 8\ncache b0"},
		{"cache tree", "wants a loop over tiles", "tile tree t0 t1 8\ncache t0"},
		{"tile batch b0 b1 8\ncache b1", "b1 goes over single rows", "tile batch b0 b1 8\ncache b0"},
		{"tile tree t0 t1 8\ncache t1", "t1 goes over single trees", "tile tree t0 t1 8\ncache t0"},
		{"split batch a b 8\ncache a", "a goes over single rows", "split batch a b 8\ntile a a0 a1 4\ncache a0"},
		{"parallel tree", "race on the sums of a row", "parallel tree\natomicReduce tree"},
		{"tile batch b0 b1 8\nparallel b0\nparallel b1", "parallel within b0", "tile batch b0 b1 8\nparallel b0"},
		{"parallel batch\ngpuDimension batch grid.x", "choose one", "parallel batch"},
		{"interleave batch 2", "wants an innermost loop", "interleave tree 2"},
		{"interleave tree 1", "not a size from 2 to 16", "interleave tree 2"},
		{"interleave tree 17", "not a size from 2 to 16", "interleave tree 16"},
		{"interleave tree 2\nunroll tree", "unrolled and interleaved", "interleave tree 2"},
		{"unrollWalk batch 4", "wants an innermost loop", "unrollWalk tree 4"},
		{"peelWalk batch 4", "wants an innermost loop", "peelWalk tree 4"},
		{"atomicReduce batch", "goes over rows, whose sums are apart", "parallel tree\natomicReduce tree"},
		{"atomicReduce tree", "iterations follow each other", "gpuDimension tree grid.x\natomicReduce tree"},
		{"exact\nparallel tree\natomicReduce tree", "the schedule is exact", "exact\nparallel batch"},
		{"sharedReduce tree", "not over threads of a block", "gpuDimension tree block.z\nsharedReduce tree"},
		{"exact\ngpuDimension tree block.x\nsharedReduce tree", "the schedule is exact", "exact"},
		{"vectorReduce batch 4", "goes over rows", "vectorReduce tree 4"},
		{"tile tree t0 t1 8\nvectorReduce t0 4", "wants an innermost loop", "tile tree t0 t1 8\nvectorReduce t1 4"},
		{"exact\nvectorReduce tree 4", "the schedule is exact", "vectorReduce tree 4"},
		{"vectorReduce tree 4\ninterleave tree 3", "want a multiple", "vectorReduce tree 4\ninterleave tree 2"},
		{"unroll tree\nvectorReduce tree 2", "none of its iterations share sums", "vectorReduce tree 2"},
		{"unroll tree\nparallel tree\natomicReduce tree", "unrolled and parallel", "unroll tree"},
		{"represent tables", "not one of array, sparse, reorg, sliced", "represent reorg"},
		{"represent array\nrepresent array", "said already", "represent array"},
		{"represent sliced\nunrollWalk tree 2", "takes no steps from node to node", "represent sliced\nparallel batch"},
		{"represent sliced\npad", "takes no steps from node to node", "represent sliced"},
		{"represent sliced\ntile batch b0 b1 64", "loops of its own", "represent sliced"},
		{"tileNodes 9 uniform", "not a size from 2 to 8", "tileNodes 8 uniform"},
		{"tileNodes 4 random", "not one of uniform", "tileNodes 4 hybrid"},
		{"pad 3", "want \"pad\"", "pad"},
	} {
		for _, text := range []string{c.text, c.legal} {
			s, err := schedule.Parse(text)
			if err == nil {
				_, err = s.Nest()
			}
			if text == c.legal {
				if err != nil {
					t.Errorf("%q: %v; want it to be legal", text, err)
				}
				continue
			}
			if !errors.Is(err, schedule.ErrSchedule) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v; want %q", text, err, c.want)
			}
		}
	}
}
