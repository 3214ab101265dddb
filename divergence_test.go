package pce_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// TestDivergenceQueries compares entropy and divergence of small circuits with the sums
// over their states.
func TestDivergenceQueries(t *testing.T) {
	for seed := range uint64(8) {
		o := reference.RandomOptions{Vars: 4, MaxUnits: 8, MaxCodes: 4, Discrete: true, Positive: true}
		g, p, m := random(t, seed, o, pce.Options{})
		params, err := reference.Init(g, seed+100, nil) // the same circuit with other parameters
		if err != nil {
			t.Fatal(err)
		}
		q, err := reference.New(g, params)
		if err != nil {
			t.Fatal(err)
		}
		other, err := pce.New(t.Context(), g, params.Read, pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		states, err := reference.States(g, reference.MissingRow(g.NumVars))
		if err != nil {
			t.Fatal(err)
		}
		n, entropy, cross := 0, 0.0, 0.0
		for row := range states {
			lp, err := p.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			lq, err := q.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			n++
			entropy -= math.Exp(lp) * lp
			cross -= math.Exp(lp) * lq
		}
		e, err := m.Entropy(t.Context(), 1, 0)
		if err != nil || !e.Exact || e.Error != 0 || e.Rows != n || !near(e.Nats, entropy) {
			t.Errorf("seed %d: entropy %+v, %v; want %v of %d rows", seed, e, err, entropy, n)
		}
		d, err := m.Divergence(t.Context(), other, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d.Entropy != e || !near(d.CrossEntropy.Nats, cross) || !near(d.KL.Nats, cross-entropy) || !d.KL.Exact || d.CrossEntropy.Rows != n {
			t.Errorf("seed %d: %+v; want the cross-entropy %v and the divergence %v", seed, d, cross, cross-entropy)
		}
		self, err := m.Divergence(t.Context(), m, 1, 0)
		if err != nil || self.KL.Nats != 0 {
			t.Errorf("seed %d: %+v, %v from itself", seed, self, err)
		}
	}
}

// TestDrawnDivergence compares what is estimated of normal distributions with what is
// known of them: within five standard errors, which are those of the known variances.
func TestDrawnDivergence(t *testing.T) {
	// Mixtures of two equal units, so that nothing says that the circuit is deterministic.
	p := openText(t, "circuit 2\nu = input[2] x0 gaussian 1 2 / 1 2\na = sum u : 0.5 0.5\nb = input x1 bernoulli 0.25\np = product a b\n")
	q := openText(t, "circuit 2\nu = input[2] x0 gaussian 0 1 / 0 1\na = sum u : 0.5 0.5\nb = input x1 bernoulli 0.25\np = product a b\n")
	const n = 9000 // in several batches, the last one short
	d, err := p.Divergence(t.Context(), q, n, 7)
	if err != nil {
		t.Fatal(err)
	}
	coin := -0.25*math.Log(0.25) - 0.75*math.Log(0.75)
	entropy := 0.5*math.Log(2*math.Pi*math.E*4) + coin
	kl := math.Log(1.0/2) + (4+1)/2.0 - 0.5
	for _, tc := range []struct {
		name string
		got  pce.Estimate
		want float64
	}{{"entropy", d.Entropy, entropy}, {"cross-entropy", d.CrossEntropy, entropy + kl}, {"kl", d.KL, kl}} {
		if tc.got.Exact || tc.got.Rows != n || !(math.Abs(tc.got.Nats-tc.want) <= 5*tc.got.Error) {
			t.Errorf("%s: %+v, want %v", tc.name, tc.got, tc.want)
		}
	}
	// log p - log q = -z²/2 - log 2 + (1 + 2z)²/2, whose variance is 8.5 for a standard
	// normal z, as that of a quadratic a·z² + b·z is 2a² + b².
	if want := math.Sqrt((2*1.5*1.5 + 4) / n); !(math.Abs(d.KL.Error/want-1) < 0.1) {
		t.Errorf("standard error %v, want about %v", d.KL.Error, want)
	}
	again, err := p.Divergence(t.Context(), q, n, 7)
	if err != nil || *again != *d {
		t.Errorf("the same seed gives %+v and %+v, %v", d, again, err)
	}
	if e, err := p.Entropy(t.Context(), n, 8); err != nil || e.Nats == d.Entropy.Nats {
		t.Errorf("another seed gives the same entropy %v, %v", e, err)
	}
}

// TestDivergenceLimits looks at the ends: rows that the other model excludes, one row,
// none, and models of other columns.
func TestDivergenceLimits(t *testing.T) {
	p := openText(t, "circuit 1\na = input x0 bernoulli 0.25\n")
	q := openText(t, "circuit 1\na = input x0 bernoulli 0\n")
	d, err := p.Divergence(t.Context(), q, 5, 0)
	if err != nil || !math.IsInf(d.KL.Nats, 1) || !math.IsInf(d.CrossEntropy.Nats, 1) {
		t.Errorf("%+v, %v; want infinite divergence", d, err)
	}
	if d, err := q.Divergence(t.Context(), p, 5, 0); err != nil || d.Entropy.Nats != 0 || !near(d.KL.Nats, -math.Log(0.75)) {
		t.Errorf("%+v, %v; a certain row has no entropy", d, err)
	}
	either := openText(t, "circuit 2\na = input x0 bernoulli 0.5\nb = input[2] x1 gaussian 0 1 / 1 1\ns = sum b : 0.5 0.5\np = product a s\n")
	never := openText(t, "circuit 2\na = input x0 bernoulli 0\nb = input[2] x1 gaussian 0 1 / 1 1\ns = sum b : 0.5 0.5\np = product a s\n")
	if d, err := either.Divergence(t.Context(), never, 100, 0); err != nil || !math.IsInf(d.KL.Nats, 1) || !math.IsInf(d.CrossEntropy.Nats, 1) || !math.IsNaN(d.KL.Error) {
		t.Errorf("%+v, %v; want infinite divergence of drawn rows", d, err)
	}
	normal := openText(t, "circuit 1\na = input x0 gaussian 0 1\n")
	mixed := openText(t, "circuit 1\na = input[2] x0 gaussian 0 1 / 1 1\ns = sum a : 0.5 0.5\n")
	if e, err := mixed.Entropy(t.Context(), 1, 0); err != nil || e.Rows != 1 || e.Exact || !math.IsNaN(e.Error) {
		t.Errorf("one drawn row: %+v, %v", e, err)
	}
	if e, err := normal.Entropy(t.Context(), 1, 0); err != nil || !e.Exact || e.Rows != 0 || !near(e.Nats, 0.5+0.5*math.Log(2*math.Pi)) {
		t.Errorf("one normal leaf: %+v, %v", e, err)
	}
	for _, n := range []int{-1, 0, 1<<30 + 1} {
		if _, err := p.Entropy(t.Context(), n, 0); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("%d rows: %v", n, err)
		}
	}
	three := openText(t, "circuit 1\na = input x0 categorical categories=3 0.2 0.3 0.5\n")
	two := openText(t, "circuit 2\na = input x0 bernoulli 0.5\nb = input x1 bernoulli 0.5\np = product a b\n")
	for _, other := range []*pce.Model{three, two, normal} {
		for _, pair := range [][2]*pce.Model{{p, other}, {other, p}} {
			if _, err := pair[0].Divergence(t.Context(), pair[1], 5, 0); !errors.Is(err, pce.ErrOptions) {
				t.Errorf("models of other columns: %v", err)
			}
		}
	}
}

// TestDivergenceIsNotNegative compares circuits with such whose parameters differ by the rounding of float32, over all rows and by
// one pass: rounding left divergences of -3e-8 that were called exact.
func TestDivergenceIsNotNegative(t *testing.T) {
	for seed := range uint64(12) {
		o := reference.RandomOptions{Vars: 3, MaxUnits: 4, MaxCodes: 4, Discrete: true, Positive: true}
		g, _, p := random(t, seed, o, pce.Options{})
		params, err := reference.Init(g, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, values := range params {
			for i, x := range values {
				if x > 0 {
					values[i] = float64(math.Nextafter32(float32(x), float32(i%2)))
				}
			}
		}
		q, err := pce.New(t.Context(), g, params.Read, pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		for _, pair := range [][2]*pce.Model{{p, q}, {q, p}} {
			if d, err := pair[0].Divergence(t.Context(), pair[1], 1, 0); err != nil || !d.KL.Exact || !(d.KL.Nats >= 0 && d.KL.Nats < 1e-5) {
				t.Errorf("seed %d: %+v, %v; want nothing, and not less", seed, d, err)
			}
		}
	}
	for i := range 20 {
		normal := func(sigma float64) *pce.Model {
			return openText(t, fmt.Sprintf("circuit 1\na = input x0 gaussian 0 %v\n", sigma))
		}
		d, err := normal(1).Divergence(t.Context(), normal(1+float64(i)*0x1p-23), 1, 0)
		if err != nil || !d.KL.Exact || !(d.KL.Nats >= 0) || !(d.Entropy.Nats > 1) {
			t.Errorf("deviations that differ by %d units: %+v, %v", i, d, err)
		}
	}
	// Imported densities may integrate to less than 1. Their divergence from others that integrate to more is below 0, which rounding does not explain.
	bins := func(density float64) *pce.Model {
		return openText(t, fmt.Sprintf("circuit 1\na = input x0 real-histogram breaks=0.5,1.5,2.5 %v %v\n", density, density))
	}
	if d, err := bins(0.4).Divergence(t.Context(), bins(0.55), 1, 0); err != nil || !d.KL.Exact || !(math.Abs(d.KL.Nats-math.Log(0.4/0.55)) < 1e-6) {
		t.Errorf("densities that integrate to 0.8 and 1.1: %+v, %v", d, err)
	}
	// A density is above 1 where it likes, so its entropy is below 0.
	if e, err := openText(t, "circuit 1\na = input x0 gaussian 0 0.01\n").Entropy(t.Context(), 1, 0); err != nil || !(e.Nats < -3) {
		t.Errorf("the entropy of a narrow normal distribution: %+v, %v", e, err)
	}
	if e, err := openText(t, "circuit 1\na = input[2] x0 categorical categories=2 1 0 / 1 0\ns = sum a : 0.7 0.3\n").Entropy(t.Context(), 1, 0); err != nil || !(e.Nats >= 0) {
		t.Errorf("the entropy of a certain row: %+v, %v", e, err)
	}
}

// TestDivergenceOfRareRows excludes a row whose probability is too small for a float64, and not 0.
func TestDivergenceOfRareRows(t *testing.T) {
	const vars = 12
	circuitOf := func(children int, mass func(child, v int) float64) *pce.Model {
		text, products, weights := fmt.Sprintf("circuit %d\n", vars), "", ""
		for k := range children {
			products += fmt.Sprintf("p%d = product", k)
			for v := range vars {
				text += fmt.Sprintf("l%d_%d = input x%d bernoulli %v\n", k, v, v, mass(k, v))
				products += fmt.Sprintf(" l%d_%d", k, v)
			}
			products += "\n"
			weights += fmt.Sprint(" ", 1/float64(children))
		}
		text += products + "s = sum"
		for k := range children {
			text += fmt.Sprintf(" p%d", k)
		}
		return openText(t, text+" :"+weights+"\n")
	}
	p := circuitOf(2, func(k, _ int) float64 { return float64(k+1) * 1e-30 })
	q := circuitOf(vars, func(k, v int) float64 { // child k has all rows whose first 0 is that of variable k
		switch {
		case v < k:
			return 1
		case v == k:
			return 0
		}
		return 0.5
	})
	d, err := p.Divergence(t.Context(), q, 1, 0)
	if err != nil || !d.KL.Exact || !math.IsInf(d.KL.Nats, 1) || !math.IsInf(d.CrossEntropy.Nats, 1) || !(d.Entropy.Nats < 1e-20) {
		t.Errorf("%+v, %v; want infinite divergence", d, err)
	}
}

// TestDivergenceOfOtherColumns refuses models whose rows would be compared column by column with other columns: the same names in
// another order, and counts beside densities.
func TestDivergenceOfOtherColumns(t *testing.T) {
	open := func(leaves, names string) *pce.Model {
		path := filepath.Join(t.TempDir(), "m.spn")
		if err := os.WriteFile(path, []byte("P ProductNode(A,B){\n"+leaves+"}\n# "+names+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := pce.Open(t.Context(), path, pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	const coins = "A Bernoulli(a|p=0.9)\nB Bernoulli(b|p=0.2)\n"
	const counts, real = "A Poisson(a|mean=3)\nB Bernoulli(b|p=0.2)\n", "A Gaussian(a|mean=3;stdev=1.7)\nB Bernoulli(b|p=0.2)\n"
	const whole = "A Histogram(a|[0.,2.,40.];[0.25,0.0131578])\nB Bernoulli(b|p=0.2)\n"
	for _, tc := range []struct{ p, names, q, others, want string }{
		{coins, "a;b", coins, "b;a", `"a" is column 1 of one and column 2 of the other`},
		{counts, "a;b", real, "a;b", `"a" has probabilities of counts in one and densities in the other`},
		{real, "a;b", counts, "a;b", `"a" has probabilities of counts in one and densities in the other`},
		{counts, "a;b", whole, "a;b", ""},
		{whole, "a;b", counts, "a;b", ""},
	} {
		_, err := open(tc.p, tc.names).Divergence(t.Context(), open(tc.q, tc.others), 5, 0)
		if tc.want == "" && err != nil || tc.want != "" && (!errors.Is(err, pce.ErrOptions) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s and %s: %v; want %q", tc.p, tc.q, err, tc.want)
		}
	}
}

// TestDivergenceOfOtherCodes compares models of the same distribution whose codes of a category differ: labels in another order, and numbers
// that one model has as texts, in the order of the alphabet. Other categories are refused.
func TestDivergenceOfOtherCodes(t *testing.T) {
	mass := map[string]float64{"0": 0.05, "1": 0.4, "2": 0.1, "3": 0.02, "4": 0.03, "5": 0.05, "6": 0.05, "7": 0.05, "8": 0.05, "9": 0.1, "10": 0.1, "x": 0.1}
	open := func(labels string, named bool) *pce.Model {
		g := &circuit.Graph{NumVars: 1}
		s := &dataset.Schema{Columns: []dataset.Column{{Name: "a"}}}
		words := strings.Fields(labels)
		g.Nodes = []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: len(words)}}}
		if s.Columns[0].Categories = len(words); named {
			s.Columns[0].Labels = words
		}
		path, total := filepath.Join(t.TempDir(), "m.safetensors"), 0.0
		for _, word := range words {
			total += mass[word]
		}
		if err := run.WriteCircuit(path, g, s, func(_ circuit.NodeID, p []float64) error {
			for i, word := range words {
				p[i] = mass[word] / total
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		m, err := pce.Open(t.Context(), path, pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	const ascending, alphabet = "0 1 2 3 4 5 6 7 8 9 10", "0 1 10 2 3 4 5 6 7 8 9"
	for _, tc := range []struct {
		p, q          string
		pNamed, named bool
		want          string // of an error
	}{
		{ascending, ascending, false, false, ""},
		{ascending, alphabet, false, true, ""},
		{alphabet, ascending, true, false, ""},
		{alphabet, ascending, true, true, ""},
		{"1 2 x", "x 2 1", true, true, ""},
		{"1 2 x", "1 2 x", true, false, ""}, // texts go by their codes
		{"1 2 x", "1 2 3", true, true, `"a" has other categories`},
		{"0 1 2", "1 2 3", false, true, `"a" has other categories`},
		{"0 1 2", "0 1 2 3", false, false, "categories"},
	} {
		d, err := open(tc.p, tc.pNamed).Divergence(t.Context(), open(tc.q, tc.named), 5, 0)
		switch {
		case tc.want != "":
			if !errors.Is(err, pce.ErrOptions) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s and %s: %v, want %q", tc.p, tc.q, err, tc.want)
			}
		case err != nil || !(math.Abs(d.KL.Nats) < 1e-6) || !near(d.CrossEntropy.Nats, d.Entropy.Nats):
			t.Errorf("%s and %s: %+v, %v; want no divergence", tc.p, tc.q, d, err)
		}
	}
}

// TestDivergenceOfExcludedNumbers draws numbers that the other model's leaves exclude: the divergence is infinite.
func TestDivergenceOfExcludedNumbers(t *testing.T) {
	normal := openText(t, "circuit 1\na = input x0 gaussian 0 1\n")
	positive := openText(t, "circuit 1\na = input x0 log-normal 0 1\n")
	if d, err := normal.Divergence(t.Context(), positive, 100, 0); err != nil || !math.IsInf(d.KL.Nats, 1) || !math.IsInf(d.CrossEntropy.Nats, 1) || !(math.Abs(d.Entropy.Nats-1.42) < 0.5) {
		t.Errorf("%+v, %v; want infinite divergence, and an entropy of 1.4", d, err)
	}
	if d, err := positive.Divergence(t.Context(), normal, 100, 0); err != nil || math.IsInf(d.KL.Nats, 0) {
		t.Errorf("%+v, %v; want a finite divergence", d, err)
	}
	// A column that no leaf reads is missing in what is drawn, which excludes nothing.
	coin := openText(t, "circuit 2\na = input x0 gaussian 0 1\n")
	counts := openText(t, "circuit 2\na = input x0 gaussian 0 1\nb = input x1 poisson 3\np = product a b\n")
	if d, err := coin.Divergence(t.Context(), counts, 100, 0); err != nil || !(math.Abs(d.KL.Nats) < 1e-3) {
		t.Errorf("%+v, %v; want 0 where a column is missing", d, err)
	}
	if d, err := counts.Divergence(t.Context(), counts, 100, 0); err != nil || d.KL.Nats != 0 {
		t.Errorf("%+v, %v; want 0 from itself", d, err)
	}
	// The other way round the column counts in the one and not in the other, which made of it a divergence below 0.
	wide := openText(t, "circuit 2\na = input x0 gaussian 0 1\nb = input x1 gaussian 0 2\np = product a b\n")
	if d, err := wide.Divergence(t.Context(), coin, 100, 0); !errors.Is(err, pce.ErrOptions) || !strings.Contains(err.Error(), "reads column 2") {
		t.Errorf("%+v, %v; want an error that names the second column", d, err)
	}
}

// TestDivergenceAfterClose wants ErrClosed once either model is closed, and the context's error, where no row is drawn.
func TestDivergenceAfterClose(t *testing.T) {
	const text = "circuit 1\na = input x0 bernoulli 0.25\n"
	p, q := openText(t, text), openText(t, text)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := p.Entropy(ctx, 1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("the entropy when it was not wanted: %v", err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Entropy(t.Context(), 1, 0); !errors.Is(err, pce.ErrClosed) {
		t.Errorf("the entropy after Close: %v", err)
	}
	for _, pair := range [][2]*pce.Model{{p, q}, {q, p}, {q, q}} {
		if _, err := pair[0].Divergence(t.Context(), pair[1], 1, 0); !errors.Is(err, pce.ErrClosed) {
			t.Errorf("the divergence after Close: %v", err)
		}
	}
}

// TestDivergenceBothWays compares two models of one engine each with one another at a time, which must not wait for each other.
func TestDivergenceBothWays(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var models [2]*pce.Model
	for i := range models {
		g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}}}}
		var err error
		if models[i], err = pce.New(ctx, g, reference.Params{{0.5, 0.5}}.Read, pce.Options{Engines: 1}); err != nil {
			t.Fatal(err)
		}
		defer models[i].Close()
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 500 {
				if _, err := models[i%2].Divergence(ctx, models[(i+1+i/6)%2], 1, 0); err != nil {
					t.Errorf("a call of many: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestDivergenceOfScales draws from a model whose columns are stored in other units than
// those of the model that it is compared with.
func TestDivergenceOfScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	train := func(spread float64) *pce.Model {
		path, text := filepath.Join(t.TempDir(), "rows.csv"), "x\n"
		for range 1000 {
			text += fmt.Sprintln(1000 + spread*rng.NormFloat64())
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := pce.DefaultStructure()
		s.Latents = 1
		dir := filepath.Join(t.TempDir(), "run")
		if _, err := pce.Train(t.Context(), pce.TrainOptions{
			Structure: s, Train: pce.Files(path), EM: em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 5}}}, Dir: dir,
		}); err != nil {
			t.Fatal(err)
		}
		m, err := pce.Open(t.Context(), filepath.Join(dir, pce.ModelFile), pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		if m.Schema().Columns[0].Scale == 0 {
			t.Fatal("the column is stored as it is")
		}
		return m
	}
	p, q := train(3), train(6)
	d, err := p.Divergence(t.Context(), q, 4000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if d.KL.Exact || d.KL.Rows != 4000 {
		t.Errorf("%+v of models whose parameters speak of other numbers", d.KL)
	}
	if e, err := p.Entropy(t.Context(), 1, 0); err != nil || !e.Exact || !(math.Abs(e.Nats-d.Entropy.Nats) <= 5*d.Entropy.Error) {
		t.Errorf("an entropy of %+v, %v; of drawn rows %+v", e, err, d.Entropy)
	}
	if self, err := p.Divergence(t.Context(), p, 1, 0); err != nil || !self.KL.Exact || self.KL.Nats != 0 || self.CrossEntropy != self.Entropy {
		t.Errorf("%+v, %v of a model and itself", self, err)
	}
	want := math.Log(6.0/3) + 9.0/(2*36) - 0.5
	if !(math.Abs(d.KL.Nats-want) < 0.15) || !(math.Abs(d.Entropy.Nats-0.5*math.Log(2*math.Pi*math.E*9)) < 0.15) {
		t.Errorf("%+v of normal rows with deviations 3 and 6; want a divergence of about %v", d, want)
	}
}

// TestEntropyOfUnreadColumns wants a column that no leaf reads to add nothing to what is summed over all complete rows.
func TestEntropyOfUnreadColumns(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Categorical{Categories: 2}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0, 1}},
	}}
	params := reference.Params{{0.5, 0.5}, {0.25, 0.75}, {0.5, 0.5}}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	s := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Categories: 2}, {Name: "b", Categories: 3}}}
	if err := run.WriteCircuit(path, g, s, params.Read64); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), path, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	got, err := m.Entropy(t.Context(), 100, 1)
	if want := -0.375*math.Log(0.375) - 0.625*math.Log(0.625); err != nil || !(math.Abs(got.Nats-want) <= 1e-6) || !got.Exact || got.Rows != 2 {
		t.Errorf("%+v, %v; want exactly %v, of 2 rows", got, err, want)
	}
	d, err := m.Divergence(t.Context(), m, 100, 1)
	if err != nil || !(math.Abs(d.CrossEntropy.Nats-got.Nats) <= 1e-9) || d.KL.Nats != 0 {
		t.Errorf("%+v, %v; want the entropy, and nothing", d, err)
	}
	// So does one that only leaves read which the root does not reach.
	beside := openText(t, "circuit 2\na = input[2] x0 bernoulli 0.25 / 0.75\nb = input x1 categorical categories=3 0.2 0.3 0.5\ns = sum a : 0.5 0.5\nroot s\n")
	if got, err := beside.Entropy(t.Context(), 100, 1); err != nil || !(math.Abs(got.Nats-math.Ln2) <= 1e-6) || !got.Exact || got.Rows != 2 {
		t.Errorf("%+v, %v; want exactly %v, of 2 rows", got, err, math.Ln2)
	}
}
