package pce_test

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
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// TestRowQueries compares what a model is asked about rows with the reference.
func TestRowQueries(t *testing.T) {
	compared := 0
	for seed := range uint64(12) {
		g, ev, m := random(t, seed, reference.RandomOptions{Vars: 4, MaxCodes: 4, Positive: true}, pce.Options{Rows: 5})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 3)), 9, 0.3)
		given, err := m.LogLikelihoodGiven(t.Context(), rows, 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			evidence := append([]float64{}, row...)
			evidence[1], evidence[3] = math.NaN(), math.NaN()
			all, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			known, err := ev.LogLikelihood(evidence)
			if err != nil {
				t.Fatal(err)
			}
			if want := all - known; !(math.Abs(given[i]-want) <= 1e-5*max(1, math.Abs(all))) {
				t.Errorf("seed %d, row %d: %v given two columns, want %v", seed, i, given[i], want)
			}
		}
		for v, codes := range circuit.Domains(g) {
			p, err := m.Classify(t.Context(), rows, v)
			if codes <= 0 {
				if !errors.Is(err, pce.ErrOptions) {
					t.Errorf("seed %d: classes of a column without categories: %v, %v", seed, p, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				want, err := ev.Conditional(row, v)
				if err != nil {
					t.Fatal(err)
				}
				for c, x := range want {
					compared++
					if !near(p[i][c], x) {
						t.Errorf("seed %d, row %d: column %d is %d with probability %v, want %v", seed, i, v, c, p[i][c], x)
					}
				}
			}
		}
	}
	if compared < 100 {
		t.Errorf("only %d probabilities were compared", compared)
	}
}

// TestConditionalQueries compares distributions, moments and completions of a model with the
// reference.
func TestConditionalQueries(t *testing.T) {
	for seed := range uint64(10) {
		o := reference.RandomOptions{Vars: 4, MaxUnits: 8, MaxCodes: 3, Discrete: true, Positive: true}
		g, ev, m := random(t, seed, o, pce.Options{Rows: 5})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 3)), 7, 0.5)
		p, err := m.Conditional(t.Context(), rows, 2, 0)
		if err != nil {
			t.Fatal(err)
		}
		means, variances, err := m.Moments(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		full, how, err := m.MPE(t.Context(), rows, pce.MPEOptions{Candidates: 20, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		// The likeliest value of one column is that of its distribution; all other cells stay.
		alone, likely, err := m.MPE(t.Context(), rows, pce.MPEOptions{Of: []int{2}, Search: 10})
		if err != nil {
			t.Fatal(err)
		}
		codes := circuit.Domains(g)
		for i, row := range rows {
			want := slices.Clone(row)
			if math.IsNaN(row[2]) {
				want[2] = float64(run.Likeliest(p[i][:codes[2]]))
			}
			given, err := ev.LogLikelihood(want)
			if err != nil || !slices.EqualFunc(alone[i], want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) ||
				!near(likely[i].LogLikelihood, given) || !near(likely[i].Bound, given) {
				t.Errorf("seed %d, row %v: column 2 alone makes it %v with %+v, want %v with %v; %v", seed, row, alone[i], likely[i], want, given, err)
			}
			all, err := ev.Conditionals(row)
			if err != nil {
				t.Fatal(err)
			}
			if want := append(append([]float64{}, all[2]...), all[0]...); !slices.EqualFunc(p[i], want, near) || len(want) != codes[2]+codes[0] {
				t.Errorf("seed %d, row %v: %v, want %v", seed, row, p[i], want)
			}
			mean, variance, err := ev.Moments(row)
			if err != nil || !slices.EqualFunc(means[i], mean, near) || !slices.EqualFunc(variances[i], variance, near) {
				t.Errorf("seed %d, row %v: means %v and variances %v, want %v and %v, %v", seed, row, means[i], variances[i], mean, variance, err)
			}
			_, best, err := ev.MPE(row)
			if err != nil {
				t.Fatal(err)
			}
			ll, err := ev.LogLikelihood(full[i])
			if err != nil || !near(how[i].LogLikelihood, ll) || !near(ll, best) || !(how[i].Bound >= best-1e-5) {
				t.Errorf("seed %d, row %v: %v has %v, said to be %+v, the best is %v; %v", seed, row, full[i], ll, how[i], best, err)
			}
		}
	}
}

// histogram is a trained model of two columns of values, the first with bins of unequal width.
func histogram(t *testing.T, o pce.Options) *pce.Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(8, 8))
	path, text := filepath.Join(t.TempDir(), "rows.csv"), "size,height\n"
	for range 600 {
		text += fmt.Sprintf("%v,%v\n", rng.Float64()*rng.Float64(), 500+20*rng.NormFloat64())
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := pce.DefaultStructure()
	s.Latents = 2
	s.Leaves = map[string]pce.Leaf{"size": {Type: "histogram", Edges: []float64{0, 0.1, 0.5, 1}, Outside: 0.001}}
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := pce.Train(t.Context(), pce.TrainOptions{
		Structure: s, Train: pce.Files(path), EM: em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 3}}}, Dir: dir,
	}); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), filepath.Join(dir, pce.ModelFile), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// TestQueriesOfValues asks about columns that are stored in other units or as bins: answers
