package forest

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/nest"
)

// onEmulator opens a module on the emulator.
func onEmulator(t testing.TB, m *nest.Module) (*nest.Program, func() error, error) {
	t.Helper()
	device.Register(emulator.Kind)
	at, err := device.Find("emulator")
	if err != nil {
		t.Fatal(err)
	}
	return at.OpenNest(t.Context(), m, device.Options{Threads: 1})
}

// emulated opens the emulator for a test, and returns what loads modules there.
func emulated(t testing.TB) func(*nest.Module) *nest.Program {
	t.Helper()
	device.Register(emulator.Kind)
	at, err := device.Find("emulator")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := at.Open(device.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(m *nest.Module) *nest.Program {
		t.Helper()
		p, err := device.LoadNest(t.Context(), dev, m)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Free)
		return p
	}
}

// TestCardSchedules: random forests under random legal schedules, with rows over the grid and the threads of blocks of a
// card in some, give the bits of the plain evaluator on the emulator; each program is called for more rows and for fewer.
func TestCardSchedules(t *testing.T) {
	load := emulated(t)
	n, ran, placed, shared := 120, 0, 0, 0
	if testing.Short() {
		n = 40
	}
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 43))
		f := coded(rng)
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		s := randomSchedule(rng)
		if rng.IntN(2) == 0 { // in front of what was drawn for a batch without tiles
			s = schedule.New().Tile("batch", "grid", "threads", []int{32, 64, 512}[rng.IntN(3)]).GPUDimension("grid", "grid.x").GPUDimension("threads", "block.x")
			if rng.IntN(2) == 0 {
				s.Cache("grid")
			}
			s.Represent([]string{schedule.Array, schedule.Sparse, schedule.Reorg}[rng.IntN(3)])
			switch rng.IntN(3) {
			case 0:
				s.Interleave("tree", 2)
			case 1: // trees in shared memory, within a kernel
				s.Tile("tree", "all", "tree1", 4096).Cache("all")
			case 2: // and around one
				s = schedule.New().Tile("batch", "grid", "threads", 32).Tile("tree", "all", "tree1", 4096).Reorder("grid", "all", "threads", "tree1")
				s.GPUDimension("grid", "grid.x").GPUDimension("threads", "block.x").Cache("all")
			}
		}
		var all [3][]float64
		for i, rows := range []int{[]int{1, 31, 32, 33, 70}[rng.IntN(5)], 600, 5} {
			all[i] = cells(rng, f, rows)
		}
		c, err := CompileCard(f, s, hir.Profile(f, all[0]))
		if err != nil {
			if !errors.Is(err, ir.ErrLower) && !errors.Is(err, hir.ErrForest) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		ran++
		c.Module.Kernels(func(k *nest.Kernel) {
			if k.Block > 0 {
				placed++
			}
			if k.Shared {
				shared++
			}
		})
		p := load(c.Module)
		if path := p.Path(); path != "ptx sm_90" && !strings.HasPrefix(path, "ptx sm_90, ") && len(f.Trees) > 0 {
			t.Fatalf("seed %d runs by %q", seed, p.Path())
		}
		for _, rows := range all {
			want := make([]float64, len(rows)/f.Features*f.Outputs)
			if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
				t.Fatal(err)
			}
			if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
				t.Fatalf("seed %d, %d rows: %v\n%s%s%s", seed, len(rows)/f.Features, err, s.Text(), c.HIR.Text(), c.LIR.Text())
			}
		}
		if seed%4 == 0 {
			compareLeaves(t, f, c, all[0], load)
		}
	}
	if ran < n/3 || placed < n/10 || shared < n/20 {
		t.Errorf("of %d schedules %d ran, %d kernels had blocks of a size, %d trees in shared memory", n, ran, placed, shared)
	}
}

