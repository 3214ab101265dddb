package schedule

import (
	"reflect"
	"strings"
	"testing"
)

// TestNest: what each verb does to the tree of loops, of schedules made by methods, whose texts are read back.
func TestNest(t *testing.T) {
	for _, c := range []struct {
		s    *Schedule
		want string
	}{
		{New(), "for batch in batch\n  for tree in tree"},
		{New().Tile(Batch, "b0", "b1", 64), "for b0 in batch by 64\n  for b1 in batch\n    for tree in tree"},
		{New().Tile(Tree, "t0", "t1", 4).Tile("t0", "t2", "t3", 5), "for batch in batch\n  for t2 in tree by 20\n    for t3 in tree by 4\n      for t1 in tree"},
		{New().Split(Tree, "t0", "t1", 50), "for batch in batch\n  for t0 in tree at most 50\n  for t1 in tree from 50"},
		{New().Split(Batch, "b0", "b1", 7).Split("b1", "b2", "b3", 2), "for b0 in batch at most 7\n  for tree in tree\nfor b2 in batch from 7 at most 2\n  for b1.tree in tree\nfor b3 in batch from 9\n  for b3.b1.tree in tree"},
		{New().Reorder(Tree, Batch), "for tree in tree\n  for batch in batch"},
		{New().Tile(Batch, "b0", "b1", 64).Tile(Tree, "t0", "t1", 8).Reorder("t0", "b1"),
			"for b0 in batch by 64\n  for t0 in tree by 8\n    for b1 in batch\n      for t1 in tree"},
		{New().Split(Batch, "b0", "b1", 2).Tile("b1", "b2", "b3", 3).Tile("b3", "b4", "b5", 8).Reorder("b4", "b2"),
			"for b0 in batch at most 2\n  for tree in tree\nfor b4 in batch from 2 by 8\n  for b2 in batch by 3\n    for b5 in batch\n      for b1.tree in tree"},
		{New().Split(Batch, "b0", "b1", 7).Reorder(Tree, "b0"), "for tree in tree\n  for b0 in batch at most 7\nfor b1 in batch from 7\n  for b1.tree in tree"},
		{New().Split(Batch, "b0", "b1", 2).Reorder(Tree, "b0").Split(Tree, "t0", "t1", 5).Tile("b0", "b2", "b3", 3).Tile("b3", "b4", "b5", 8).Tile("t0", "t2", "t3", 2).Tile("t3", "t4", "t5", 4).Reorder("t4", "b4", "t2", "b2", "t5"),
			"for t4 in tree at most 5 by 4\n  for b4 in batch at most 2 by 8\n    for t2 in tree by 2\n      for b2 in batch by 3\n        for t5 in tree\n          for b5 in batch\n" +
				"for t1 in tree from 5\n  for t1.b0 in batch at most 2\nfor b1 in batch from 2\n  for b1.tree in tree"},
		{New().Tile(Batch, "b0", "b1", 64).Reorder("b0", Tree, "b1").Parallel("b0").Cache("b0").Unroll(Tree).Interleave("b1", 4),
			"for b0 in batch by 64, cache, parallel\n  for tree in tree, unroll\n    for b1 in batch, interleave 4"},
		{New().GPUDimension(Batch, "grid.x").GPUDimension(Tree, "block.x").SharedReduce(Tree).Specialize(Tree),
			"for batch in batch, gpuDimension grid.x\n  for tree in tree, specialize, gpuDimension block.x, sharedReduce"},
		{New().Parallel(Tree).AtomicReduce(Tree).UnrollWalk(Tree, 2).PeelWalk(Tree, 3).VectorReduce(Tree, 8),
			"for batch in batch\n  for tree in tree, parallel, unrollWalk 2, peelWalk 3, atomicReduce, vectorReduce 8"},
	} {
		n, err := c.s.Nest()
		if err != nil {
			t.Errorf("%q: %v", c.s.Text(), err)
			continue
		}
		if got := n.Text(); got != "represent array\n"+c.want+"\n" {
			t.Errorf("%q gives\n%s, want\n%s", c.s.Text(), got, c.want)
		}
		again, err := Parse(c.s.Text())
		if err != nil || len(again.Verbs) > 0 && !reflect.DeepEqual(again, c.s) {
			t.Errorf("%q is read back as %v, %v", c.s.Text(), again, err)
		}
	}
	whole := New().Exact().Represent(Sparse).SortTrees().Pad().TileNodes(4, Hybrid)
	if n, err := whole.Nest(); err != nil || n.Text() != "exact\nrepresent sparse\nsortTrees\npad\ntileNodes 4 hybrid\nfor batch in batch\n  for tree in tree\n" {
		t.Errorf("%q: %v, %v", whole.Text(), n, err)
	}
}

// TestMark: a text may begin with the byte order mark that some editors put in front of it.
func TestMark(t *testing.T) {
	if s, err := Parse("\ufeffexact\nparallel batch\n"); err != nil || s.Text() != "exact\nparallel batch\n" {
		t.Errorf("%v, %v", s, err)
	}
}

// FuzzSchedule: any text is a schedule that prints to one that is read back equal, or an error of one line; what
// is legal keeps a loop over single rows and one over single trees on every path.
func FuzzSchedule(f *testing.F) {
	f.Add("tile batch b0 b1 64 # rows\n\nreorder b0 tree b1\nsplit tree t0 t1 5\n interleave b1 2")
	f.Add("split batch b0 b1 5\nsplit b1 b2 b3 5\nunroll b3.b1.tree")
	f.Add("exact\nrepresent sparse\nvectorReduce tree 4")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			oneLine(t, err)
			return
		}
		again, err := Parse(s.Text())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q is read back as %v, %v", s.Text(), again, err)
		}
		n, err := s.Nest()
		if err != nil {
			oneLine(t, err)
			return
		}
		var path func(list []*Loop, rows, trees int)
		path = func(list []*Loop, rows, trees int) {
			for _, l := range list {
				r, k := rows, trees
				if at := map[string]*int{Batch: &r, Tree: &k}[l.Dim]; *at != 0 && *at <= l.Step {
					t.Fatalf("%s is within a loop of steps of %d\n%s", l.Name, *at, n.Text())
				} else {
					*at = l.Step
				}
				if l.Innermost() && (r != 1 || k != 1) {
					t.Fatalf("%s ends with %d rows and %d trees\n%s", l.Name, r, k, n.Text())
				}
				path(l.Body, r, k)
			}
		}
		path(n.Loops, 0, 0)
	})
}

func oneLine(t *testing.T, err error) {
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 4000 {
		t.Fatalf("an error of %d bytes: %v", len(err.Error()), err)
	}
}
