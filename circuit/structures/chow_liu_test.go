package structures

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// directInformation is the definition: soft counts of the rows in which both
// are observed, where assign(v, bin) spreads a bin over all bins.
func directInformation(a, b *binned, sigma float64) float64 {
	assign := func(v *binned, bin int) []float64 {
		w := make([]float64, v.missing())
		var sum float64
		for k := range w {
			d := float64(k - bin)
			switch {
			case k == bin:
				w[k] = 1
			case v.smooth && sigma > 0 && math.Abs(d) <= 4*sigma:
				w[k] = math.Exp(-d * d / (2 * sigma * sigma))
			}
			sum += w[k]
		}
		for k := range w {
			w[k] /= sum
		}
		return w
	}
	joint := make([][]float64, a.missing())
	for i := range joint {
		joint[i] = make([]float64, b.missing())
	}
	row, col := make([]float64, a.missing()), make([]float64, b.missing())
	var total float64
	for r := range a.bin {
		if int(a.bin[r]) == a.missing() || int(b.bin[r]) == b.missing() {
			continue
		}
		total++
		for i, wi := range assign(a, int(a.bin[r])) {
			for j, wj := range assign(b, int(b.bin[r])) {
				joint[i][j] += wi * wj
				row[i] += wi * wj
				col[j] += wi * wj
			}
		}
	}
	var mi float64
	for i := range joint {
		for j, x := range joint[i] {
			if x > 0 {
				mi += x / total * math.Log(x*total/(row[i]*col[j]))
			}
		}
	}
	return mi
}

// mixed returns columns of every kind with missing cells, some nearly always at
// one code, some missing more often than anything else.
func mixed(rows int) *table {
	rng := rand.New(rand.NewPCG(3, 4))
	t := &table{}
	hidden := make([]float64, rows)
	for r := range hidden {
		hidden[r] = rng.Float64()
	}
	codes := func(categories int, labels []string, missing float64, of func(h float64) float64) {
		c := make([]int, rows)
		for r, h := range hidden {
			c[r] = min(max(int(of(h)), 0), categories-1)
			if rng.Float64() < missing {
				c[r] = dataset.Missing
			}
		}
		t.addCodes(categories, labels, c)
	}
	codes(2, nil, 0, func(h float64) float64 { return h + rng.Float64() })
	codes(2, nil, 0.2, func(h float64) float64 { return h*h + 0.3*rng.Float64() + 0.4 })
	codes(2, nil, 0, func(float64) float64 { return 1 }) // constant
	codes(3, []string{"a", "b", "c"}, 0.7, func(h float64) float64 { return 3 * h })
	codes(256, nil, 0, func(h float64) float64 { return 300*h*rng.Float64() - 60 }) // pixels, often 0
	codes(256, nil, 0.1, func(h float64) float64 { return 255 * h })
	codes(40, make([]string, 40), 0, func(h float64) float64 { return 40 * h * rng.Float64() })
	for _, missing := range []float64{0, 0.6} {
		v := make([]float32, rows)
		for r, h := range hidden {
			v[r] = float32(math.Exp(9 * (h + 0.1*rng.NormFloat64())))
			if rng.Float64() < missing {
				v[r] = float32(math.NaN())
			}
		}
		t.addValues(v)
	}
	few := make([]float32, rows)
	for r, h := range hidden {
		few[r] = float32(math.Floor(5*h)) / 2
	}
	t.addValues(few)
	return t
}

func TestMutualInformation(t *testing.T) {
	src := mixed(300)
	for _, softness := range []float64{0, 0.5, 9} {
		opts := DefaultChowLiu()
		opts.Softness = softness
		sample, err := sampleBinned(t.Context(), src, opts)
		if err != nil {
			t.Fatal(err)
		}
		mi, err := MutualInformation(t.Context(), src, opts)
		if err != nil {
			t.Fatal(err)
		}
		positive := 0
		for i := range sample {
			for j := range sample {
				want := 0.0
				if i != j {
					want = directInformation(&sample[i], &sample[j], softness)
				}
				// About 1e3 terms x ln x / N, each off by 3e-13 of x/N.
				if got := mi.At(i, j); !(math.Abs(got-want) <= 1e-11) {
					t.Errorf("softness %v: information of columns %d and %d is %v, want %v", softness, i, j, got, want)
				}
				if want > 0.01 {
					positive++
				}
			}
		}
		if positive < 20 {
			t.Errorf("softness %v: only %d pairs inform on each other; the test is too easy", softness, positive)
		}
	}
}

