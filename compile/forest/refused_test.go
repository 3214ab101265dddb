package forest

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/simt"
)

// below returns a forest with a fourth tree that has a leaf and a test on each level above its deepest.
func below(depth int32) *forest.Forest {
	f := bushes()
	tree := forest.Tree{Weight: 1, Values: []forest.Value{{Value: 1}}}
	for k := range depth {
		tree.Nodes = append(tree.Nodes, forest.Node{Test: forest.Less, Yes: 2*k + 1, No: 2*k + 2}, forest.Node{Last: 1})
	}
	tree.Nodes = append(tree.Nodes, forest.Node{Last: 1})
	f.Trees = append(f.Trees, tree)
	return f
}

// TestCodeRefuses: forests and schedules without code are refused in one line that says why; a neighbour that has code
// is not.
func TestCodeRefuses(t *testing.T) {
	with := func(change func(f *forest.Forest)) *forest.Forest {
		f := bushes()
		change(f)
		return f
	}
	root := func(test forest.Test, list ...float64) func(f *forest.Forest) {
		return func(f *forest.Forest) {
			f.Trees[1].Nodes[0].Test, f.Trees[1].Categories = test, list
			f.Trees[1].Nodes[0].First, f.Trees[1].Nodes[0].Last = 0, int32(len(list))
		}
	}
	chain := bushes() // a leaf on each level
	deep := below(30)
	deepest := below(simt.MaxTurns + 1) // a walk of more steps than a loop may have turns
	many := bushes()
	for len(many.Trees) <= 5000 {
		many.Trees = append(many.Trees, many.Trees[0])
	}
	for _, c := range []struct {
		what string
		f    *forest.Forest
		text string
		hits [][]int64
		want string
	}{
		{"equality", with(root(forest.Equal)), "", nil, "tree 1, node 0: code has no test x == t"},
		{"inequality", with(root(forest.NotEqual)), "", nil, "code has no test x != t"},
		{"exact members", with(root(forest.InExact, 1)), "", nil, "code has no test for exact members"},
		{"category", with(root(forest.In, 1<<24+1)), "", nil, "category 1.6777217e+07, want at most"},
		{"largest category", with(root(forest.In, 1<<24)), "", nil, ""},
		{"no category", with(root(forest.In, 0.5, 1e300)), "", nil, "category 1e+300"},
		{"fractions", with(root(forest.In, 0.5, 1)), "", nil, ""},
		{"two values", with(func(f *forest.Forest) { f.Trees[0].Nodes[len(f.Trees[0].Nodes)-1].First-- }), "", nil, "adds to output 0 twice"},
		{"minimum", with(func(f *forest.Forest) { f.Combine = forest.Min }), "", nil, "only sums of trees"},
		{"no profile", bushes(), "tileNodes 2 hybrid", nil, "give a profile"},
		{"short profile", bushes(), "tileNodes 2 hybrid", [][]int64{{1}}, "profile is of another forest"},
		{"uniform", bushes(), "tileNodes 2 uniform", nil, ""},
		{"peeled", chain, "peelWalk tree 2", nil, "has a leaf at depth 1; peel less, or pad"},
		{"peeled less", chain, "peelWalk tree 1", nil, ""},
		{"peeled and padded", chain, "pad\npeelWalk tree 2", nil, ""},
		{"deep array", deep, "represent array", nil, "tree 3 of depth 30"},
		{"deep reorg", deep, "represent reorg", nil, "use represent sparse"},
		{"deepest sparse", deepest, "represent sparse", nil, "a walk has 65537 turns, want at most 65536"},
		{"deepest, two steps a turn", deepest, "represent sparse\nunrollWalk tree 2", nil, ""},
		{"deep sparse", deep, "represent sparse", nil, ""},
		{"deep and padded", below(5800), "represent sparse\npad", nil, "pad makes 16"},
		{"unrolled", many, "unroll tree", nil, "5001 iterations, want at most 4096"},
		{"unrolled within a tile", bushes(), "tile tree t0 t1 2\nunroll t1", nil, "is not known before it runs"},
		{"unrolled tiles", bushes(), "tile tree t0 t1 2\nunroll t0\nunroll t1", nil, ""},
		{"specialized within a tile", bushes(), "tile tree t0 t1 2\nspecialize t1", nil, "unroll the loops over trees around it"},
		{"specialized", bushes(), "tile tree t0 t1 2\nunroll t0\nspecialize t1", nil, ""},
		{"card", bushes(), "gpuDimension batch grid.x", nil, "gpuDimension is for cards"},
		{"shared", bushes(), "gpuDimension tree block.x\nsharedReduce tree", nil, "gpuDimension is for cards"},
		{"threads in lanes", bushes(), "parallel tree\natomicReduce tree", nil, "reorder it around the loops over rows"},
		{"threads around lanes", bushes(), "reorder tree batch\nparallel tree\natomicReduce tree", nil, ""},
		{"threads over uneven tiles", bushes(), "tile batch b0 b1 9\nparallel b0\ntile b1 b2 b3 4", nil, ""},
		{"threads over one tile", bushes(), "tile tree t0 t1 9\nreorder t0 batch t1\nparallel t0\natomicReduce t0", nil, ""},
		{"atomic on a card", bushes(), "gpuDimension tree grid.x\natomicReduce tree", nil, "gpuDimension is for cards"},
		{"cached trees", bushes(), "tile tree t0 t1 2\ncache t0", nil, "cache a loop over rows"},
		{"cached rows", bushes(), "tile batch b0 b1 2\ncache b0", nil, ""},
		{"interleaved rows", bushes(), "reorder tree batch\ninterleave batch 2", nil, "rows are walked together as lanes"},
		{"unrolled rows", bushes(), "tile batch b0 b1 4\nunroll b1", nil, "unroll a loop over trees"},
	} {
		if testing.Short() && (c.what == "unrolled" || strings.HasPrefix(c.what, "deepest")) {
			continue // 5,001 trees take half a second, and so do 65,537 levels
		}
		s, err := schedule.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.f.Check(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		_, err = Compile(c.f, s, c.hits)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.want != "" && (!errors.Is(err, hir.ErrForest) && !errors.Is(err, ir.ErrLower) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v; want %q", c.what, err, c.want)
		}
	}
}

// TestManyOutputs: leaves that add to one output each take no number for all the others.
func TestManyOutputs(t *testing.T) {
	f := below(20)
	f.Outputs = forest.MaxOutputs
	f.Base = make([]float64, f.Outputs)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	e, err := hir.Build(f, nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 || e.Vector() {
		t.Errorf("%d leaves took %d bytes", f.NumLeaves(), n)
	}
	f.Trees[0].Values[0].Output = 1 // the tree adds to two
	if e, err = hir.Build(f, nil); err != nil || !e.Vector() {
		t.Errorf("two outputs of one tree: vectors %t: %v", e.Vector(), err)
	}
	f.Trees = append(f.Trees, below(1100).Trees[3])
	if _, err = hir.Build(f, nil); !errors.Is(err, hir.ErrForest) || !strings.Contains(err.Error(), "with a number for each of 65536 outputs") {
		t.Errorf("more numbers than there may be: %v", err)
	}
}
