package pce_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/run"
)

// TestClassifyByCode classifies by code as by the tensor path, where both have the shares of the classes to float32.
func TestClassifyByCode(t *testing.T) {
	const vars, latents, classes, far = 20, 14, 3, 9 // far is a row below what modules compute
	o := structures.DefaultRATSPN()
	o.Vars, o.Latents, o.Depth, o.Seed = vars, latents, 2, 3
	o.Leaf = func(int) circuit.Leaf { return circuit.Gaussian{} }
	g, err := structures.RATSPN(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := structures.AddClass(g, vars, classes); err != nil {
		t.Fatal(err)
	}
	params := func(id circuit.NodeID, p []float32) error {
		rng := rand.New(rand.NewPCG(uint64(id), 2))
		for i := range p {
			p[i] = 0.1 + rng.Float32()
		}
		if n := &g.Nodes[id]; n.Kind == circuit.Sum {
			for row, width := 0, len(p)/n.Units; row < len(p); row += width {
				sum := float32(0)
				for _, w := range p[row:][:width] {
					sum += w
				}
				for i := range p[row:][:width] {
					p[row+i] /= sum
				}
			}
		}
		return nil
	}
	rng := rand.New(rand.NewPCG(3, 3))
	rows := make([][]float64, 530) // more than a thread takes, and no whole groups
	for r := range rows {
		rows[r] = make([]float64, vars+1)
		for v := range vars {
			rows[r][v] = 2 * rng.NormFloat64()
			if r%5 == 1 && rng.IntN(2) == 0 || r == 7 {
				rows[r][v] = math.NaN()
			}
		}
		rows[r][vars] = []float64{math.NaN(), 0, 2}[rng.IntN(3)] // which does not count
		if r == far {
			rows[r][3] = 1e9
		}
	}
	made, err := pce.New(t.Context(), g, params, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := errors.Join(made.Save(t.Context(), path), made.Close()); err != nil {
		t.Fatal(err)
	}
	answer := func(opts pce.Options, rows [][]float64) (shares [][]float64) {
		t.Helper()
		m, err := pce.Open(t.Context(), path, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for range 2 { // made, and made already
			if shares, err = m.Classify(t.Context(), rows, vars); err != nil {
				t.Fatal(err)
			}
		}
		return shares
	}
	want := answer(pce.Options{Path: run.PathTensor}, rows)
	for _, typ := range []string{"f32", "f64"} {
		opts := pce.Options{Path: run.PathCode}
		opts.Numbers.Type = typ
		all := answer(opts, rows)
		if !testing.Short() { // it takes two seconds
			opts.Device = "emulator"
			for r, shares := range answer(opts, rows[:2*far]) {
				if !slices.Equal(shares, all[r]) {
					t.Errorf("%s: row %d on the emulator: %v, want %v as on the CPU", typ, r, shares, all[r])
				}
			}
		}
		for r, shares := range all {
			sum := 0.0
			for _, got := range shares {
				sum += got
			}
			if !(math.Abs(sum-1) <= 1e-12) {
				t.Errorf("%s: the shares of row %d are %v", typ, r, shares)
			}
			for k, got := range shares {
				if r == far {
					break // the tensor path has none
				}
				if !(math.Abs(got-want[r][k]) <= 1e-5) {
					t.Fatalf("%s: row %d, class %d: %v, want %v", typ, r, k, got, want[r][k])
				}
			}
		}
	}
}

// TestClassifyByDefault: of histograms with breaks of their own classes are answered by code, in float64, where no path is chosen.
func TestClassifyByDefault(t *testing.T) {
	const classes = 3
	g, _ := histograms(t, 4)
	if err := structures.AddClass(g, g.NumVars, classes); err != nil {
		t.Fatal(err)
	}
	p, err := reference.Init(g, 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(4, 4)), 50, 0.3)
	answer := func(o pce.Options) [][]float64 {
		t.Helper()
		m, err := pce.New(t.Context(), g, p.Read, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		probabilities, err := m.Classify(t.Context(), rows, g.NumVars-1)
		if err != nil {
			t.Fatal(err)
		}
		return probabilities
	}
	same := func(a, b [][]float64) bool { return slices.EqualFunc(a, b, slices.Equal) }
	code, tensors := answer(pce.Options{Path: run.PathCode}), answer(pce.Options{Path: run.PathTensor})
	for _, o := range []pce.Options{{}, {Only: pce.QueryClass}} {
		if got := answer(o); !same(got, code) || same(got, tensors) {
			t.Errorf("%+v: not what code answers", o)
		}
	}
}

// TestManyClassesByDefault: a column of more than 1,024 categories is classified by tensors where no path is chosen, since code
// has a root for each.
func TestManyClassesByDefault(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Leaf: circuit.Categorical{Categories: 1025}},
		{Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.RealHistogram{Breaks: []float64{0.5, 1.5, 2.25}}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	p, err := reference.Init(g, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	var answers [3][][]float64
	for i, path := range []run.Path{"", run.PathTensor, run.PathCode} {
		m, err := pce.New(t.Context(), g, p.Read, pce.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if answers[i], err = m.Classify(t.Context(), [][]float64{{math.NaN(), 1}, {math.NaN(), 2}}, 0); err != nil {
			t.Fatal(err)
		}
	}
	same := func(a, b [][]float64) bool { return slices.EqualFunc(a, b, slices.Equal) }
	if !same(answers[0], answers[1]) || same(answers[0], answers[2]) {
		t.Error("not what tensors answer")
	}
}

// TestClassifiedColumnDoesNotCount wants the same classes whatever the row says in the column, on every path.
func TestClassifiedColumnDoesNotCount(t *testing.T) {
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 2, Leaf: circuit.Bernoulli{}}, {Kind: circuit.Input, Units: 2, Var: 1, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Product, Units: 2, Children: []circuit.NodeID{0, 1}}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	params := reference.Params{{0.25, 0.75, 0.5, 0.5}, {0.125, 0.875, 0.75, 0.25}, nil, {0.5, 0.5}}
	for _, path := range []run.Path{run.PathTensor, run.PathCode} {
		m, err := pce.New(t.Context(), g, params.Read, pce.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		rows := [][]float64{{1, math.NaN()}, {1, 0}, {1, 1}, {1, 3}}
		all, err := m.Classify(t.Context(), rows[:3], 1)
		if err != nil {
			t.Fatal(err)
		}
		for r := range all {
			if !slices.Equal(all[r], all[0]) {
				t.Errorf("%s: %v where the column is %v, %v where it is missing", path, all[r], rows[r][1], all[0])
			}
		}
		beyond, err := m.Classify(t.Context(), rows[3:], 1)
		if err != nil || !slices.Equal(beyond[0], all[0]) {
			t.Errorf("%s: a row that says 3: %v, %v; want %v", path, beyond, err, all[0])
		}
	}
}
