package learnspn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// kinds are five kinds of columns that are drawn apart from all others.
func kinds(rows int, rng *rand.Rand) []column {
	columns := []column{
		{values: make([]float32, rows)}, {values: make([]float32, rows)}, {categories: 400, codes: make([]int, rows)},
		{categories: 2, codes: make([]int, rows)}, {categories: 7, codes: make([]int, rows)},
	}
	for r := range rows {
		columns[0].values[r] = float32(rng.NormFloat64())
		columns[1].values[r] = float32(math.Exp(2 * rng.NormFloat64()))
		for p := rng.Float64(); p < 0.9; p = rng.Float64() { // geometric
			columns[2].codes[r] = min(columns[2].codes[r]+1, 399)
		}
		if rng.Float64() < 0.2 {
			columns[3].codes[r] = 1
		}
		columns[4].codes[r] = rng.IntN(7)
	}
	return columns
}

// TestIndependentColumnsPart draws five kinds of independent columns, a normal one, a
// log-normal one, counts, a bit and a category, with 100 seeds: at least 99 times, all must
// part at the default threshold, whatever the number of rows.
func TestIndependentColumnsPart(t *testing.T) {
	for _, rows := range []int{200, 1000} {
		parted := 0
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, 9))
			src, leaves := tableOf(t, kinds(rows, rng)...)
			all, err := readTable(t.Context(), src, leaves)
			if err != nil {
				t.Fatal(err)
			}
			if len(components(5, rdcTest(whole(all), rdcThreshold, rng))) == 5 {
				parted++
			}
		}
		if parted < 99 {
			t.Errorf("%d rows: independent columns part in %d of 100 seeds", rows, parted)
		}
	}
}

// generator is that of testdata/rdc.py.
type generator uint64

func (g *generator) uniform() float64 {
	*g = *g*6364136223846793005 + 1442695040888963407
	return (float64(*g>>11) + 0.5) / (1 << 53)
}

func (g *generator) normal() float64 {
	u := g.uniform()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*g.uniform())
}

// pairKinds make the second column of a pair from the first and noise, with its labels.
var pairKinds = map[string]struct {
	make   func(x, e float64) float64
	labels int
}{
	"linear": {func(x, e float64) float64 { return x + 0.1*e }, 0},
	"noisy":  {func(x, e float64) float64 { return x + 2*e }, 0},
	"square": {func(x, e float64) float64 { return x*x + 0.3*e }, 0},
	"sine":   {func(x, e float64) float64 { return math.Sin(3*x) + 0.3*e }, 0},
	"exp":    {func(x, e float64) float64 { return math.Exp(x + e) }, 0},
	"bit":    {func(x, e float64) float64 { return indicate(x+0.5*e > 0.5) }, 2},
	"label":  {func(x, e float64) float64 { return min(4, max(0, math.Floor(x+0.5*e+2.5))) }, 5},
	"sign":   {func(x, e float64) float64 { return indicate(x*e > 0) }, 2},
	"count":  {func(x, e float64) float64 { return math.Floor(math.Exp(x/2+0.5*e) * 20) }, 0},
	"apart":  {func(x, e float64) float64 { return e }, 0},
}

func indicate(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// TestRDC compares the coefficient of 30 pairs with the values of testdata/rdc.txt: the exact
// largest canonical correlation, and what SPFlow's routine finds, which must agree within 1e-3
// on at least 20 pairs; on some it stops before the maximum.
func TestRDC(t *testing.T) {
	const rows, tolerance = 400, 1e-3
	text, err := os.ReadFile("testdata/rdc.txt")
	if err != nil {
		t.Fatal(err)
	}
	agree, pairs := 0, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var kind string
		var g generator
		var cca, exact float64
		if _, err := fmt.Sscan(line, &kind, &g, &cca, &exact); err != nil {
			t.Fatal(err)
		}
		of := pairKinds[kind]
		x, y := &variable{values: make([]float64, rows)}, &variable{values: make([]float64, rows)}
		for i := range x.values {
			x.values[i] = g.normal()
		}
		for i := range y.values {
			y.values[i] = float64(float32(of.make(x.values[i], g.normal())))
			x.values[i] = float64(float32(x.values[i]))
		}
		if of.labels > 0 {
			y.domain, y.codes = of.labels, make([]int32, rows)
			for i, c := range y.values {
				y.codes[i] = int32(c)
			}
			y.bin()
		}
		list := make([]int32, rows)
		for i := range list {
			list[i] = int32(i)
		}
		var bases [2][][]float64
		for i, v := range []*variable{x, y} {
			weights := make([][]float64, v.rdcInputs()+1)
			for j := range weights {
				for range rdcSines {
					weights[j] = append(weights[j], g.normal())
				}
			}
			f := rdcFeatures(v, list, weights)
			centre(f)
			bases[i] = whiten(f)
		}
		got := correlation(bases[0], bases[1])
		if !near(got, exact, tolerance) {
			t.Errorf("%s: %v (ranks %d and %d), want %v", strings.TrimSpace(line), got, len(bases[0]), len(bases[1]), exact)
		}
		pairs++
		if near(got, cca, tolerance) {
			agree++
		}
	}
	if pairs != 30 || agree < 20 {
		t.Errorf("%d of %d pairs agree with SPFlow's values", agree, pairs)
	}
	t.Logf("%d of %d pairs agree with SPFlow's values", agree, pairs)
}

