package forest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/forest"
	loops "github.com/pce-engine/pce/kernels/cpu/sliced"
	"github.com/pce-engine/pce/kernels/sliced"
)

// random makes a forest with every kind of test, thresholds that meet often, zeros that
// count as missing, leaves of several outputs, and both precisions.
func random(rng *rand.Rand) *forest.Forest {
	f := &forest.Forest{Features: 1 + rng.IntN(5), Outputs: 1 + rng.IntN(3), Alpha: 1, Sum: forest.Precision(rng.IntN(2)), Input: forest.Precision(rng.IntN(2)), BaseLast: rng.IntN(2) == 0}
	for range f.Outputs {
		f.Base = append(f.Base, float64(float32(rng.NormFloat64())))
	}
	if rng.IntN(2) == 0 {
		f.Divisor = make([]float64, f.Outputs)
		for i := range f.Divisor {
			f.Divisor[i] = float64(1 + rng.IntN(9))
		}
	}
	trees := rng.IntN(6)
	if rng.IntN(64) == 0 {
		trees += 2 * partTrees
	}
	for range trees {
		t := forest.Tree{Weight: []float64{1, float64(float32(0.3))}[rng.IntN(2)]}
		grow(rng, f, &t, rng.IntN(8))
		if rng.IntN(3) == 0 {
			shuffle(rng, &t)
		}
		f.Trees = append(f.Trees, t)
	}
	return f
}

// numbers are thresholds and cells: zeros, neighbours, halves, bounds of zeros and of
// both precisions, infinities.
var numbers = func() []float64 {
	out := []float64{0, math.Copysign(0, -1), 0.1, float64(float32(0.1)), 1, -1, -0.5, 2, 2.5, 3, 7, 1e9, -1e9, 1e-35, -1e-35, forest.ZeroWithin, -forest.ZeroWithin, 2e-35, 1e-36, math.Inf(1), math.Inf(-1),
		math.MaxFloat32, -math.MaxFloat32, 1e300, -1e300, math.MaxFloat64, 5e-324, 1e-45, math.Pi}
	for _, x := range out[:15] {
		out = append(out, math.Nextafter(x, 9), math.Nextafter(x, -9), float64(math.Nextafter32(float32(x), 9)), float64(math.Nextafter32(float32(x), -9)))
	}
	return out
}()

// grow appends a node, with a subtree of at most the given depth, and returns its index.
func grow(rng *rand.Rand, f *forest.Forest, t *forest.Tree, depth int) int32 {
	at := int32(len(t.Nodes))
	t.Nodes = append(t.Nodes, forest.Node{})
	n := forest.Node{ID: at}
	if depth == 0 || rng.IntN(8) == 0 {
		n.First = int32(len(t.Values))
		for range rng.IntN(3) {
			t.Values = append(t.Values, forest.Value{Output: int32(rng.IntN(f.Outputs)), Value: float64(float32(rng.NormFloat64()))})
		}
		n.Last = int32(len(t.Values))
		t.Nodes[at] = n
		return at
	}
	n.Test = forest.Test(1 + rng.IntN(int(forest.InExact)))
	n.Feature, n.MissingYes, n.ZeroMissing = int32(rng.IntN(f.Features)), rng.IntN(2) == 0, rng.IntN(4) == 0
	if n.Threshold = numbers[rng.IntN(len(numbers))]; rng.IntN(40) == 0 {
		n.Threshold = math.NaN()
	}
	if n.Test.Categorical() {
		n.First = int32(len(t.Categories))
		var list []float64
		for range rng.IntN(6) {
			c := numbers[rng.IntN(len(numbers))]
			if n.Test != forest.InExact || rng.IntN(2) == 0 {
				c = float64(rng.IntN(9) - 3)
			}
			list = append(list, c)
		}
		slices.Sort(list)
		t.Categories = append(t.Categories, slices.Compact(list)...)
		n.Last = int32(len(t.Categories))
	}
	n.Yes = grow(rng, f, t, depth-1)
	n.No = grow(rng, f, t, depth-1)
	t.Nodes[at] = n
	return at
}

// shuffle gives the nodes of a tree but the root another order, and may add a leaf that nothing reaches.
func shuffle(rng *rand.Rand, t *forest.Tree) {
	if rng.IntN(2) == 0 {
		t.Nodes = append(t.Nodes, forest.Node{ID: 77})
	}
	to := []int32{0}
	for _, at := range rng.Perm(len(t.Nodes) - 1) {
		to = append(to, int32(at+1))
	}
	nodes := make([]forest.Node, len(t.Nodes))
	for i, n := range t.Nodes {
		if n.Test != forest.Leaf {
			n.Yes, n.No = to[n.Yes], to[n.No]
		}
		nodes[to[i]] = n
	}
	t.Nodes = nodes
}