// are in the data's units, and agree with a sum over the log-likelihoods of values.
func TestQueriesOfValues(t *testing.T) {
	m := histogram(t, pce.Options{})
	if m.Schema().Columns[0].Edges == nil || m.Schema().Columns[1].Scale == 0 {
		t.Fatalf("columns %+v", m.Schema().Columns)
	}
	nan := math.NaN()
	for _, row := range [][]float64{{nan, nan}, {0.05, nan}, {0.7, nan}, {nan, 530}, {nan, 480}} {
		missing := 0
		if !math.IsNaN(row[0]) {
			missing = 1
		}
		// The rule of midpoints over a range that holds all of the mass.
		lo, hi, n := []float64{0, 300}[missing], []float64{1, 700}[missing], 4000
		width := (hi - lo) / float64(n)
		grid := make([][]float64, n)
		for i := range grid {
			grid[i] = append([]float64{}, row...)
			grid[i][missing] = lo + (float64(i)+0.5)*width
			if missing == 0 && math.IsNaN(row[1]) {
				grid[i][1] = nan
			}
		}
		ll, err := m.LogLikelihood(t.Context(), grid)
		if err != nil {
			t.Fatal(err)
		}
		mass, mean, square, top := 0.0, 0.0, 0.0, math.Inf(-1)
		for i, x := range ll {
			w := math.Exp(x) * width
			mass, mean, square = mass+w, mean+w*grid[i][missing], square+w*grid[i][missing]*grid[i][missing]
			top = max(top, x)
		}
		mean /= mass
		variance := square/mass - mean*mean
		p, err := m.Conditional(t.Context(), [][]float64{row}, missing)
		if err != nil {
			t.Fatal(err)
		}
		means, variances, err := m.Moments(t.Context(), [][]float64{row})
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(p[0][0]/mean-1) < 1e-3) || !(math.Abs(p[0][1]/variance-1) < 1e-2) || p[0][0] != means[0][missing] || p[0][1] != variances[0][missing] {
			t.Errorf("row %v: mean and variance %v, moments %v and %v, by values %v and %v", row, p[0], means[0], variances[0], mean, variance)
		}
		if x := row[1-missing]; !math.IsNaN(x) && (!near(means[0][1-missing], x) || variances[0][1-missing] != 0) {
			t.Errorf("row %v: the observed cell has mean %v and variance %v", row, means[0][1-missing], variances[0][1-missing])
		}
		full, how, err := m.MPE(t.Context(), [][]float64{row}, pce.DefaultMPE)
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.LogLikelihood(t.Context(), full)
		if err != nil || !(math.Abs(again[0]-how[0].LogLikelihood) < 1e-4) || !(how[0].Bound >= again[0]-1e-4) {
			t.Errorf("row %v: %v has %v, said to be %+v; %v", row, full[0], again, how[0], err)
		}
		if !math.IsNaN(row[1-missing]) && !(again[0] >= top-1e-3) {
			t.Errorf("row %v: %v has %v, the best value %v", row, full[0], again[0], top)
		}
	}
	if m.MPEExact() {
		t.Error("bins of values are said to be exact")
	}
}