// TestFeaturesOfCounts wants the features of counts, computed once for each count, to be those of
// the same numbers in a column of real ones, computed row by row.
func TestFeaturesOfCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	counts := &variable{domain: 100, ordered: true, codes: make([]int32, 300)}
	numbers := &variable{values: make([]float64, 300)}
	rows := make([]int32, 300)
	for i := range rows {
		rows[i] = int32(i)
		counts.codes[i] = int32(rng.IntN(100))
		numbers.values[i] = float64(counts.codes[i])
		if rng.IntN(10) == 0 {
			counts.codes[i], numbers.values[i] = missing, math.NaN()
		}
	}
	weights := drawWeights(1, rng)
	f, want := rdcFeatures(counts, rows, weights), rdcFeatures(numbers, rows, weights)
	for i := range rows {
		same := numbers.values[i] != numbers.values[i] && math.IsNaN(f.At(i, 0)) && math.IsNaN(want.At(i, 0))
		if !same && !slices.Equal(f.RawRowView(i), want.RawRowView(i)) {
			t.Fatalf("row %d of %v has features %v, want %v", i, numbers.values[i], f.RawRowView(i), want.RawRowView(i))
		}
	}
}

// TestSampleRows draws rows without repetition, ascending, and all of them where few are there.
func TestSampleRows(t *testing.T) {
	rows := make([]int32, 100)
	for i := range rows {
		rows[i] = int32(3 * i)
	}
	seen := map[int32]int{}
	for seed := range uint64(200) {
		out := sampleRows(rows, 10, rand.New(rand.NewPCG(seed, 1)))
		if len(out) != 10 || !slices.IsSorted(out) || len(slices.Compact(slices.Clone(out))) != 10 {
			t.Fatalf("rows %v", out)
		}
		for _, r := range out {
			seen[r]++
		}
	}
	for _, r := range rows { // 20 times on average, with a standard deviation of 4.2
		if n := seen[r]; n < 4 || n > 40 {
			t.Errorf("row %d was drawn %d times of 200", r, n)
		}
	}
	for _, most := range []int{100, 101} {
		if out := sampleRows(rows, most, nil); len(out) != 100 {
			t.Errorf("%d rows of at most %d", len(out), most)
		}
	}
}

// TestMissingCellsSayNothing removes a third of the cells of one of two columns that are one
// another's copy, and wants them dependent; shuffled, they are not.
func TestMissingCellsSayNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const rows = 600
	a, b, c := make([]float32, rows), make([]float32, rows), make([]float32, rows)
	for r, p := range rng.Perm(rows) {
		a[r] = float32(rng.NormFloat64())
		b[r], c[p] = a[r], a[r]
		if rng.IntN(3) == 0 {
			b[r], c[p] = float32(math.NaN()), float32(math.NaN())
		}
	}
	src, leaves := tableOf(t, column{values: a}, column{values: b}, column{values: c})
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	dependent := rdcTest(whole(all), rdcThreshold, rng)
	if !dependent(0, 1) || dependent(0, 2) || dependent(1, 2) {
		t.Errorf("dependent: copies %v, shuffled %v %v; want true, false, false", dependent(0, 1), dependent(0, 2), dependent(1, 2))
	}
}

// TestFewCommonRows wants a column and its copy dependent where each has a fifth of its cells, so that one row in 25 has both,
// and independent columns apart that have their cells in the same 40 of 4,000 rows.
func TestFewCommonRows(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 5))
		const rows = 4000
		columns := make([]column, 4)
		for v := range columns {
			columns[v].values = slices.Repeat([]float32{float32(math.NaN())}, rows)
		}
		for r := range rows {
			x := float32(rng.NormFloat64())
			for _, v := range []int{0, 1} {
				if rng.IntN(5) == 0 {
					columns[v].values[r] = x
				}
			}
			if r%100 == 0 {
				columns[2].values[r], columns[3].values[r] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
			}
		}
		src, leaves := tableOf(t, columns...)
		all, err := readTable(t.Context(), src, leaves)
		if err != nil {
			t.Fatal(err)
		}
		if dependent := rdcTest(whole(all), rdcThreshold, rng); !dependent(0, 1) || dependent(2, 3) {
			t.Errorf("seed %d: dependent: copies %v, independent columns %v; want true, false", seed, dependent(0, 1), dependent(2, 3))
		}
	}
}

// TestFewestCommonRows wants independent columns apart that have their cells in other rows but for a few: what these have of the
// columns' features is not of length 1.
func TestFewestCommonRows(t *testing.T) {
	const rows, categories = 1200, 16
	for _, common := range []int{0, 1, 2, 5, 10, 20, 40} {
		dependent := 0
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, uint64(common)))
			columns := make([]column, 2)
			for v := range columns {
				columns[v] = column{categories: categories, codes: make([]int, rows)}
				for r := range rows {
					if columns[v].codes[r] = rng.IntN(categories); r >= common && r%2 == v {
						columns[v].codes[r] = dataset.Missing
					}
				}
			}
			if rdcTest(whole(tableRows(t, columns...)), rdcThreshold, rng)(0, 1) {
				dependent++
			}
		}
		if dependent > 0 {
			t.Errorf("%d common rows: independent columns are dependent %d of 10 times", common, dependent)
		}
	}
}
