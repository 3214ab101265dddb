package forest

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/forest/format/lightgbm"
	"github.com/pce-engine/pce/forest/format/onnx"
	"github.com/pce-engine/pce/forest/format/treelite"
	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// whole makes TestSharedSchedules run every batch of every case under every schedule, by the interpreter too, which takes
// minutes.
var whole = flag.Bool("whole", false, "run all batches of the shared forests under all schedules")

// sharedSchedules are schedules that forests of any shape have code under, most of them: an array of a deep tree is
// larger than memory.
func sharedSchedules(t *testing.T) map[string]string {
	all := map[string]string{
		"default":       "",
		"sparse":        "represent sparse",
		"reorg":         "represent reorg\ninterleave tree 3",
		"split trees":   "represent sparse\nsplit tree t0 t1 3\nunroll t0\ninterleave t1 2",
		"split rows":    "represent sparse\nsplit batch b0 b1 20\ntile b1 b2 b3 8\nunrollWalk b1.tree 3",
		"tree tiles":    "represent sparse\ntile tree t0 t1 8\ntile batch b0 b1 16\nreorder t0 b0 b1 t1\ninterleave t1 2",
		"uniform":       "represent sparse\ntileNodes 3 uniform\ninterleave tree 2",
		"hybrid":        "represent sparse\ntileNodes 2 hybrid",
		"probability":   "tileNodes 4 probability",
		"vector":        "represent sparse\nvectorReduce tree 4\ninterleave tree 2",
		"sorted rows":   "represent sparse\nsortTrees\nparallel batch",
		"peeled":        "represent sparse\npad\nunrollWalk tree 4",
		"sorted vector": "represent sparse\nsortTrees\nvectorReduce tree 2",
	}
	for _, name := range []string{"xgboost", "one-tree-at-a-time", "paper-rows", "padded", "sorted"} {
		text, err := schedule.ShippedText(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = text
	}
	return all
}

// inShort are the cases and schedules of a short test.
var inShort = []string{"xgbs-missing", "xgbs-cat-partition", "lgb-mixed_categorical", "skl-rf-digits", "tiny-random4-1", "sorted", "padded", "hybrid", "reorg"}

// TestSharedSchedules holds forests of libraries, under every schedule and with each set of instructions, to the bits
// of the plain evaluator, which package forest/format holds to the libraries; in batches of 1 to 70 rows and of 4096.
func TestSharedSchedules(t *testing.T) {
	for _, f := range []format.Format{xgboost.JSON, xgboost.UBJSON, xgboost.Binary, lightgbm.Format, onnx.Format, treelite.Format} {
		format.Register(f)
	}
	root := filepath.Join("..", "..", "..", "shared", "data", "forest")
	cases, _ := filepath.Glob(filepath.Join(root, "*", "case.json"))
	if len(cases) == 0 {
		t.Skipf("SKIPPED: needs %s, models that are not part of the repository: place the folder shared beside it", root)
	}
	schedules := sharedSchedules(t)
	for i, path := range cases {
		dir := filepath.Dir(path)
		name := filepath.Base(dir)
		if testing.Short() && !slices.Contains(inShort, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := openCase(t, dir)
			if f.Linear != nil {
				if _, err := Compile(f, schedule.New(), nil); !errors.Is(err, hir.ErrForest) {
					t.Errorf("a linear model: %v", err)
				}
				return
			}
			rows := thresholds(f, 4096)
			want := make([]float64, 4096*f.Outputs)
			if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
				t.Fatal(err)
			}
			hits := hir.Profile(f, rows[:200*f.Features])
			ran := 0
			for k, what := range slices.Sorted(maps.Keys(schedules)) {
				if testing.Short() && !slices.Contains(inShort, what) || !testing.Short() && !*whole && (i+k)%18 != 0 {
					continue // a case has some of the schedules, a schedule some of the cases
				}
				if runSchedule(t, f, what, schedules[what], hits, rows, want) {
					ran++
				}
			}
			if ran < 12 && *whole || ran == 0 {
				t.Errorf("%d schedules had code, want 12 of %d", ran, len(schedules))
			}
		})
	}
}

// openCase opens a model of a case, whichever file it has.
func openCase(t *testing.T, dir string) *forest.Forest {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if f, err := format.Open(filepath.Join(dir, file.Name())); err == nil {
			return f
		}
	}
	t.Fatalf("no model in %s", dir)
	return nil
}

