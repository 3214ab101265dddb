package run_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// writeRows writes rows under a header.
func writeRows(t *testing.T, header string, rows int, row func() []any) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(header + "\n")
	for range rows {
		cells := row()
		for i, c := range cells {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(&b, c)
		}
		b.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLogNormalColumns wants log-normal leaves to describe log-normal columns as
// well as the truth does.
func TestLogNormalColumns(t *testing.T) {
	const mu = 10
	truth := 0.0
	file := func(seed uint64, n int, count bool) string {
		rng := rand.New(rand.NewPCG(seed, 3))
		return writeRows(t, "Income,Wealth.Net", n, func() []any {
			cells := make([]any, 2)
			for i := range cells {
				z := rng.NormFloat64()
				if count {
					truth += (-z*z/2 - 0.5*math.Log(2*math.Pi) - (mu + z)) / float64(n)
				}
				cells[i] = math.Exp(mu + z)
			}
			return cells
		})
	}
	s := run.DefaultStructure()
	s.Latents = 8
	s.Leaves = map[string]run.Leaf{"Income": {Type: "log-normal"}, "Wealth.Net": {Type: "log-normal"}}
	res, err := run.Train(t.Context(), run.TrainOptions{
		Structure: s, Train: run.Files(file(1, 2000, false)), Valid: run.Files(file(2, 1000, false)), Test: run.Files(file(3, 1000, true)), Dir: t.TempDir(),
		Options: run.Options{Device: "cpu", Threads: 1},
		EM:      em.Options{Seed: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !(res.TestLL > truth-0.03) || !(res.TestLL < truth+0.03) {
		t.Errorf("test ll %v, of the truth %v", res.TestLL, truth)
	}
	m, err := pce.Open(t.Context(), filepath.Join(res.Out, run.ModelFile), run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rows, err := m.Sample(t.Context(), 2000, 1)
	if err != nil {
		t.Fatal(err)
	}
	var logs []float64
	for _, r := range rows {
		if !(r[0] > 0) {
			t.Fatalf("drew %v", r)
		}
		logs = append(logs, math.Log(r[0]))
	}
	slices.Sort(logs)
	if median := logs[len(logs)/2]; !(math.Abs(median-mu) < 0.1) { // five standard errors of a median
		t.Errorf("the median of the draws' logs is %v, want %v", median, mu)
	}
	// Beyond the domain.
	if _, err := m.LogLikelihood(t.Context(), [][]float64{{-1, 1}}); !errors.Is(err, dataset.ErrFormat) {
		t.Errorf("a negative number: %v", err)
	}
}

// TestLeavesOfColumns gives columns leaves by name, number and star.
func TestLeavesOfColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	path := writeRows(t, "a,b,c,d", 100, func() []any {
		b := rng.Float64() + 0.5
		if rng.IntN(50) == 0 {
			b = 1e-12 // nothing beside the others, and positive
		}
		return []any{rng.IntN(3), b, rng.IntN(9), -rng.Float64()}
	})
	for _, tt := range []struct {
		leaves map[string]run.Leaf
		want   string
	}{
		{nil, "categorical gaussian categorical gaussian"},
		{map[string]run.Leaf{"b": {Type: "log-normal"}, "3": {Type: "binomial"}}, "categorical log-normal binomial gaussian"},
		{map[string]run.Leaf{"a": {Type: "poisson"}, "*": {Type: "histogram", Bins: 4}}, "poisson histogram histogram histogram"},
		{map[string]run.Leaf{"c": {MinSigma: 1}}, "categorical gaussian categorical gaussian"},
		{map[string]run.Leaf{"c": {Type: "poisson", Categories: 4}}, "categorical gaussian poisson gaussian"},
		{map[string]run.Leaf{"b": {Categories: 4}}, `pce: bad options: "b" is continuous, and its own leaf has 4 categories; leave these out, or make the column discrete`},
		{map[string]run.Leaf{"c": {Categories: 4}}, `pce: bad options: "c" has the category 8, and leaves have 4 categories; give them at least 9`},
		{map[string]run.Leaf{"B": {Type: "log-normal"}}, `pce: bad options: a leaf is set for column "B", and there is none; write a name of the header, the number of a column that has none, or *`},
		{map[string]run.Leaf{"d": {Type: "log-normal"}}, `pce: bad options: "d" has the number -0.`},
		{map[string]run.Leaf{"a": {Type: "log-normal"}}, `pce: bad options: "a" has the number 0, and a log-normal leaf takes positive ones; choose another leaf, or list the number in data.missing`},
		{map[string]run.Leaf{"b": {Type: "binomial"}}, `pce: bad options: "b" is continuous, which a binomial leaf cannot describe; choose leaf type auto, gaussian, log-normal or histogram, or make the column discrete`},
		{map[string]run.Leaf{"a": {Type: "histogram", Edges: []float64{0, 1}}}, `pce: bad options: "a" is discrete, and its histogram has edges between numbers; set its type to continuous, or give its own leaf bins (in data.columns)`},
		{map[string]run.Leaf{"b": {Type: "histogram", Edges: []float64{1, 0}}}, `dataset: bad setting: "b" has the edge 0 at place 2; want ascending finite numbers`},
	} {
		s := run.DefaultStructure()
		s.Latents, s.Leaves = 2, tt.leaves
		b, err := run.Build(t.Context(), s, run.Files(path), compile.DefaultOptions())
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			names := make([]string, 4)
			for i := range b.Graph.Nodes {
				if n := &b.Graph.Nodes[i]; n.Leaf != nil {
					names[n.Var] = n.Leaf.Name()
				}
			}
			got = strings.Join(names, " ")
			b.Close()
		}
		if !strings.HasPrefix(got, tt.want) || err == nil && got != tt.want {
			t.Errorf("%v:\ngot  %s\nwant %s", tt.leaves, got, tt.want)
		}
	}
}

// TestLeafOfNumberedName wants a leaf for "1" to be that of the column with this name alone,
// not of the first one, too.
func TestLeafOfNumberedName(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	path := writeRows(t, "0,1,2", 100, func() []any { return []any{rng.Float64(), rng.Float64(), rng.Float64()} })
	src, err := dataset.Open(t.Context(), path, dataset.Options{Header: dataset.HeaderYes})
	if err != nil {
		t.Fatal(err)
	}
	s := run.DefaultStructure()
	s.Latents, s.Leaves = 2, map[string]run.Leaf{"1": {Type: "log-normal"}, "3": {Type: "histogram"}}
	b, err := run.Build(t.Context(), s, run.Table(src), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	names := make([]string, 3)
	for i := range b.Graph.Nodes {
		if n := &b.Graph.Nodes[i]; n.Leaf != nil {
			names[n.Var] = n.Leaf.Name()
		}
	}
	if got := strings.Join(names, " "); got != "gaussian log-normal histogram" {
		t.Errorf("leaves %s", got)
	}
}

// TestHistogramOverNumbers checks density, mass, edges, what is outside, marginals
// and draws of histograms over a continuous column against counts.
func TestHistogramOverNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	edges := []float64{-1, 0, 0.1, 0.5, 4}
	var xs []float64
	path := writeRows(t, "x,y", 1000, func() []any {
		x := rng.NormFloat64()
		if rng.IntN(10) == 0 {
			x = edges[rng.IntN(len(edges))] // on an edge
		}
		xs = append(xs, x)
		return []any{x, rng.IntN(2)}
	})
	s := run.DefaultStructure()
	s.Latents = 1
	const outside = 1e-3
	s.Leaves = map[string]run.Leaf{"x": {Type: "histogram", Edges: edges, Outside: outside}}
	res, err := run.Train(t.Context(), run.TrainOptions{
		Structure: s, Train: run.Files(path), Dir: t.TempDir(), Options: run.Options{Device: "cpu", Threads: 1},
		EM: em.Options{Seed: 1, Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 2, Subsets: 1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), filepath.Join(res.Out, run.ModelFile), run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	counts, inside := make([]float64, 4), 0.0
	bin := func(x float64) int {
		for i := range counts {
			if x >= edges[i] && (x < edges[i+1] || i == 3 && x == edges[4]) {
				return i
			}
		}
		return -1
	}
	for _, x := range xs {
		if k := bin(x); k >= 0 {
			counts[k]++
			inside++
		}
	}
	nan := math.NaN()
	density := func(x float64) float64 {
		ll, err := m.LogLikelihood(t.Context(), [][]float64{{x, nan}})
		if err != nil {
			t.Fatal(err)
		}
		return math.Exp(ll[0])
	}
	for _, x := range []float64{-1, -0.5, 0, 0.05, 0.1, math.Nextafter(0.5, 0) - 1e-6, 0.5, 3.9, 4, -1.00001, 4.0001, 100} {
		want := outside
		if k := bin(x); k >= 0 {
			want = counts[k] / inside / (edges[k+1] - edges[k])
		}
		if got := density(x); !(math.Abs(got/want-1) < 1e-4) {
			t.Errorf("density %v at %v, want %v", got, x, want)
		}
	}
	rows, err := m.Sample(t.Context(), 4000, 3)
	if err != nil {
		t.Fatal(err)
	}
	drawn, mean := make([]float64, 4), 0.0
	for _, r := range rows {
		k := bin(r[0])
		if k < 0 {
			t.Fatalf("drew %v", r[0])
		}
		drawn[k]++
		if k == 3 {
			mean += r[0]
		}
	}
	for k, n := range drawn {
		p := counts[k] / inside
		if !(math.Abs(n/4000-p) < 5*math.Sqrt(p*(1-p)/4000)) {
			t.Errorf("%v of 4000 draws in bin %d, want a share of %v", n, k, p)
		}
	}
	if mean /= drawn[3]; !(math.Abs(mean-2.25) < 5*3.5/math.Sqrt(12*drawn[3])) {
		t.Errorf("draws of the last bin have the mean %v, want 2.25", mean)
	}

	// Without edges there are bins of equal width over the numbers of the training.
	s.Leaves = map[string]run.Leaf{"x": {Type: "histogram", Bins: 5}}
	b, err := run.Build(t.Context(), s, run.Files(path), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	e := b.Schema.Columns[0].Edges
	if len(e) != 6 || !(math.Abs(e[0]-slices.Min(xs)) < 1e-6) || !(math.Abs(e[5]-slices.Max(xs)) < 1e-6) || !(math.Abs((e[1]-e[0])/(e[5]-e[4])-1) < 1e-9) {
		t.Errorf("edges %v", e)
	}
}

// TestOutsideHistograms completes rows with a number outside the bins of a histogram: with no
// density there they are impossible and keep their missing cells of every kind, draws and most
// probable values alike, and rows beside them have the bits that they have alone. With a
// density there they are completed.
func TestOutsideHistograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	path := writeRows(t, "x,y,z,k", 300, func() []any {
		k := rng.IntN(3)
		return []any{rng.NormFloat64() + float64(k), rng.NormFloat64(), rng.NormFloat64(), k}
	})
	for _, outside := range []float64{0, 1e-6} {
		s := run.DefaultStructure()
		s.Latents = 3
		s.Leaves = map[string]run.Leaf{"x": {Type: "histogram", Outside: outside}, "y": {Type: "histogram"}}
		b, err := run.Train(t.Context(), run.TrainOptions{
			Structure: s, Train: run.Files(path), Dir: t.TempDir(), Options: run.Options{Device: "cpu", Threads: 1},
			EM: em.Options{Seed: 1, Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 2, Subsets: 1, Pseudocount: 0.1}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		m, err := pce.Open(t.Context(), filepath.Join(b.Out, run.ModelFile), run.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		nan := math.NaN()
		rows := [][]float64{{0.5, nan, nan, nan}, {500, nan, nan, nan}, {500, nan, nan, 1}, {nan, nan, nan, nan}}
		drawn, err := m.SampleGiven(t.Context(), rows, 7)
		if err != nil {
			t.Fatal(err)
		}
		best, found, err := m.MPE(t.Context(), rows, pce.MPEOptions{Candidates: 3, Beam: 2, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		for name, got := range map[string][][]float64{"draws": drawn, "most probable values": best} {
			for r, row := range got {
				impossible := outside == 0 && (r == 1 || r == 2)
				for c, x := range row {
					if missing := x != x; missing != (impossible && rows[r][c] != rows[r][c]) {
						t.Errorf("outside %v, %s of row %d: %v; impossible %t", outside, name, r, row, impossible)
						break
					}
				}
			}
		}
		if ll := found[1].LogLikelihood; math.IsInf(ll, -1) != (outside == 0) {
			t.Errorf("outside %v: log-likelihood %v of the completion", outside, ll)
		}
		alone, err := m.SampleGiven(t.Context(), rows[:1], 7)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(alone[0], drawn[0]) {
			t.Errorf("outside %v: %v alone, %v beside impossible rows", outside, alone[0], drawn[0])
		}
	}
}

// TestTiedHistograms wants the tied steps of a hidden Markov model, which share the probabilities of bins, to have the same bins,
// whatever numbers each column has; other columns have bins of their own.
func TestTiedHistograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	path := writeRows(t, "a,b,c", 100, func() []any { return []any{rng.Float64(), 10 + rng.Float64(), 0.5} })
	for _, tied := range []bool{true, false} {
		s := run.DefaultStructure()
		s.Kind, s.Latents, s.Leaf = "hmm", 2, run.Leaf{Type: "histogram", Bins: 4}
		s.HMM.Tied = tied
		b, err := run.Build(t.Context(), s, run.Files(path), compile.DefaultOptions())
		if err != nil {
			t.Fatalf("tied %v: %v", tied, err)
		}
		defer b.Close()
		c := b.Schema.Columns
		same := slices.Equal(c[0].Edges, c[1].Edges) && slices.Equal(c[0].Edges, c[2].Edges)
		if same != tied || tied && (c[0].Edges[0] > 0.5 || c[0].Edges[4] < 10.5) {
			t.Errorf("tied %v: edges %v, %v and %v", tied, c[0].Edges, c[1].Edges, c[2].Edges)
		}
	}
}

// TestEdgesOfCloseNumbers builds histograms over columns whose numbers float64 has few others between, or none beside: they have
// fewer bins, or a wider one.
func TestEdgesOfCloseNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	path := writeRows(t, "one,large,close", 100, func() []any { return []any{2.5, 1e17, 1e9 + 1e-6*rng.Float64()} })
	s := run.DefaultStructure()
	s.Latents, s.Leaf = 2, run.Leaf{Type: "histogram"}
	b, err := run.Build(t.Context(), s, run.Files(path), compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := b.Schema.Columns
	if !slices.Equal(c[0].Edges, []float64{2, 3}) || !slices.Equal(c[1].Edges, []float64{1e17 - 16, 1e17 + 16}) || len(c[2].Edges) < 3 || len(c[2].Edges) > 17 {
		t.Errorf("edges %v, %v and %v", c[0].Edges, c[1].Edges, c[2].Edges)
	}
}

// TestTiedLabels wants tied steps to have one list of texts, so that a code is the same text in each, and refuses numbers beside
// texts. Steps that are not tied keep their own.
func TestTiedLabels(t *testing.T) {
	path := writeRows(t, "s1,s2,s3", 1, func() []any { return []any{"b", "c", "a\na,b,c\nb,b,c"} })
	for _, tied := range []bool{true, false} {
		s := run.DefaultStructure()
		s.Kind, s.Latents, s.HMM.Tied = "hmm", 2, tied
		b, err := run.Build(t.Context(), s, run.Files(path), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		var rows dataset.Batch
		if err := b.Train.Gather(t.Context(), &rows, []int{0, 1, 2}); err != nil {
			t.Fatal(err)
		}
		for v, texts := range [][]string{{"b", "a", "b"}, {"c", "b", "b"}, {"a", "c", "c"}} {
			labels := b.Schema.Columns[v].Labels
			if want := []string{"a", "b", "c"}; tied && !slices.Equal(labels, want) || !tied && len(labels) != 2 {
				t.Errorf("tied: %v: column %d has the labels %v", tied, v+1, labels)
			}
			for r, want := range texts {
				if got := labels[rows.Columns[v].Codes.At(r)]; got != want {
					t.Errorf("tied: %v: row %d of column %d is %s, want %s", tied, r+1, v+1, got, want)
				}
			}
		}
	}
	mixed := writeRows(t, "s1,s2", 1, func() []any { return []any{"b", "1\na,0"} })
	s := run.DefaultStructure()
	s.Kind, s.Latents = "hmm", 2
	_, err := run.Build(t.Context(), s, run.Files(mixed), compile.Options{})
	if !errors.Is(err, run.ErrOptions) || !strings.Contains(err.Error(), "texts") {
		t.Errorf("texts beside numbers: %v", err)
	}
}

// TestTiedLabelsOfTable wants tied steps of a program's rows, whose columns have lists of texts of their own, to be those of a file.
func TestTiedLabelsOfTable(t *testing.T) {
	path := writeRows(t, "s1,s2,s3", 1, func() []any { return []any{"b", "c", "a\na,?,c\nb,b,c"} })
	src, err := dataset.OpenAll(t.Context(), []string{path}, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rows [2]dataset.Batch
	for i, open := range []run.Rows{run.Files(path), run.Table(src)} {
		s := run.DefaultStructure()
		s.Kind, s.Latents = "hmm", 2
		b, err := run.Build(t.Context(), s, open, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for range 2 { // cells are those of the source each time
			if err := b.Train.Gather(t.Context(), &rows[i], []int{2, 0, 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for v := range rows[0].Columns {
		for r := range 3 {
			if want, got := rows[0].Columns[v].Codes.At(r), rows[1].Columns[v].Codes.At(r); got != want {
				t.Errorf("row %d of column %d has code %d, that of the file is %d", r, v+1, got, want)
			}
		}
	}
}

// TestTiedEmptyColumn wants a tied step without any cell to be like the others, of texts and of numbers.
func TestTiedEmptyColumn(t *testing.T) {
	for _, cells := range [][]any{{"", "b", "c\n,a,b\n,b,b"}, {"b", "c", "\na,b,\nb,b,"}, {"", 1.5, "2.5\n,2.5,0.5\n,4.5,1"}, {3.5, 1.5, "\n3,2.5,\n4,4.5,"}} {
		path := writeRows(t, "s1,s2,s3", 1, func() []any { return cells })
		s := run.DefaultStructure()
		s.Kind, s.Latents = "hmm", 2
		b, err := run.Build(t.Context(), s, run.Files(path), compile.Options{})
		if err != nil {
			t.Errorf("%v: %v", cells, err)
			continue
		}
		defer b.Close()
		first := b.Schema.Columns[0]
		for v, c := range b.Schema.Columns {
			if c.Kind != first.Kind || !slices.Equal(c.Labels, first.Labels) || c.Offset != first.Offset || c.Scale != first.Scale {
				t.Errorf("%v: column %d is %+v, the first %+v", cells, v+1, c, first)
			}
		}
	}
}

// TestTiedWholeNumbers wants the tied steps of a hidden Markov model to store their numbers alike also where one column has whole
// numbers alone, which are categories unless the leaf describes numbers.
func TestTiedWholeNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	path := writeRows(t, "a,b,c", 200, func() []any {
		x := 170 + 10*rng.NormFloat64()
		return []any{x, int(x), x + 0.5}
	})
	for _, kind := range []string{"gaussian", "log-normal"} {
		s := run.DefaultStructure()
		s.Kind, s.Latents, s.Leaf = "hmm", 2, run.Leaf{Type: kind}
		b, err := run.Build(t.Context(), s, run.Files(path), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		first := b.Schema.Columns[0]
		for v, c := range b.Schema.Columns {
			if c.Scale == 0 || c.Scale != first.Scale || c.Offset != first.Offset {
				t.Errorf("%s: column %d is stored in units of %v from %v, the first in %v from %v", kind, v+1, c.Scale, c.Offset, first.Scale, first.Offset)
			}
		}
		var rows dataset.Batch
		if err := b.Train.Gather(t.Context(), &rows, []int{0}); err != nil {
			t.Fatal(err)
		}
		if a, b := first.Number(rows.Columns[0].Values[0]), first.Number(rows.Columns[1].Values[0]); !(math.Abs(math.Trunc(a)-b) < 1e-3) {
			t.Errorf("%s: the first row has %v and %v", kind, a, b)
		}
	}
}

// TestBinsOfOneColumn wants a number of bins that is set for a column to hold although all others have edges, also where the column
// has categories, which have no edges between them.
func TestBinsOfOneColumn(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	path := writeRows(t, "x,y,d", 100, func() []any { return []any{2 * rng.Float64(), 100 + 50*rng.Float64(), rng.IntN(10)} })
	s := run.DefaultStructure()
	s.Latents, s.Leaf = 2, run.Leaf{Type: "histogram", Edges: []float64{0, 0.5, 1, 2}}
	s.Leaves = map[string]run.Leaf{"y": {Bins: 8}, "d": {Bins: 4}}
	b, err := run.Build(t.Context(), s, run.Files(path), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	bins := make([]int, 3)
	for i := range b.Graph.Nodes {
		if n := &b.Graph.Nodes[i]; n.Leaf != nil {
			bins[n.Var] = n.Leaf.NumParams()
		}
	}
	if edges := b.Schema.Columns[1].Edges; !slices.Equal(bins, []int{3, 8, 4}) || len(edges) != 9 || edges[0] < 100 {
		t.Errorf("%v bins, want 3, 8 and 4; the second column has the edges %v", bins, edges)
	}
}

// TestOneCategory wants a column of one text to be refused with what to choose by leaves that are of several codes.
func TestOneCategory(t *testing.T) {
	n := 0
	path := writeRows(t, "a,b", 50, func() []any { n++; return []any{n % 3, "x"} })
	for leaf, want := range map[string]string{
		"binomial":             `pce: bad options: "b" has 1 category, a binomial leaf 2 or more; choose leaf type categorical`,
		"discretised-logistic": `pce: bad options: "b" has 1 category, a discretised-logistic leaf 2 or more; choose leaf type categorical`,
	} {
		s := run.DefaultStructure()
		s.Latents, s.Leaves = 2, map[string]run.Leaf{"b": {Type: leaf}}
		if _, err := run.Build(t.Context(), s, run.Files(path), compile.DefaultOptions()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", leaf, err, want)
		}
	}
}