// TestManyTests: a forest that asks each test once lowers as well as one that asks them again.
func TestManyTests(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	f := &forest.Forest{Features: 3, Outputs: 1, Alpha: 1, Base: []float64{0}}
	tree := forest.Tree{Weight: 1}
	for i := range int32(4*manyTests + 1) {
		n := forest.Node{ID: i}
		if i < 2*manyTests {
			n = forest.Node{Test: forest.Less, Feature: i % 3, Threshold: float64(float32(rng.NormFloat64())), Yes: 2*i + 1, No: 2*i + 2}
		} else {
			n.First, n.Last = int32(len(tree.Values)), int32(len(tree.Values)+1)
			tree.Values = append(tree.Values, forest.Value{Value: float64(i)})
		}
		tree.Nodes = append(tree.Nodes, n)
	}
	f.Trees = []forest.Tree{tree, tree}
	compare(t, f, cells(rng, f, 40))
	m, err := Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, mask := range m.Masks {
		seen[fmt.Sprint(mask)] = true
	}
	if len(seen) != len(m.Masks) || len(m.Masks) > 2*manyTests || len(m.Masks) < manyTests {
		t.Errorf("%d masks, of which %d differ", len(m.Masks), len(seen))
	}
}

// TestLargeCategories: categories from 2^53 on, whose neighbours are further away than 1, are found as the plain evaluator finds them.
func TestLargeCategories(t *testing.T) {
	for _, input := range []forest.Precision{forest.Float32, forest.Float64} {
		for _, test := range []forest.Test{forest.In, forest.InTruncated, forest.InExact} {
			for _, c := range []float64{1<<53 - 1, 1 << 53, 1<<53 + 2, 1 << 54, 1<<54 + 4, 1e300, math.MaxFloat32, math.MaxFloat64} {
				list := []float64{-c, c}
				f := &forest.Forest{Features: 1, Outputs: 1, Alpha: 1, Base: []float64{0}, Input: input, Sum: forest.Float64, Trees: []forest.Tree{{
					Weight: 1, Categories: list, Values: []forest.Value{{Value: 1}, {Value: 2}},
					Nodes: []forest.Node{{Test: test, Last: 2, Yes: 1, No: 2}, {Last: 1}, {First: 1, Last: 2, ID: 1}},
				}}}
				var rows []float64
				for _, x := range list {
					rows = append(rows, x, math.Nextafter(x, 0), math.Nextafter(x, 2*x), float64(math.Nextafter32(float32(x), 0)), x/2, x-1, x+1)
				}
				if input == forest.Float32 {
					for i, x := range rows {
						rows[i] = float64(float32(x))
					}
				}
				rows = slices.DeleteFunc(rows, func(x float64) bool { return math.IsInf(x, 0) })
				compare(t, f, rows)
			}
		}
	}
}

// cells are rows of numbers that tests compare with, and a few others.
func cells(rng *rand.Rand, f *forest.Forest, n int) []float64 {
	out := make([]float64, n*f.Features)
	for i := range out {
		switch rng.IntN(8) {
		case 0:
			out[i] = math.NaN()
		case 1:
			out[i] = 4 * rng.NormFloat64()
		default:
			out[i] = numbers[rng.IntN(len(numbers))]
		}
		if f.Input == forest.Float32 {
			out[i] = float64(float32(out[i]))
		}
	}
	return out
}

// compare holds a forest's sliced results for the rows to the plain evaluator's, to the
// bit.
func compare(t *testing.T, f *forest.Forest, rows []float64) {
	t.Helper()
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	m, err := Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	p, err := sliced.New(m)
	if err != nil {
		t.Fatal(err)
	}
	n := len(rows) / f.Features
	want, sums, got := make([]float64, n*f.Outputs), make([]float64, n*f.Outputs), make([]float64, n*f.Outputs)
	wantLeaves, gotLeaves := make([]float64, n*len(f.Trees)), make([]float64, n*len(f.Trees))
	if err := errors.Join(forest.Evaluate(f, forest.Margin, rows, want), forest.Evaluate(f, forest.Leaves, rows, wantLeaves)); err != nil {
		t.Fatal(err)
	}
	f.Start(sums)
	for at := 0; at < n; at += sliced.BlockRows {
		end := min(n, at+sliced.BlockRows)
		p.Sums(rows[at*f.Features:end*f.Features], sums[at*f.Outputs:end*f.Outputs])
		p.Leaves(rows[at*f.Features:end*f.Features], gotLeaves[at*len(f.Trees):end*len(f.Trees)])
	}
	f.Finish(forest.Margin, sums, got)
	for i := range wantLeaves {
		if row := i / len(f.Trees); gotLeaves[i] != wantLeaves[i] {
			t.Fatalf("row %d %v, tree %d: leaf %v, want %v", row, rows[row*f.Features:(row+1)*f.Features], i%len(f.Trees), gotLeaves[i], wantLeaves[i])
		}
	}
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
			t.Fatalf("row %d: score %v, want %v", i/f.Outputs, got[i], want[i])
		}
	}
	for _, l := range loops.All() {
		p, err := loops.New(m, l)
		if err != nil {
			t.Fatal(err)
		}
		if narrow := make([]float32, len(rows)); f.Input == forest.Float32 {
			for i, x := range rows {
				narrow[i] = float32(x)
			}
			compareLoops(t, f, p, narrow, want, wantLeaves)
			continue
		}
		compareLoops(t, f, p, rows, want, wantLeaves)
		narrow, near := make([]float32, len(rows)), make([]float64, len(rows))
		for i, x := range rows {
			narrow[i] = float32(x)
			near[i] = float64(narrow[i])
		}
		scores, leaves := make([]float64, n*f.Outputs), make([]float64, n*len(f.Trees))
		if err := errors.Join(forest.Evaluate(f, forest.Margin, near, scores), forest.Evaluate(f, forest.Leaves, near, leaves)); err != nil {
			t.Fatal(err)
		}
		compareLoops(t, f, p, narrow, scores, leaves)
	}
}