// runSchedule compares all batches under a schedule, and reports whether there was code.
func runSchedule(t *testing.T, f *forest.Forest, what, text string, hits [][]int64, rows, want []float64) bool {
	t.Helper()
	s, err := schedule.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	c, err := Compile(f, s, hits)
	if errors.Is(err, ir.ErrLower) {
		t.Logf("%s: %v", what, err)
		return false
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return false
	}
	bound := c.Bound(f)
	seen := map[string]bool{}
	for _, set := range micro.All() {
		p, by := program(t, c.Module, set.Name, 2)
		path := fmt.Sprint(slices.Sorted(maps.Keys(by)))
		if seen[path] {
			continue // another set with the same instructions
		}
		seen[path] = true
		at := 0
		for n := 1; n <= 71; n++ {
			if n == 71 {
				n = 4096
			}
			if !*whole && n > 2 && n%16 > 1 && n != 70 || n == 4096 && (by["interpreter"] && !*whole || testing.Short()) {
				continue
			}
			if at+n > 4096 {
				at = 0
			}
			got := margins(t, f, p, rows[at*f.Features:(at+n)*f.Features])
			for i := range got {
				w := want[at*f.Outputs+i]
				if math.Float64bits(got[i]) != math.Float64bits(w) && !(bound > 0 && math.Abs(got[i]-w) <= bound) {
					t.Errorf("%s, %s: row %d of %d: score %s, want %s", what, set.Name, i/f.Outputs, n, strconv.FormatFloat(got[i], 'x', -1, 64), strconv.FormatFloat(w, 'x', -1, 64))
					return true
				}
			}
			at += n
		}
	}
	return true
}

// TestVerbsDiffer: schedules that differ in one verb have other MIRs, unless their loops are the same.
func TestVerbsDiffer(t *testing.T) {
	f := bushes()
	hits := hir.Profile(f, thresholds(f, 50))
	text := func(s *schedule.Schedule) (nest, mir string) {
		c, err := Compile(f, s, hits)
		if c == nil || c.MIR == nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		return c.Nest.Text(), c.MIR.Text()
	}
	compared := 0
	for name, all := range sharedSchedules(t) {
		s, err := schedule.Parse(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"tile tree x0 x1 2", "split tree x0 x1 1", "unroll tree", "specialize tree", "parallel batch", "interleave tree 2", "unrollWalk tree 2", "peelWalk tree 1",
			"vectorReduce tree 2", "represent reorg", "exact", "sortTrees", "pad", "tileNodes 2 uniform", "tileNodes 2 hybrid", "gpuDimension batch grid.x", "reorder tree batch", "tile batch x0 x1 4\ncache x0"} {
			add, err := schedule.Parse(more)
			if err != nil {
				t.Fatal(err)
			}
			longer := &schedule.Schedule{Verbs: append(slices.Clone(s.Verbs), add.Verbs...)}
			if _, err := longer.Nest(); err != nil {
				continue
			}
			nest, mir := text(s)
			otherNest, otherMIR := text(longer)
			if nest == otherNest {
				continue
			}
			if compared++; mir == otherMIR {
				t.Errorf("%s: the MIR does not show %q:\n%s", name, more, mir)
			}
		}
	}
	if compared < 60 {
		t.Errorf("%d schedules compared", compared)
	}
}

// TestReordered: trees whose sum depends on the order are added in the model's, however they are walked; padded tiles
// have a shape of their own.
func TestReordered(t *testing.T) {
	f := bushes()
	for i, x := range []float64{1e8, 1, -1e8} { // trees 0 and 2 cancel each other
		for k := range f.Trees[i].Values {
			f.Trees[i].Values[k].Value = x
		}
	}
	f.Trees[0], f.Trees[1] = f.Trees[1], f.Trees[0] // depths 2, 3, 3
	f.Trees[0], f.Trees[2] = f.Trees[2], f.Trees[0] // 3, 3, 2
	hits := hir.Profile(f, thresholds(f, 50))
	rows := thresholds(f, 100)
	want := make([]float64, 100)
	if err := forest.Evaluate(f, forest.Margin, rows, want); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"sortTrees", "sortTrees\ninterleave tree 2", "sortTrees\nspecialize tree\nrepresent sparse", "sortTrees\ntile tree t0 t1 2\nreorder t0 batch t1\ninterleave t1 3", "sortTrees\nreorder tree batch",
		"tile tree t0 t1 2\nreorder t0 batch t1", "tile tree t0 t1 2\nsplit t1 t2 t3 1", "tile tree t0 t1 2\nreorder t0 batch t1\nsplit t1 t2 t3 1", "split tree t0 t1 1\nsplit t1 t2 t3 1\nunroll t2",
		"split batch b0 b1 7\nsplit b1 b2 b3 9\ntile b3 b4 b5 5", "tileNodes 3 uniform\npad", "tileNodes 2 uniform\npad\nrepresent sparse", "tileNodes 2 hybrid\npad\nsortTrees\nrepresent reorg",
		"sortTrees\nrepresent reorg\ninterleave tree 2", "sortTrees\nrepresent reorg\nspecialize tree\ninterleave tree 4", // walks behind the last tree
	} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compile(f, s, hits)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if strings.Contains(text, "sortTrees") == c.HIR.InOrder() {
			t.Errorf("%q: the trees are in the model's order: %v", text, c.HIR.InOrder())
		}
		for _, set := range micro.All() {
			p, _ := program(t, c.Module, set.Name, 1)
			if err := compareScores(f, c, margins(t, f, p, rows), want); err != nil {
				t.Errorf("%q, %s: %v", text, set.Name, err)
			}
		}
	}
}