// TestAtomicReduce: tiles of trees on the grid add to the sums of their rows in any order, so scores are within the bound,
// of one tile to the bit; and every tree counts.
func TestAtomicReduce(t *testing.T) {
	load := emulated(t)
	ran := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 44))
		f := coded(rng)
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		each := []int{1, 2, 3, 4096}[rng.IntN(4)]
		s := schedule.New().Tile("batch", "b0", "b1", 64)
		if each == 1 {
			s.Reorder("b0", "tree", "b1").GPUDimension("tree", "grid.y").AtomicReduce("tree")
		} else {
			s.Tile("tree", "t0", "t1", each).Reorder("b0", "t0", "b1", "t1").GPUDimension("t0", "grid.y").AtomicReduce("t0")
		}
		s.GPUDimension("b0", "grid.x").GPUDimension("b1", "block.x").Represent(schedule.Sparse)
		rows := cells(rng, f, []int{1, 63, 130}[rng.IntN(3)])
		c, err := CompileCard(f, s, nil)
		if errors.Is(err, hir.ErrForest) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(f.Trees) == 0 {
			continue
		}
		ran++
		p := load(c.Module)
		want := make([]float64, len(rows)/f.Features*f.Outputs)
		if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
			t.Fatal(err)
		}
		if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
			t.Fatalf("seed %d, %d trees for a thread of %d: %v\n%s", seed, each, len(f.Trees), err, c.LIR.Text())
		}
		if seed%4 == 0 { // found by one thread for each row, as nothing is added
			compareLeaves(t, f, c, rows, load)
		}
	}
	if ran < 20 {
		t.Errorf("%d schedules ran", ran)
	}
}

// TestSharedReduce: rows whose trees are on threads of their block have scores within the bound, with more trees than threads too; the
// order of the additions is fixed, so they are the same bits in every call and whichever rows are beside them.
func TestSharedReduce(t *testing.T) {
	load := emulated(t)
	texts := []string{
		"gpuDimension tree block.x\nsharedReduce tree",
		"tile batch b0 b1 4\ntile tree t0 t1 2\nreorder b0 b1 t0 t1\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ngpuDimension t0 block.y\ncache b0\nsharedReduce t0\nunrollWalk t1 2",
		"represent reorg\ntile batch b0 b1 8\ntile tree t0 t1 32\nreorder b0 b1 t0 t1\ngpuDimension b0 grid.x\ncache b0\ngpuDimension t1 block.x\nsharedReduce t1",
		"tile batch b0 b1 128\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ntile tree t0 t1 3\ngpuDimension t0 block.y\nsharedReduce t0\ninterleave t1 2",
		"split tree first rest 3\ngpuDimension first block.x\nsharedReduce first\ngpuDimension rest block.x\nsharedReduce rest\npad",
		"tile tree t0 t1 5\nreorder t0 batch t1\ngpuDimension t1 block.x\nsharedReduce t1\nvectorReduce t1 2",
		"represent sparse\ntile tree t0 t1 4096\ncache t0\ngpuDimension t1 block.x\nsharedReduce t1\ntile batch b0 b1 32\ngpuDimension b0 grid.x\ngpuDimension b1 block.y",
		"represent sparse\nunroll tree",
	}
	ran, differ := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 45))
		f := coded(rng)
		for n := rng.IntN(40); len(f.Trees) > 0 && len(f.Trees) < n; { // more than the threads of the last schedules, in some
			f.Trees = append(f.Trees, f.Trees[rng.IntN(len(f.Trees))])
		}
		if seed%10 == 0 && len(f.Trees) > 0 {
			for len(f.Trees) < 600 {
				f.Trees = append(f.Trees, f.Trees[len(f.Trees)%7%len(f.Trees)])
			}
		}
		if strings.Contains(texts[seed%uint64(len(texts))], "cache t0") { // as many as fit
			f.Trees = f.Trees[:min(3, len(f.Trees))]
		}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		s, err := schedule.Parse(texts[seed%uint64(len(texts))])
		if err != nil {
			t.Fatal(err)
		}
		c, err := CompileCard(f, s, nil)
		if errors.Is(err, hir.ErrForest) || errors.Is(err, ir.ErrLower) && (strings.Contains(err.Error(), "represent sparse") || strings.Contains(err.Error(), "bytes of shared memory")) || len(f.Trees) == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d, %q: %v", seed, s.Text(), err)
		}
		ran++
		p := load(c.Module)
		rows := cells(rng, f, []int{1, 3, 63, 130}[rng.IntN(4)])
		want := make([]float64, len(rows)/f.Features*f.Outputs)
		if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
			t.Fatal(err)
		}
		got := margins(t, f, p, rows)
		if err := compareScores(f, c, got, want); err != nil {
			t.Fatalf("seed %d, %d trees, %q: %v\n%.9000s", seed, len(f.Trees), s.Text(), err, c.LIR.Text())
		}
		again := margins(t, f, p, rows[(len(rows)/f.Features-1)*f.Features:])
		for i, x := range again {
			if y := got[len(got)-f.Outputs+i]; math.Float64bits(x) != math.Float64bits(y) {
				t.Fatalf("seed %d: the last row's score is %v alone, %v beside others", seed, x, y)
			}
		}
		for i := range got {
			if got[i] != want[i] {
				differ++
			}
		}
		if seed%3 == 0 { // under every text
			compareLeaves(t, f, c, rows, load)
		}
	}
	if ran < 30 || differ == 0 {
		t.Errorf("%d schedules ran, %d scores differ in their last bits", ran, differ)
	}
}