// checkBoxes compares the probabilities of boxes, and of rows with likelihoods, with the sums over
// all states of a model of 16 bits.
func checkBoxes(t *testing.T, model string) {
	m, err := pce.Open(t.Context(), model, pce.Options{Soft: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.Schema()
	const vars, boxes = 16, 60
	states := dataset.NewBatch(s, 1<<vars)
	for r := range states.Rows {
		for v := range vars {
			states.Columns[v].Codes.Set(r, r>>v&1)
		}
	}
	ll, err := m.LogLikelihoodBatch(t.Context(), states)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(17, 1))
	b := dataset.NewBatch(s, boxes)
	weights := make([][vars][2]float64, boxes)
	for r := range weights {
		for v := range vars {
			var e *dataset.Evidence
			var err error
			switch x := rng.IntN(2); rng.IntN(4) {
			case 0:
				weights[r][v] = [2]float64{1, 1}
				e, err = s.Columns[v].RangeEvidence(0, 1)
			case 1:
				weights[r][v][x] = 1
				e, err = s.Columns[v].SetEvidence([]int{x})
			case 2:
				weights[r][v] = [2]float64{rng.Float64(), float64(x)}
				e, err = s.Columns[v].LikelihoodEvidence(weights[r][v][:])
			default:
				weights[r][v][x] = 1
				b.Columns[v].Codes.Set(r, x)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Columns[v].SetSoft(r, e)
		}
	}
	got, err := m.LogLikelihoodBatch(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for r, w := range weights {
		want := 0.0
		for state, l := range ll {
			p := math.Exp(l)
			for v := range vars {
				p *= w[v][state>>v&1]
			}
			want += p
		}
		if !(math.Abs(math.Exp(got[r])-want) <= 1e-5*want) {
			t.Errorf("box %d has the probability %v, its states %v", r, math.Exp(got[r]), want)
		}
	}
}

// TestNLTCSQueries asks a trained model about all variables at once and one at a time, and for
// completions.
func TestNLTCSQueries(t *testing.T) {
	const dir = "../shared/data/density/nltcs/"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("SKIPPED: no data: %v", err)
	}
	s := pce.DefaultStructure()
	s.Latents = 8
	out := filepath.Join(t.TempDir(), "run")
	if _, err := pce.Train(t.Context(), pce.TrainOptions{
		Structure: s, Train: pce.Files(dir + "nltcs.train.data.gz"), EM: em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 10, Pseudocount: 0.1}}}, Dir: out,
	}); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), filepath.Join(out, pce.ModelFile), pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	rng := rand.New(rand.NewPCG(16, 1))
	rows := make([][]float64, 40)
	for i := range rows {
		rows[i] = make([]float64, 16)
		for v := range rows[i] {
			if rows[i][v] = float64(rng.IntN(2)); rng.IntN(2) == 0 {
				rows[i][v] = math.NaN()
			}
		}
	}
	t.Run("boxes", func(t *testing.T) { checkBoxes(t, filepath.Join(out, pce.ModelFile)) })
	variables := make([]int, 16)
	for v := range variables {
		variables[v] = v
	}
	all, err := m.Conditional(t.Context(), rows, variables...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variables {
		one, err := m.Classify(t.Context(), rows, v)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rows {
			if got := all[i][2*v : 2*v+2]; math.IsNaN(row[v]) && !slices.EqualFunc(got, one[i], near) {
				t.Errorf("row %v, variable %d: %v at once, %v alone", row, v, got, one[i])
			}
		}
	}
	_, how, err := m.MPE(t.Context(), rows, pce.DefaultMPE)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, row := range rows {
		states, err := reference.States(m.Graph(), row)
		if err != nil {
			t.Fatal(err)
		}
		var full [][]float64
		for state := range states {
			full = append(full, slices.Clone(state))
		}
		ll, err := m.LogLikelihood(t.Context(), full)
		if err != nil {
			t.Fatal(err)
		}
		best := slices.Max(ll)
		if near(how[i].LogLikelihood, best) {
			found++
		}
		if !(how[i].LogLikelihood <= best+1e-4) || !(how[i].Bound >= best-1e-4) {
			t.Errorf("row %v: %+v, the best is %v", row, how[i], best)
		}
	}
	if found < len(rows)-1 {
		t.Errorf("the best completion was found in %d of %d rows", found, len(rows))
	}
	e, err := m.Entropy(t.Context(), 1, 0)
	if err != nil || !e.Exact || e.Rows != 1<<16 || !(e.Nats > 5 && e.Nats < 8) {
		t.Errorf("entropy %+v, %v; the data's is about 6 nats", e, err)
	}
}