// TestVectorReduce: n sums have every n-th tree each, and are added in pairs.
func TestVectorReduce(t *testing.T) {
	f := &forest.Forest{Features: 3, Outputs: 1, Base: []float64{0.5}}
	for range 4 {
		f.Trees = append(f.Trees, bushes().Trees...)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range f.Trees {
		f.Trees[i].Values = slices.Clone(f.Trees[i].Values)
		for k := range f.Trees[i].Values {
			f.Trees[i].Values[k].Value = math.Ldexp(rng.NormFloat64(), rng.IntN(30))
		}
	}
	rows := thresholds(f, 50)
	for _, text := range []string{"vectorReduce tree 4", "vectorReduce tree 3", "vectorReduce tree 4\ninterleave tree 2", "tile tree t0 t1 6\nvectorReduce t1 2"} {
		s, err := schedule.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compile(f, s, nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		n := 4
		if strings.Contains(text, "3") {
			n = 3
		} else if strings.Contains(text, "tile") {
			n = 0 // sums of their own for each tile
		}
		p, _ := program(t, c.Module, micro.All()[0].Name, 1)
		got := margins(t, f, p, rows)
		for r := range got {
			if n == 0 {
				if want := tiled(f, rows[3*r:3*r+3]); float32(got[r]) != want {
					t.Fatalf("%q: row %d: %v, want %v", text, r, got[r], want)
				}
				continue
			}
			sums := make([]float32, n)
			for i := range f.Trees {
				tree := &f.Trees[i]
				leaf := tree.Find(rows[3*r : 3*r+3])
				sums[i%n] += float32(tree.Values[leaf.First].Value)
			}
			total := sums[0] + sums[1]
			if n == 4 {
				total += sums[2] + sums[3]
			} else {
				total += sums[2]
			}
			if want := float32(f.Base[0]) + total; float32(got[r]) != want {
				t.Fatalf("%q: row %d: %v, want %v", text, r, got[r], want)
			}
		}
	}
}

// tiled adds tiles of six trees, each by two sums.
func tiled(f *forest.Forest, row []float64) float32 {
	total := float32(f.Base[0])
	for at := 0; at < len(f.Trees); at += 6 {
		var sums [2]float32
		for i := at; i < min(at+6, len(f.Trees)); i++ {
			sums[i%2] += float32(f.Trees[i].Values[f.Trees[i].Find(row).First].Value)
		}
		total += sums[0] + sums[1]
	}
	return total
}

// bushes is a forest of trees of depths 3, 2 and 3, with leaves at several depths.
func bushes() *forest.Forest {
	f := &forest.Forest{Features: 3, Outputs: 1, Base: []float64{0.5}}
	leaf := func(x float64, t *forest.Tree) int32 {
		t.Nodes = append(t.Nodes, forest.Node{ID: int32(len(t.Nodes)), First: int32(len(t.Values)), Last: int32(len(t.Values) + 1)})
		t.Values = append(t.Values, forest.Value{Value: x})
		return int32(len(t.Nodes) - 1)
	}
	for k, depth := range []int{3, 2, 3} {
		t := forest.Tree{Weight: 1}
		var grow func(depth int) int32
		grow = func(depth int) int32 {
			at := int32(len(t.Nodes))
			t.Nodes = append(t.Nodes, forest.Node{Test: forest.Less, Feature: at % 3, Threshold: float64(at+int32(k)) / 2, ID: at})
			yes, no := int32(0), int32(0)
			if depth > 1 {
				yes, no = grow(depth-1), leaf(float64(at)+0.25, &t)
			} else {
				yes, no = leaf(float64(at)+0.125, &t), leaf(-float64(at), &t)
			}
			t.Nodes[at].Yes, t.Nodes[at].No = yes, no
			return at
		}
		grow(depth)
		f.Trees = append(f.Trees, t)
	}
	if err := f.Check(); err != nil {
		panic(fmt.Sprint("BUG: ", err))
	}
	return f
}