// TestCachedTiles: trees of a tile are in shared memory in place of those of the tile before, for rows in the grid, in every representation;
// scores are those of the plain evaluator to the bit, or within the bound where tiles are in the grid or trees on threads.
func TestCachedTiles(t *testing.T) {
	load := emulated(t)
	ran, most := 0, 0
	for seed := range uint64(90) {
		rng := rand.New(rand.NewPCG(seed, 46))
		f := coded(rng)
		for n := rng.IntN(14); len(f.Trees) > 0 && len(f.Trees) < n; {
			f.Trees = append(f.Trees, f.Trees[rng.IntN(len(f.Trees))])
		}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		n := 2 + rng.IntN(3)
		s := schedule.New().Tile("batch", "b0", "b1", 32).Tile("tree", "t0", "t1", n).Reorder("b0", "t0", "b1", "t1")
		s.GPUDimension("b0", "grid.x").GPUDimension("b1", "block.x").Cache("t0").Represent([]string{schedule.Array, schedule.Sparse, schedule.Reorg}[rng.IntN(3)])
		switch seed % 5 {
		case 0:
			s.GPUDimension("t0", "grid.y").AtomicReduce("t0")
		case 1:
			s.GPUDimension("t1", "block.y").SharedReduce("t1")
		case 2:
			s.Interleave("t1", 2).Cache("b0")
		case 3:
			s.Pad().UnrollWalk("t1", 2)
		}
		rows := cells(rng, f, []int{1, 33, 70}[rng.IntN(3)])
		if rng.IntN(3) == 0 {
			s.TileNodes(2, schedule.Hybrid)
		}
		c, err := CompileCard(f, s, hir.Profile(f, rows))
		if errors.Is(err, hir.ErrForest) || err != nil && (strings.Contains(err.Error(), "represent sparse") || strings.Contains(err.Error(), "bytes of shared memory")) || len(f.Trees) == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d, %q: %v", seed, s.Text(), err)
		}
		c.Module.Kernels(func(k *nest.Kernel) {
			most = max(most, k.Pages)
			if want := (len(f.Trees) + n - 1) / n; k.Shared && k.Pages != want && want > 1 || !k.Shared {
				t.Errorf("seed %d: %d pages for %d trees by %d", seed, k.Pages, len(f.Trees), n)
			}
		})
		p, closer, err := onEmulator(t, c.Module)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ran++
		want := make([]float64, len(rows)/f.Features*f.Outputs)
		if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
			t.Fatal(err)
		}
		if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
			t.Fatalf("seed %d, %d trees, %q: %v\n%.9000s", seed, len(f.Trees), s.Text(), err, c.LIR.Text())
		}
		if err := closer(); err != nil {
			t.Error(err)
		}
		if seed%6 == 0 {
			compareLeaves(t, f, c, rows, load)
		}
	}
	if ran < 35 || most < 4 {
		t.Errorf("%d schedules ran, with at most %d pages", ran, most)
	}
}

