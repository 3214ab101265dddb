package forest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

// program makes a program of a module with the kernels of a path, and returns what runs its kernels.
func program(t testing.TB, m *nest.Module, path string, threads int) (*nest.Program, map[string]bool) {
	t.Helper()
	paths := map[string]bool{}
	p, err := nest.New(m, threads, func(k *simt.Module) (nest.Code, error) {
		c, err := cpu.CompileCode(k, path, threads)
		if err == nil {
			paths[c.Path()] = true
			t.Cleanup(c.Free)
		}
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, paths
}

// margins returns the raw scores of rows by a program.
func margins(t testing.TB, f *forest.Forest, p *nest.Program, rows []float64) []float64 {
	t.Helper()
	sums := make([]float64, len(rows)/f.Features*f.Outputs)
	f.Start(sums)
	var err error
	if f.Input == forest.Float32 {
		narrow := make([]float32, len(rows))
		for i, x := range rows {
			narrow[i] = float32(x)
		}
		err = nest.Sums(t.Context(), p, narrow, sums)
	} else {
		err = nest.Sums(t.Context(), p, rows, sums)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Finish(forest.Margin, sums, sums)
	return sums
}

// compareScores holds a schedule's scores to those of the plain evaluator, to the bit unless it adds in another order.
func compareScores(f *forest.Forest, c *Code, got, want []float64) error {
	for i := range want {
		switch {
		case math.Float64bits(got[i]) == math.Float64bits(want[i]):
		case math.Abs(got[i]-want[i]) <= c.Bound(f) && c.Nest.Reassociates():
		default:
			return fmt.Errorf("row %d: score %v, want %v", i/f.Outputs, got[i], want[i])
		}
	}
	return nil
}

// compareLeaves holds the leaves that a schedule's walks find to those of the plain evaluator.
func compareLeaves(t testing.TB, f *forest.Forest, c *Code, rows []float64, load func(*nest.Module) *nest.Program) {
	t.Helper()
	if len(f.Trees) == 0 {
		return
	}
	l, err := c.Leaves()
	if err != nil {
		t.Fatal(err)
	}
	n := len(rows) / f.Features * len(f.Trees)
	words, got, want := make([]int32, n), make([]float64, n), make([]float64, n)
	if err := nest.Words(t.Context(), load(l.Module), rows, words); err != nil {
		t.Fatal(err)
	}
	l.Number(words, got)
	if err := forest.Evaluate(f, forest.Leaves, rows, want); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("row %d, tree %d: leaf %v, want %v\n%.20000s", i/len(f.Trees), i%len(f.Trees), got[i], want[i], c.HIR.Text()+c.LIR.Text())
		}
	}
}

// coded makes a forest that has code: no tests for equality or exact members, and leaves that add once to an output.
func coded(rng *rand.Rand) *forest.Forest {
	f := random(rng)
	for i := range f.Trees {
		t := &f.Trees[i]
		for k := range t.Nodes {
			switch n := &t.Nodes[k]; n.Test {
			case forest.Equal:
				n.Test = forest.Less
			case forest.NotEqual:
				n.Test = forest.LessEqual
			case forest.InExact:
				n.Test = forest.In
			case forest.Leaf:
				seen := map[int32]bool{}
				for v := n.First; v < n.Last; v++ {
					if seen[t.Values[v].Output] {
						n.Last = v
						break
					}
					seen[t.Values[v].Output] = true
				}
			}
		}
		for k, x := range t.Categories {
			if math.Abs(x) > 1e4 || x != math.Trunc(x) {
				t.Categories[k] = math.Copysign(float64(20+k), x)
			}
		}
		sortCategories(t)
	}
	return f
}

// sortCategories puts the lists of a tree's nodes in order.
func sortCategories(t *forest.Tree) {
	for k := range t.Nodes {
		n := &t.Nodes[k]
		if !n.Test.Categorical() {
			continue
		}
		list := t.Categories[n.First:n.Last]
		for i := range list {
			list[i] = float64(i) - 2
		}
	}
}

// randomSchedule draws verbs until some are legal.
func randomSchedule(rng *rand.Rand) *schedule.Schedule {
	s := schedule.New()
	names := []string{schedule.Batch, schedule.Tree}
	chains := [][]string{names} // loops that are alone in the one before
	pick := func() string { return names[rng.IntN(len(names))] }
	for range rng.IntN(10) {
		before := len(s.Verbs)
		a, b := fmt.Sprintf("l%d", 2*before), fmt.Sprintf("l%d", 2*before+1)
		n := 1 + rng.IntN(9)
		switch rng.IntN(16) {
		case 0, 1, 2:
			s.Tile(pick(), a, b, n+1)
		case 3:
			s.Split(pick(), a, b, n)
		case 4:
			s.Reorder(pick(), pick())
		case 5, 6:
			if len(chains) > 0 {
				chain := chains[rng.IntN(len(chains))]
				chain = slices.Clone(chain[:2+rng.IntN(len(chain)-1)])
				rng.Shuffle(len(chain), func(i, k int) { chain[i], chain[k] = chain[k], chain[i] })
				s.Reorder(chain...)
			}
		case 7:
			s.Unroll(pick())
		case 8:
			s.Specialize(pick())
		case 9:
			s.Cache(pick())
		case 10:
			name := pick()
			if s.Parallel(name); rng.IntN(2) == 0 {
				s.AtomicReduce(name)
			}
		case 11:
			s.Interleave(pick(), 2+rng.IntN(4))
		case 12:
			s.UnrollWalk(pick(), n)
		case 13:
			s.PeelWalk(pick(), 1+rng.IntN(2))
		case 14:
			s.VectorReduce(pick(), n+1)
		default:
			switch rng.IntN(4) {
			case 0:
				s.Represent([]string{schedule.Array, schedule.Sparse, schedule.Reorg}[rng.IntN(3)])
			case 1:
				s.SortTrees()
			case 2:
				s.Pad()
			default:
				s.TileNodes(2+rng.IntN(3), []string{schedule.Uniform, schedule.Probability, schedule.Hybrid}[rng.IntN(3)])
			}
		}
		nest, err := s.Nest()
		if err != nil {
			s.Verbs = s.Verbs[:before]
			continue
		}
		names, chains = nil, nil
		var visit func(list []*schedule.Loop)
		visit = func(list []*schedule.Loop) {
			for _, l := range list {
				names = append(names, l.Name)
				chain := []string{l.Name}
				for in := l; len(in.Body) == 1; in = in.Body[0] {
					chain = append(chain, in.Body[0].Name)
				}
				if len(chain) > 1 {
					chains = append(chains, chain)
				}
				visit(l.Body)
			}
		}
		visit(nest.Loops)
	}
	return s
}

// tryOne compiles a random forest under a random schedule and compares its scores. It reports whether there was code.
func tryOne(t testing.TB, seed uint64, paths map[string]int) bool {
	rng := rand.New(rand.NewPCG(seed, 41))
	f := coded(rng)
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	s := randomSchedule(rng)
	rows := cells(rng, f, []int{1, 2, 15, 16, 17, 40, 70}[rng.IntN(7)])
	c, err := Compile(f, s, hir.Profile(f, rows))
	if err != nil {
		if !errors.Is(err, ir.ErrLower) && !errors.Is(err, hir.ErrForest) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("seed %d: %v", seed, err)
		}
		return false
	}
	want := make([]float64, len(rows)/f.Features*f.Outputs)
	if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
		t.Fatal(err)
	}
	for _, set := range micro.All() {
		p, by := program(t, c.Module, set.Name, 1+rng.IntN(3))
		for path := range by {
			paths[path]++
		}
		if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
			t.Fatalf("seed %d, %s: %v\n%s%s%s", seed, set.Name, err, s.Text(), c.HIR.Text(), c.LIR.Text())
		}
	}
	if all := micro.All(); rng.IntN(3) == 0 {
		compareLeaves(t, f, c, rows, func(m *nest.Module) *nest.Program {
			p, _ := program(t, m, all[rng.IntN(len(all))].Name, 1+rng.IntN(3))
			return p
		})
	}
	return true
}