// TestHandMutualInformation has numbers that were worked out by hand.
func TestHandMutualInformation(t *testing.T) {
	src := &table{}
	src.addCodes(2, nil, []int{0, 0, 1, 1})
	src.addCodes(2, nil, []int{1, 1, 0, 0})               // the other way round
	src.addCodes(2, nil, []int{0, 1, 0, 1})               // independent of both
	src.addCodes(2, nil, []int{0, 0, 1, dataset.Missing}) // as column 0 where observed
	mi, err := MutualInformation(t.Context(), src, DefaultChowLiu())
	if err != nil {
		t.Fatal(err)
	}
	third := math.Log(3) - 2*math.Log(2)/3 // entropy of (2/3, 1/3)
	for _, tc := range []struct {
		i, j int
		want float64
	}{{0, 1, math.Ln2}, {0, 2, 0}, {1, 2, 0}, {0, 3, third}, {1, 3, third}} {
		if got := mi.At(tc.i, tc.j); !(math.Abs(got-tc.want) <= 1e-12) {
			t.Errorf("information of columns %d and %d is %v, want %v", tc.i, tc.j, got, tc.want)
		}
	}
}

// TestRareColumns has columns with a cell in one row of 50, each of which is nearly a copy of one that has all. In the tree each is
// beside that one: the one or two rows in which two of them are observed say nothing, however much information these seem to have.
func TestRareColumns(t *testing.T) {
	const rows, dense, rare = 4000, 4, 16
	rng := rand.New(rand.NewPCG(13, 14))
	columns := make([][]int, dense+rare)
	for v := range columns {
		columns[v] = make([]int, rows)
	}
	for r := range rows {
		for v := range columns {
			switch {
			case v < dense:
				columns[v][r] = rng.IntN(2)
			case rng.IntN(50) > 0:
				columns[v][r] = dataset.Missing
			case rng.IntN(20) == 0:
				columns[v][r] = 1 - columns[v%dense][r]
			default:
				columns[v][r] = columns[v%dense][r]
			}
		}
	}
	src := &table{}
	for _, c := range columns {
		src.addCodes(2, nil, c)
	}
	tree, err := ChowLiu(t.Context(), src, DefaultChowLiu())
	if err != nil {
		t.Fatal(err)
	}
	for v := dense; v < dense+rare; v++ {
		if of := v % dense; tree.Parent[v] != of && tree.Parent[of] != v {
			t.Errorf("column %d, a copy of %d, has the parent %d, and that %d", v, of, tree.Parent[v], tree.Parent[of])
		}
	}
}

// TestWorkers checks that the number of goroutines changes no bit.
func TestWorkers(t *testing.T) {
	src := mixed(500)
	var want *Information
	for _, workers := range []int{1, 2, 3, 16} {
		opts := DefaultChowLiu()
		opts.Workers = workers
		mi, err := MutualInformation(t.Context(), src, opts)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = mi
		}
		for i := range mi.Vars() {
			for j := range mi.Vars() {
				if math.Float64bits(mi.At(i, j)) != math.Float64bits(want.At(i, j)) {
					t.Errorf("%d workers: information of columns %d and %d is %v, not %v", workers, i, j, mi.At(i, j), want.At(i, j))
				}
			}
		}
	}
}

// TestMaximumSpanningTree compares with all trees over up to 6 variables; small
// integer weights make ties.
func TestMaximumSpanningTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n <= 6; n++ {
		for range 30 {
			w := newInformation(n)
			for i := range n {
				for j := range i {
					*w.pair(i, j) = float64(rng.IntN(5))
				}
			}
			weight := func(edges [][2]int) (sum float64) {
				for _, e := range edges {
					sum += w.At(e[0], e[1])
				}
				return sum
			}
			got := SpanningTree(w.Vars(), w.At)
			if _, err := NewTree(n, got); err != nil {
				t.Fatal(err)
			}
			best := 0.0
			for code := range int(math.Pow(float64(n), float64(max(n-2, 0)))) {
				seq := make([]int, max(n-2, 0))
				for i := range seq {
					seq[i], code = code%n, code/n
				}
				if n > 1 {
					best = max(best, weight(decodePruefer(n, seq)))
				}
			}
			if weight(got) != best {
				t.Fatalf("n=%d: tree %v of weight %v, best %v", n, got, weight(got), best)
			}
		}
	}
	// All equal: every variable hangs from variable 0.
	for _, e := range SpanningTree(5, newInformation(5).At) {
		if e[0] != 0 {
			t.Errorf("tie went to edge %v, want one from 0", e)
		}
	}
}