// TestCacheFits: trees that do not fit into shared memory are refused when they are compiled, and those of a smaller tile are not.
func TestCacheFits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 48))
	f := &forest.Forest{Features: 6, Outputs: 1, Base: []float64{0.5}, Alpha: 1}
	for range 64 {
		f.Trees = append(f.Trees, bush(rng, f, 0, 6))
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	for text, fits := range map[string]bool{
		"tile tree t0 t1 64\nreorder t0 batch t1\ncache t0": false, "tile tree t0 t1 63\nreorder t0 batch t1\ncache t0": false, "tile tree t0 t1 16\nreorder t0 batch t1\ncache t0": true,
		"tile tree t0 t1 64\nreorder t0 batch t1": true,
	} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = CompileCard(f, s, nil)
		if fits != (err == nil) || err != nil && (!errors.Is(err, ir.ErrLower) || !strings.Contains(err.Error(), "make the tile smaller") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestShippedOnCard: every shipped schedule for cards runs with more trees than a tile has.
func TestShippedOnCard(t *testing.T) {
	load := emulated(t)
	rng := rand.New(rand.NewPCG(4, 47))
	f := &forest.Forest{Features: 6, Outputs: 1, Base: []float64{0.5}, Alpha: 1}
	for range 150 {
		f.Trees = append(f.Trees, bush(rng, f, 0, 3))
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	rows := cells(rng, f, 40)
	want := make([]float64, len(rows)/f.Features)
	if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
		t.Fatal(err)
	}
	cards := 0
	for _, name := range schedule.Shipped() {
		text, err := schedule.ShippedText(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "gpuDimension") {
			continue
		}
		cards++
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := CompileCard(f, s, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := compareScores(f, c, margins(t, f, load(c.Module), rows), want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if cards < 5 {
		t.Errorf("%d schedules are for cards", cards)
	}
}

// TestCardRefuses: what kernels for cards do not do is refused in one line; a neighbour that they do is not.
func TestCardRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"gpuDimension tree block.x\nsharedReduce tree", ""},
		{"gpuDimension tree block.x\natomicReduce tree", "which wants sharedReduce; atomicReduce is for the grid"},
		{"parallel tree\natomicReduce tree", "which wants sharedReduce; atomicReduce is for the grid"},
		{"reorder tree batch\ngpuDimension tree block.x\nsharedReduce tree", "around the loop over single rows"},
		{"tile tree t0 t1 2\ngpuDimension t0 block.x\nsharedReduce t0\ngpuDimension t1 block.y\nsharedReduce t1", "within those of t0"},
		{"tile tree t0 t1 2\ngpuDimension t1 block.y\nsharedReduce t1", ""},
		{"sortTrees\ngpuDimension tree block.x\nsharedReduce tree", "sortTrees in the order of the model"},
		{"gpuDimension tree block.x\nsharedReduce tree\ninterleave tree 2", "interleave the loop within"},
		{"tile tree t0 t1 2\ngpuDimension t0 block.x\nsharedReduce t0\ninterleave t1 2", ""},
		{"split tree first rest 1\ngpuDimension first block.x\nsharedReduce first", "every thread would add its trees"},
		{"split tree first rest 1\ngpuDimension first block.x\nsharedReduce first\ngpuDimension rest block.x\nsharedReduce rest", ""},
		{"tile tree t0 t1 2\nreorder t0 batch t1\ngpuDimension t0 grid.y\natomicReduce t0\ngpuDimension t1 block.x\nsharedReduce t1", "choose atomicReduce or sharedReduce"},
		{"tile batch b0 b1 4\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ngpuDimension tree block.y\nsharedReduce tree", ""},
		{"tile batch b0 b1 12\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ngpuDimension tree block.y\nsharedReduce tree", "blocks of 12 rows"},
		{"tile batch b0 b1 512\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ngpuDimension tree block.y\nsharedReduce tree", "blocks of 512 rows"},
		{"tile batch b0 b1 256\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ngpuDimension tree block.y\nsharedReduce tree", ""},
		{"gpuDimension tree grid.y\natomicReduce tree", "reorder the loop over single rows into it"},
		{"reorder tree batch\ngpuDimension tree grid.y\natomicReduce tree", ""},
		{"sortTrees\nreorder tree batch\ngpuDimension tree grid.y\natomicReduce tree", "leave out sortTrees"},
		{"tile tree t0 t1 2\nreorder t0 t1 batch\ngpuDimension t1 grid.y\natomicReduce t1", "the loop over trees around it"},
		{"tile tree t0 t1 2\ncache t0", "within a row's thread"},
		{"tile tree t0 t1 2\nreorder t0 batch t1\ncache t0", ""},
		{"tile tree t0 t1 2\nreorder t0 batch t1\ncache t0\nunroll t0", "leave out split, unroll"},
		{"tile tree t0 t1 2\nreorder t0 batch t1\nsplit t0 first rest 1\ncache rest", "leave out split, unroll"},
		{"tile tree t0 t1 2\nreorder t0 t1 batch\ncache t0", "one loop over trees"},
		{"tile tree a t1 2\ntile a t2 t3 3\nreorder t2 t3 batch t1\ncache t3", "one loop over trees"},
		{"tile tree t0 t1 2\nsortTrees\nreorder t0 batch t1\ncache t0", "whose leaves sortTrees keeps"},
		{"tile tree t0 t1 3\ncache t0", ""},
		{"split batch b0 b1 8", "a launch has all rows of a call"},
		{"reorder tree batch\ninterleave batch 2", "each row has a thread of its own"},
		{"tile batch b0 b1 4\nunroll b1", "each row has a thread of its own"},
		{"tile batch b0 b1 4\ngpuDimension b0 grid.x\ngpuDimension b1 block.x", "blocks of 4 threads"},
		{"tile batch b0 b1 96\ngpuDimension b0 grid.x\ngpuDimension b1 block.x", "blocks of 96 threads"},
		{"tile batch b0 b1 1024\ngpuDimension b0 grid.x\ngpuDimension b1 block.x", "blocks of 1024 threads"},
		{"tile batch b0 b1 512\ngpuDimension b0 grid.x\ngpuDimension b1 block.x\ncache b0", ""},
		{"tile batch b0 b1 4\ngpuDimension b0 grid.x", ""},
		{"gpuDimension batch grid.x", ""},
		{"parallel batch", ""},
		{"tile batch b0 b1 32\nreorder b0 tree b1\nparallel b0", ""},
	} {
		s, err := schedule.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := CompileCard(bushes(), s, nil)
		if err == nil {
			got.Module.Kernels(func(k *nest.Kernel) {
				if k.Shared != strings.Contains(c.text, "cache t0") || k.Staged != strings.Contains(c.text, "cache b0") {
					t.Errorf("%q: trees in shared memory: %t, rows: %t", c.text, k.Shared, k.Staged)
				}
			})
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.want != "" && (!errors.Is(err, ir.ErrLower) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

// TestSharedReduceLargeTile: a tile may be larger than all trees, as far as its size goes; each tree is added once then, too.
func TestSharedReduceLargeTile(t *testing.T) {
	f := bushes()
	rows := make([]float64, 5*f.Features)
	for i := range rows {
		rows[i] = float64(i%7) - 3
	}
	want := make([]float64, len(rows)/f.Features*f.Outputs)
	if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"2", "4", "1073741824"} {
		s, err := schedule.Parse("tile tree t0 t1 " + n + "\ngpuDimension t0 block.x\nsharedReduce t0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := CompileCard(f, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := compareScores(f, c, margins(t, f, emulated(t)(c.Module), rows), want); err != nil {
			t.Errorf("tiles of %s trees: %v", n, err)
		}
	}
}

// TestSharedMemory: cached trees and the sums of the threads of a row lie in shared memory together. What does not fit there is refused when
// it is compiled, what is not refused runs, and rows have fewer threads where the sums of more would not fit.
func TestSharedMemory(t *testing.T) {
	load := emulated(t)
	rng := rand.New(rand.NewPCG(6, 49))
	grown := func(outputs, trees int) *forest.Forest {
		f := &forest.Forest{Features: 6, Outputs: outputs, Base: make([]float64, outputs), Alpha: 1}
		for k := range trees {
			b := bush(rng, f, 0, 3)
			for i := range b.Values { // as those of boosted classes
				b.Values[i].Output = int32(k % outputs)
			}
			f.Trees = append(f.Trees, b)
		}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		return f
	}
	run := func(f *forest.Forest, text string) (*Code, error) {
		t.Helper()
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := CompileCard(f, s, nil)
		if err != nil {
			if !errors.Is(err, ir.ErrLower) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", text, err)
			}
			return nil, err
		}
		rows := cells(rng, f, 3)
		want := make([]float64, len(rows)/f.Features*f.Outputs)
		if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
			t.Fatal(err)
		}
		if err := compareScores(f, c, margins(t, f, load(c.Module), rows), want); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		return c, nil
	}

	refused := 0
	for trees := 60; trees <= 340; trees += 20 {
		_, err := run(grown(12, trees), "tile tree t0 t1 4096\ncache t0\ngpuDimension t1 block.x\nsharedReduce t1")
		switch {
		case err == nil && refused > 0:
			t.Errorf("%d trees fit and fewer do not", trees)
		case err != nil && strings.Contains(err.Error(), "bytes of shared memory and the sums of sharedReduce "):
			refused++
		case err != nil && !strings.Contains(err.Error(), "which has 49152; make the tile smaller"):
			t.Errorf("%d trees: %v", trees, err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused for the sums")
	}

	const each = "gpuDimension tree block.x\nsharedReduce tree"
	for outputs, want := range map[int]int{24: 512, 25: 256, 48: 256, 49: 128} { // 48 KiB of float32 in 512 threads are 24
		c, err := run(grown(outputs, 600), each)
		if err != nil {
			t.Fatal(err)
		}
		c.Module.Kernels(func(k *nest.Kernel) {
			if k.Share != want {
				t.Errorf("%d outputs: %d threads of a row, want %d", outputs, k.Share, want)
			}
		})
	}
	if _, err := run(grown(400, 400), each); err == nil || !strings.Contains(err.Error(), "the sums of 32 threads take 51200 bytes") {
		t.Errorf("400 outputs: %v", err)
	}
}