// TestSchedules: random forests under random legal schedules give the bits of the plain evaluator, on every path.
func TestSchedules(t *testing.T) {
	n := 600
	if testing.Short() {
		n = 150
	}
	ran, paths := 0, map[string]int{}
	for seed := range uint64(n) {
		if tryOne(t, seed, paths) {
			ran++
		}
	}
	if ran < n/2 {
		t.Errorf("%d of %d schedules ran", ran, n)
	}
	want := []string{"interpreter"}
	switch x86.Path() {
	case "avx512":
		want = append(want, "avx512", "avx2")
	case "avx2":
		want = append(want, "avx2")
	}
	for _, path := range want {
		if paths[path] < n/20 {
			t.Errorf("%d of %d schedules had code by %s", paths[path], n, path)
		}
	}
	t.Logf("%d of %d schedules ran, with kernels by %v", ran, n, paths)
}

func FuzzSchedules(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { tryOne(t, seed, map[string]int{}) })
}

// TestEmptySplit: what a split leaves of tiles that are larger than the one around them is nothing, and makes no loop over rows race.
func TestEmptySplit(t *testing.T) {
	f := pair("<")
	s, err := schedule.Parse("tile batch b0 b1 18\nparallel b0\ntile b1 c0 c1 1000\nsplit c0 d0 d1 1\ntile d1 e0 e1 6\n")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(f, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]float64, 70*f.Features)
	for i := range rows {
		rows[i] = float64(i % 4)
	}
	want := make([]float64, 70)
	if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
		t.Fatal(err)
	}
	p, _ := program(t, c.Module, "generic", 3)
	if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
		t.Error(err)
	}
}