// TestQueryRefuses wants errors for queries that cannot be answered.
func TestQueryRefuses(t *testing.T) {
	m := openText(t, "circuit 2\na = input x0 bernoulli 0.25\nb = input x1 gaussian 0 1\np = product a b\n")
	rows := [][]float64{{0, 1}}
	for _, column := range []int{-1, 1, 2} {
		if _, err := m.Classify(t.Context(), rows, column); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("classes of column %d: %v", column, err)
		}
		if column == 1 {
			continue
		}
		if _, err := m.LogLikelihoodGiven(t.Context(), rows, column); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("given column %d: %v", column, err)
		}
	}
	if _, err := m.NewQuery("fortune"); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("an unknown query: %v", err)
	}
	for kind, call := range map[string]string{pce.QueryQuantiles: "NewQuantiles", pce.QueryExpect: "NewExpectation"} {
		if _, err := m.NewQuery(kind, "1"); !errors.Is(err, pce.ErrOptions) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s by columns alone: %v, want what to call", kind, err)
		}
	}
	if q, err := m.NewQuantiles([]string{"2", "1"}, 0.25, 0.5); err != nil || !slices.Equal(q.Columns, []int{1, 0}) || !slices.Equal(q.Levels, []float64{0.25, 0.5}) {
		t.Errorf("quantiles of two columns: %+v, %v", q, err)
	}
	if _, err := m.NewQuantiles([]string{"1"}); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("quantiles at no levels: %v", err)
	}
	for _, of := range [][]int{nil, {2}, {-1}} {
		if _, err := m.Conditional(t.Context(), rows, of...); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("distributions of %v: %v", of, err)
		}
	}
	for what, call := range map[string]func() error{
		"distributions": func() error { _, err := m.Conditional(t.Context(), rows, 0, 1, 0); return err },
		"covariances":   func() error { _, err := m.Covariance(t.Context(), rows, 1, 0, 0); return err },
		"quantiles": func() error {
			_, err := m.Answer(t.Context(), &pce.Query{Kind: pce.QueryQuantiles, Columns: []int{0, 0}, Levels: []float64{0.5}}, dataset.NewBatch(m.Schema(), 1))
			return err
		},
	} {
		if err := call(); !errors.Is(err, pce.ErrOptions) || !strings.Contains(err.Error(), "column 0, counted from 0, is listed twice") {
			t.Errorf("%s of one column twice: %v", what, err)
		}
	}
	for _, n := range []int{-1, 1<<20 + 1} {
		for _, o := range []pce.MPEOptions{{Candidates: n}, {Beam: n}, {Search: n}, {Of: []int{0, n}}} {
			if _, _, err := m.MPE(t.Context(), rows, o); !errors.Is(err, pce.ErrOptions) {
				t.Errorf("%+v: %v", o, err)
			}
		}
	}
	if p, err := m.Conditional(t.Context(), nil, 0); err != nil || len(p) != 0 {
		t.Errorf("no rows: %v, %v", p, err)
	}
	if full, how, err := m.MPE(t.Context(), nil, pce.DefaultMPE); err != nil || len(full) != 0 || len(how) != 0 {
		t.Errorf("no rows: %v, %v, %v", full, how, err)
	}
	if p, err := m.Classify(t.Context(), nil, 0); err != nil || len(p) != 0 {
		t.Errorf("no rows: %v, %v", p, err)
	}
	if ll, err := m.LogLikelihoodGiven(t.Context(), rows); err != nil || len(ll) != 1 || !near(ll[0], math.Log(0.75)-0.5-0.5*math.Log(2*math.Pi)) {
		t.Errorf("given nothing: %v, %v", ll, err)
	}
}