// TestChowLiu learns the tree that the data were drawn from.
func TestChowLiu(t *testing.T) {
	want, err := RandomTreeInner(30, 14, 9)
	if err != nil {
		t.Fatal(err)
	}
	_, order, err := want.walk()
	if err != nil {
		t.Fatal(err)
	}
	const rows = 30000
	rng := rand.New(rand.NewPCG(7, 8))
	columns := make([][]int, 30)
	for _, v := range slices.Backward(order) {
		columns[v] = make([]int, rows)
		for r := range rows {
			columns[v][r] = rng.IntN(2)
			if p := want.Parent[v]; p >= 0 && rng.Float64() < 0.6 {
				columns[v][r] = columns[p][r]
			}
		}
	}
	src := &table{}
	for _, c := range columns {
		src.addCodes(2, nil, c)
	}
	got, err := ChowLiu(t.Context(), src, DefaultChowLiu())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Parent, want.Parent) {
		t.Errorf("learned %v, want %v", got.Parent, want.Parent)
	}
}

func TestSampleRows(t *testing.T) {
	for _, tc := range []struct{ n, most int }{{0, 5}, {5, 5}, {5, 9}, {100, 1}, {100, 99}, {1 << 40, 50}} {
		rows := sampleRows(tc.n, tc.most, 1)
		if len(rows) != min(tc.n, tc.most) || !slices.IsSorted(rows) || len(slices.Compact(slices.Clone(rows))) != len(rows) {
			t.Errorf("sampleRows(%d, %d) = %v", tc.n, tc.most, rows)
		}
		if len(rows) > 0 && (rows[0] < 0 || rows[len(rows)-1] >= tc.n) {
			t.Errorf("sampleRows(%d, %d) leaves the source: %v", tc.n, tc.most, rows)
		}
	}
	if a, b := sampleRows(1000, 100, 1), sampleRows(1000, 100, 2); slices.Equal(a, b) {
		t.Error("the sample does not depend on the seed")
	}
	hits := make([]int, 10)
	for seed := range uint64(2000) {
		for _, r := range sampleRows(10, 3, seed) {
			hits[r]++
		}
	}
	for r, h := range hits { // 600 expected, standard deviation 20
		if h < 500 || h > 700 {
			t.Errorf("row %d drawn %d times of 2000, want about 600", r, h)
		}
	}
}

func TestFastLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for i := range 100000 {
		x := math.Exp(1400*rng.Float64() - 700)
		if i%2 == 0 {
			x = 20000 * rng.Float64()
		}
		// 3e-13 for the cut series, 2 ulp of the largest term.
		if got, want := fastLog(x), math.Log(x); !(math.Abs(got-want) <= 3e-13+4e-16*math.Abs(want)) {
			t.Fatalf("fastLog(%v) = %v, want %v", x, got, want)
		}
	}
}

// short is a source whose batches lack a row.
type short struct{ *table }

func (s short) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	return s.table.Gather(ctx, b, rows[1:])
}

func TestBadChowLiu(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	wild := &table{}
	wild.addCodes(2, nil, []int{0, 1, 2})
	wildLabel := &table{}
	wildLabel.addCodes(40, make([]string, 40), []int{0, 1, 40})
	empty := &table{}
	empty.addCodes(2, nil, nil)
	for i, tc := range []struct {
		ctx  context.Context
		src  dataset.Source
		edit func(*ChowLiuOptions)
		want error
	}{
		{t.Context(), mixed(20), func(*ChowLiuOptions) {}, nil},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.Bins = 254 }, nil},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.Bins = 255 }, ErrOptions},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.Bins = 1 }, ErrOptions},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.Softness = math.NaN() }, ErrOptions},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.Softness = -1 }, ErrOptions},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.MaxRows = 0 }, ErrOptions},
		{t.Context(), mixed(20), func(o *ChowLiuOptions) { o.Workers = 0 }, ErrOptions},
		{t.Context(), empty, func(*ChowLiuOptions) {}, ErrData},
		{t.Context(), &table{code: [][]int{{1}}, value: [][]float32{nil}}, func(*ChowLiuOptions) {}, ErrData},
		{t.Context(), nil, func(*ChowLiuOptions) {}, ErrData},
		{t.Context(), (*dataset.Table)(nil), func(*ChowLiuOptions) {}, ErrData},
		{t.Context(), short{mixed(20)}, func(*ChowLiuOptions) {}, dataset.ErrFormat},
		{t.Context(), wild, func(*ChowLiuOptions) {}, ErrData},
		{t.Context(), wildLabel, func(*ChowLiuOptions) {}, ErrData},
		{cancelled, mixed(20), func(*ChowLiuOptions) {}, context.Canceled},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			opts := DefaultChowLiu()
			tc.edit(&opts)
			if _, err := ChowLiu(tc.ctx, tc.src, opts); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}