// TestFarSplit: trees of the rows that a split has after the first millions are on the threads, too.
func TestFarSplit(t *testing.T) {
	for _, rows := range []string{"1000", "1073741824"} {
		s, err := schedule.Parse("split batch b0 b1 " + rows + "\nreorder b1.tree b1\nparallel b1.tree\natomicReduce b1.tree\n")
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compile(pair("<"), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(c.Module.Body, func(it nest.Item) bool { return it.Loop != nil && it.Loop.Parallel && it.Loop.Private }) {
			t.Errorf("after %s rows no loop over trees is parallel", rows)
		}
	}
}

// TestReorderedSplit: the rows that a split leaves to a loop are taken once, also where a loop over larger tiles is put around it.
func TestReorderedSplit(t *testing.T) {
	f := pair("<")
	for _, text := range []string{
		"split batch b0 b1 2\ntile b1 b2 b3 3\ntile b3 b4 b5 8\nreorder b4 b2\n",
		"split tree t0 t1 1\ntile t0 t2 t3 2\ntile t3 t4 t5 3\nreorder t4 t2\n",
		"split batch b0 b1 2\nreorder tree b0\ntile b0 b2 b3 3\ntile b3 b4 b5 8\nreorder tree b4 b2\n",
	} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compile(f, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]float64, 40*f.Features)
		for i := range rows {
			rows[i] = float64(i % 4)
		}
		want := make([]float64, 40)
		if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
			t.Fatal(err)
		}
		p, _ := program(t, c.Module, "generic", 3)
		if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestManyLeaves: leaves of more rows than their words are kept for at a time, of trees on threads.
func TestManyLeaves(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	f := &forest.Forest{Features: 3, Outputs: 1, Base: []float64{0}, Alpha: 1}
	for len(f.Trees) < 10_000 {
		f.Trees = append(f.Trees, chain(rng, f, 1+len(f.Trees)%2))
	}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	s, err := schedule.Parse("represent sparse\nsortTrees\ntile tree t0 t1 1000\nreorder t0 batch t1\nparallel t0\natomicReduce t0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(f, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	compareLeaves(t, f, c, cells(rng, f, 600), func(m *nest.Module) *nest.Program {
		p, _ := program(t, m, micro.All()[0].Name, 2)
		return p
	})
}

// TestParallelTrees: trees on threads have sums of their own, which are added in one order: the bits do not depend on the
// threads, and are near those of the plain evaluator; where leaves are kept they are its bits.
func TestParallelTrees(t *testing.T) {
	differ := 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 5))
		f := coded(rng)
		for n := len(f.Trees); n > 0 && len(f.Trees) < 7; {
			f.Trees = append(f.Trees, f.Trees...)
		}
		if err := f.Check(); err != nil {
			t.Fatal(err)
		}
		rows := cells(rng, f, 1+rng.IntN(70))
		want := make([]float64, len(rows)/f.Features*f.Outputs)
		if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			"represent sparse\nreorder tree batch\nparallel tree\natomicReduce tree", "represent sparse\ntile tree t0 t1 2\nreorder t0 batch t1\nparallel t0\natomicReduce t0",
			"represent sparse\ntile batch b0 b1 16\ntile tree t0 t1 3\nreorder b0 t0 b1 t1\nparallel t0\natomicReduce t0\ninterleave t1 2",
			"represent sparse\nsortTrees\ntile tree t0 t1 2\nreorder t0 batch t1\nparallel t0\natomicReduce t0",
		} {
			s, err := schedule.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Compile(f, s, nil)
			if err != nil {
				if errors.Is(err, schedule.ErrSchedule) || errors.Is(err, hir.ErrForest) {
					continue
				}
				t.Fatalf("%q: %v", text, err)
			}
			var first []float64
			for threads := 1; threads <= 4; threads++ {
				all := micro.All()
				p, _ := program(t, c.Module, all[rng.IntN(len(all))].Name, threads)
				for range 2 { // with memory of the call before
					got := margins(t, f, p, rows)
					if first == nil {
						first = got
					}
					for i := range got {
						if math.Float64bits(got[i]) != math.Float64bits(first[i]) {
							t.Fatalf("seed %d, %q: score %d by %d threads is %v, by one %v", seed, text, i, threads, got[i], first[i])
						}
					}
				}
			}
			if err := compareScores(f, c, first, want); err != nil {
				t.Fatalf("seed %d, %q: %v", seed, text, err)
			}
			for i := range first {
				if first[i] != want[i] {
					if differ++; !c.HIR.InOrder() {
						t.Fatalf("seed %d, %q: leaves are kept, and score %d is %v, want %v", seed, text, i, first[i], want[i])
					}
				}
			}
		}
	}
	if differ == 0 {
		t.Error("no score differs in its last bits: trees are added in the model's order after all")
	}
}

// TestLoopNamedAdded: a loop over rows may have any name, also that of the one that adds kept leaves.
func TestLoopNamedAdded(t *testing.T) {
	f := bushes()
	s, err := schedule.Parse("sortTrees\ntile batch tiles added 4\n")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compile(f, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]float64, 9*f.Features)
	for i := range rows {
		rows[i] = float64(i%7) - 3
	}
	want := make([]float64, len(rows)/f.Features*f.Outputs)
	if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
		t.Fatal(err)
	}
	load := func(m *nest.Module) *nest.Program {
		p, _ := program(t, m, "generic", 1)
		return p
	}
	if err := compareScores(f, c, margins(t, f, load(c.Module), rows), want); err != nil {
		t.Error(err)
	}
	compareLeaves(t, f, c, rows, load)
}