// TestClassifyQueriesOfSeveralCircuits joins a circuit for each class under one root, and wants
// Bayes' rule over the circuits alone.
func TestClassifyQueriesOfSeveralCircuits(t *testing.T) {
	alone := []string{"bernoulli 0.25", "bernoulli 0.5", "bernoulli 0.875"}
	prior := []float64{0.5, 0.125, 0.375}
	joint, roots := "circuit 2\n", ""
	for c, leaf := range alone {
		joint += fmt.Sprintf("c%d = input x0 indicator codes=3 value=%d\nx%d = input x1 %s\np%d = product c%d x%d\n", c, c, c, leaf, c, c, c)
		roots += fmt.Sprintf(" p%d", c)
	}
	m := openText(t, joint+"s = sum"+roots+" : 0.5 0.125 0.375\n")
	rows := [][]float64{{math.NaN(), 0}, {2, 1}, {math.NaN(), math.NaN()}}
	got, err := m.Classify(t.Context(), rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	for r, row := range rows {
		want, total := make([]float64, len(alone)), 0.0
		for c, leaf := range alone {
			of := openText(t, "circuit 1\nx = input x0 "+leaf+"\n")
			ll, err := of.LogLikelihood(t.Context(), [][]float64{{row[1]}})
			if err != nil {
				t.Fatal(err)
			}
			want[c] = prior[c] * math.Exp(ll[0])
			total += want[c]
		}
		for c := range want {
			if !near(got[r][c], want[c]/total) {
				t.Errorf("row %v: class %d has %v, want %v", row, c, got[r][c], want[c]/total)
			}
		}
	}
}

// TestMalformedBatches: every call that takes a batch refuses one without a cell for each row, and every query is checked.
func TestMalformedBatches(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 3}},
		{Kind: circuit.Input, Units: 1, Var: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	m, err := pce.New(t.Context(), g, start(t, g), pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	whole := func() *dataset.Batch { return dataset.NewBatch(m.Schema(), 4) }
	soft := func(e dataset.Evidence) func(b *dataset.Batch) {
		return func(b *dataset.Batch) { b.Columns[0].SetSoft(2, &e) }
	}
	product, err := run.NewExpectation(m.Schema(), []string{"$1*$2"})
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(b *dataset.Batch) error{
		"loglik": func(b *dataset.Batch) error { _, err := m.LogLikelihoodBatch(t.Context(), b); return err },
		"sample": func(b *dataset.Batch) error { return m.SampleBatch(t.Context(), b, 1, 0) },
		"mpe":    func(b *dataset.Batch) error { _, err := m.MPEBatch(t.Context(), b, run.DefaultMPE, 0); return err },
	}
	for _, q := range []*pce.Query{
		{Kind: pce.QueryLogLikelihood}, {Kind: pce.QueryConditional, Columns: []int{1}}, {Kind: pce.QueryMoments}, {Kind: pce.QueryClass, Columns: []int{0}},
		{Kind: pce.QueryCovariance, Columns: []int{0, 1}}, {Kind: pce.QueryQuantiles, Columns: []int{0}, Levels: []float64{0.5}}, product,
	} {
		calls[q.Kind+" query"] = func(b *dataset.Batch) error { _, err := m.Answer(t.Context(), q, b); return err }
	}
	for name, call := range calls {
		if err := call(whole()); err != nil {
			t.Errorf("%s of a whole batch: %v", name, err)
		}
		if err := call(nil); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s of no batch: %v, want ErrFormat", name, err)
		}
		for fault, spoil := range map[string]func(b *dataset.Batch){
			"more rows than cells":  func(b *dataset.Batch) { b.Rows = 8 },
			"fewer than no rows":    func(b *dataset.Batch) { b.Rows = -1 },
			"a short column":        func(b *dataset.Batch) { b.Columns[1] = dataset.NewBatch(m.Schema(), 3).Columns[1] },
			"a column is not there": func(b *dataset.Batch) { b.Columns = b.Columns[:1] },
			"a column too many":     func(b *dataset.Batch) { b.Columns = append(b.Columns, b.Columns[0]) },
			"little evidence":       func(b *dataset.Batch) { b.Columns[0].Soft.Of = make([]uint32, 3) },
			"evidence beyond all":   func(b *dataset.Batch) { b.Columns[0].Soft.Of = slices.Repeat([]uint32{math.MaxUint32}, b.Rows) },
			"evidence of nothing": func(b *dataset.Batch) {
				b.Columns[0].Soft = dataset.SoftCells{Of: slices.Repeat([]uint32{1}, b.Rows), List: []*dataset.Evidence{nil}}
			},
			"evidence without runs":     soft(dataset.Evidence{Runs: []dataset.Run{}}),
			"evidence of numbers":       soft(dataset.Evidence{Low: 0, High: 1}),
			"a run without likelihood":  soft(dataset.Evidence{Runs: []dataset.Run{{First: 0, Last: 1}}}),
			"a run below 0":             soft(dataset.Evidence{Runs: []dataset.Run{{First: -1, Last: 1, Likelihood: 1}}}),
			"a run beyond the last":     soft(dataset.Evidence{Runs: []dataset.Run{{First: 0, Last: 3, Likelihood: 1}}}),
			"runs that overlap":         soft(dataset.Evidence{Runs: []dataset.Run{{First: 0, Last: 1, Likelihood: 1}, {First: 1, Last: 2, Likelihood: 1}}}),
			"a likelihood that is none": soft(dataset.Evidence{Runs: []dataset.Run{{First: 0, Last: 1, Likelihood: math.NaN()}}}),
		} {
			b := whole()
			spoil(b)
			if err := call(b); !errors.Is(err, dataset.ErrFormat) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: %v, want one line of ErrFormat", name, fault, err)
			}
		}
	}
	if _, err := m.Divergence(t.Context(), nil, 10, 0); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("from no model: %v, want ErrOptions", err)
	}
	if _, err := pce.NewExpectation(nil, m); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("without a forest: %v, want ErrOptions", err)
	}
	for name, q := range map[string]*pce.Query{
		"a column beyond the last": {Kind: pce.QueryConditional, Columns: []int{77}}, "an unknown kind": {Kind: "bogus"}, "a kind without a name": {}, "no query": nil,
		"no class": {Kind: pce.QueryClass}, "levels beyond 1": {Kind: pce.QueryQuantiles, Columns: []int{0}, Levels: []float64{2}},
	} {
		if _, err := m.Answer(t.Context(), q, whole()); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("%s: %v, want ErrOptions", name, err)
		}
	}
}