// compareLoops holds the loops of the CPU to the plain evaluator's scores and leaves: all
// rows at once, then the first few, which go one at a time.
func compareLoops[T float32 | float64](t *testing.T, f *forest.Forest, p *loops.Program, rows []T, want, wantLeaves []float64) {
	t.Helper()
	start := make([]float64, f.Outputs)
	f.Start(start)
	n := len(rows) / f.Features
	leaves := make([]float64, n*len(f.Trees))
	loops.Leaves(p, rows, leaves)
	for i := range wantLeaves {
		if leaves[i] != wantLeaves[i] {
			row := i / len(f.Trees)
			t.Fatalf("%s: row %d %v, tree %d: leaf %v, want %v", p.Loops().Name, row, rows[row*f.Features:(row+1)*f.Features], i%len(f.Trees), leaves[i], wantLeaves[i])
		}
	}
	for _, count := range []int{n, min(n, 257), min(n, 9), min(n, 1)} {
		sums, got := make([]float64, count*f.Outputs), make([]float64, count*f.Outputs)
		loops.Sums(p, rows[:count*f.Features], start, sums)
		f.Finish(forest.Margin, sums, got)
		for i := range got {
			if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
				t.Fatalf("%s, %d rows: row %d %v: score %v, want %v", p.Loops().Name, count, i/f.Outputs, rows[i/f.Outputs*f.Features:][:f.Features], got[i], want[i])
			}
		}
	}
}

// TestLower: random forests give the same leaves and the same bits.
func TestLower(t *testing.T) {
	count := 2000
	if testing.Short() {
		count = 200
	}
	for seed := range uint64(count) {
		rng := rand.New(rand.NewPCG(seed, 17))
		f := random(rng)
		rows := []int{1, 2, 63, 64, 65, 200, 512, 700}[rng.IntN(8)]
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compare(t, f, cells(rng, f, rows)) })
	}
}

func FuzzLower(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 99))
		m := random(rng)
		compare(t, m, cells(rng, m, 1+rng.IntN(130)))
	})
}

// TestRefused: what is not a sum of trees has no module.
func TestRefused(t *testing.T) {
	for name, f := range map[string]*forest.Forest{
		"minimum": {Features: 1, Outputs: 1, Base: []float64{0}, Combine: forest.Min},
		"linear":  {Features: 1, Outputs: 1, Base: []float64{0}, Linear: &forest.Linear{Weights: []float64{1}, Bias: []float64{0}}},
		"nothing": {Outputs: 1, Base: []float64{0}},
	} {
		if _, err := Lower(f); !errors.Is(err, ErrLower) {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := &forest.Forest{Features: 1, Outputs: 1, Base: []float64{0}}
	for i := range sliced.MaxCuts + 1 {
		many.Trees = append(many.Trees, forest.Tree{Weight: 1, Nodes: []forest.Node{{Test: forest.Less, Threshold: float64(i), Yes: 1, No: 2}, {Last: 1}, {}}, Values: []forest.Value{{Value: 1}}})
	}
	if _, err := Lower(many); !errors.Is(err, ErrLower) {
		t.Errorf("%d cut points: %v", len(many.Trees), err)
	}
	many.Trees = many.Trees[1:]
	m, err := Lower(many)
	if err != nil || len(m.Columns[0].Cuts) != sliced.MaxCuts {
		t.Fatalf("%d cut points: %v", len(many.Trees), err)
	}
	p, err := sliced.New(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ x, above float64 }{{0, sliced.MaxCuts}, {1, sliced.MaxCuts - 1}, {sliced.MaxCuts - 1, 1}, {sliced.MaxCuts, 0}, {math.NaN(), 0}} {
		sums := []float64{0}
		if p.Sums([]float64{tt.x}, sums); sums[0] != tt.above {
			t.Errorf("%v is below %v cuts of %d, want %v", tt.x, sums[0], sliced.MaxCuts, tt.above)
		}
	}
}
