package pce_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

// nans returns a row of missing cells.
func nans(n int) []float64 {
	row := make([]float64, n)
	for i := range row {
		row[i] = math.NaN()
	}
	return row
}

// near reports |got-want| ≤ 1e-5·max(1, |want|) or equality: the promise of the
// float32 path. It is false for NaN.
func near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= 1e-5*max(1, math.Abs(want))
}

// random returns a random circuit, its parameters and a model of it.
func random(t *testing.T, seed uint64, o reference.RandomOptions, opts pce.Options) (*circuit.Graph, *reference.Evaluator, *pce.Model) {
	t.Helper()
	g := reference.Random(rand.New(rand.NewPCG(seed, 1)), o)
	p, err := reference.Init(g, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := pce.New(t.Context(), g, p.Read, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return g, ev, m
}

// TestLogLikelihood compares random circuits of all leaves, with missing cells,
// with the reference, and a saved model with the one it was saved from.
func TestLogLikelihood(t *testing.T) {
	for seed := range uint64(25) {
		g, ev, m := random(t, seed, reference.RandomOptions{}, pce.Options{Rows: 7})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 2)), 20, 0.3)
		got, err := m.LogLikelihood(t.Context(), rows)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, row := range rows {
			want, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			if !near(got[i], want) {
				t.Errorf("seed %d, row %d: %v, want %v", seed, i, got[i], want)
			}
		}
		path := filepath.Join(t.TempDir(), "m.safetensors")
		if err := m.Save(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		saved, err := pce.Open(t.Context(), path, pce.Options{Rows: 7})
		if err != nil {
			t.Fatal(err)
		}
		again, err := saved.LogLikelihood(t.Context(), rows)
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("seed %d: saved model gives %v, %v; want %v", seed, again, err, got)
		}
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLogLikelihoodInto: a place of the caller's gets what LogLikelihoodBatch returns and not a number more, by tensors and by code, without
// memory of the batch's size; one that is too small is an error.
func TestLogLikelihoodInto(t *testing.T) {
	const rows = 5000
	var tensor []float64 // what the tensor path says
	for _, o := range []pce.Options{{Path: "tensor", Threads: 1}, {Path: "code", Threads: 1}} {
		g, _, _ := random(t, 3, reference.RandomOptions{}, pce.Options{})
		params, err := reference.Init(g, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := pce.New(t.Context(), g, params.Read, o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if info, err := m.Info(); err != nil || (info.Code != nil) != (o.Path == "code") {
			t.Fatalf("a model of a graph with the path %s is %+v, %v", o.Path, info, err)
		}
		b := reference.Batch(m.Schema(), reference.RandomRows(g, rand.New(rand.NewPCG(1, 2)), rows, 0.3))
		want, err := m.LogLikelihoodBatch(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range tensor {
			if !near(want[i], x) {
				t.Fatalf("row %d is %v by tensors, %v by code", i, x, want[i])
			}
		}
		tensor = want
		got := slices.Repeat([]float64{7}, rows+1)
		if err := m.LogLikelihoodInto(t.Context(), b, got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[:rows], want) || got[rows] != 7 {
			t.Errorf("%s: a place of the caller's gets other numbers", o.Path)
		}
		if err := m.LogLikelihoodInto(t.Context(), b, got[:rows-1]); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%s: room for a row less: %v, want ErrFormat", o.Path, err)
		}
		if n := testing.AllocsPerRun(20, func() {
			if err := m.LogLikelihoodInto(t.Context(), b, got); err != nil {
				t.Fatal(err)
			}
		}); o.Path == "code" && n > 40 {
			t.Errorf("%s: %v allocations for %d rows", o.Path, n, rows)
		}
	}
}

// TestNewSoftCode: a graph with the path of code and room for soft evidence, which code has not, is refused as a file is.
func TestNewSoftCode(t *testing.T) {
	g, _, _ := random(t, 3, reference.RandomOptions{}, pce.Options{})
	params, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pce.New(t.Context(), g, params.Read, pce.Options{Path: "code", Soft: true}); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("%v, want ErrOptions", err)
	}
}

// TestSaveUnreachable saves a circuit with a node that the root cannot reach,
// which has no place in the program.
func TestSaveUnreachable(t *testing.T) {
	m := openText(t, "circuit 1\na = input x0 bernoulli 0.25\nb = input x0 bernoulli 0.5\nroot a\n")
	path := filepath.Join(t.TempDir(), "m.safetensors")
	if err := m.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	saved, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	p := make([]float32, 2) // of 0 and of 1
	for id, want := range []float32{0.25, 0.5} {
		if err := saved.Params(circuit.NodeID(id), p); err != nil || p[1] != want {
			t.Errorf("node %d has %v, %v; want %v", id, p, err, want)
		}
	}
}

// TestSaveOpen saves a circuit with a node that the root cannot reach and whose parameters its file leaves open: the node is left out, in
// float32 and with all digits.
func TestSaveOpen(t *testing.T) {
	const open = "circuit 1\nb = input x0 bernoulli\na = input x0 bernoulli %s\nroot a\n"
	for _, path := range []run.Path{run.PathTensor, run.PathCode} {
		for _, p := range []string{"0.25", "0.1"} { // float32 has all digits of one
			from := filepath.Join(t.TempDir(), "m.txt")
			if err := os.WriteFile(from, fmt.Appendf(nil, open, p), 0o644); err != nil {
				t.Fatal(err)
			}
			m, err := pce.Open(t.Context(), from, pce.Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			to := filepath.Join(t.TempDir(), "m.safetensors")
			if err := m.Save(t.Context(), to); err != nil {
				t.Fatalf("%s %s: %v", path, p, err)
			}
			saved, err := pce.Open(t.Context(), to, pce.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer saved.Close()
			want, err := m.LogLikelihood(t.Context(), [][]float64{{1}})
			got, err2 := saved.LogLikelihood(t.Context(), [][]float64{{1}})
			if n := len(saved.Graph().Nodes); err != nil || err2 != nil || !near(got[0], want[0]) || n != 1 {
				t.Errorf("%s %s: %d nodes, %v for %v (%v, %v)", path, p, n, got, want, err, err2)
			}
		}
	}
}

// TestSample draws from circuits of few states and compares the shares of the
// states with their probabilities, with and without evidence.
func TestSample(t *testing.T) {
	const n = 20000
	for seed := range uint64(4) {
		_, _, m := random(t, seed, reference.RandomOptions{Vars: 3, MaxCodes: 3, Discrete: true, Positive: true}, pce.Options{})
		for _, given := range []float64{math.NaN(), 0} {
			rows := make([][]float64, n)
			for i := range rows {
				rows[i] = []float64{given, math.NaN(), math.NaN()}
			}
			drawn, err := m.SampleGiven(t.Context(), rows, seed)
			if err != nil {
				t.Fatal(err)
			}
			evidence, err := m.LogLikelihood(t.Context(), rows[:1])
			if err != nil {
				t.Fatal(err)
			}
			count := map[[3]float64]float64{}
			for _, r := range drawn {
				count[[3]float64(r)]++
			}
			for state, c := range count {
				ll, err := m.LogLikelihood(t.Context(), [][]float64{state[:]})
				if err != nil {
					t.Fatal(err)
				}
				p := math.Exp(ll[0] - evidence[0])
				// Five standard deviations of a share: one state in 10^6 fails.
				if tol := 5 * math.Sqrt(p*(1-p)/n); !(math.Abs(c/n-p) <= tol+1e-9) {
					t.Errorf("seed %d: share of %v is %v, want %v ± %.2g", seed, state, c/n, p, tol)
				}
			}
		}
	}
}

// TestSampleRows wants a row's draw to depend on seed and place alone.
func TestSampleRows(t *testing.T) {
	_, _, m := random(t, 3, reference.RandomOptions{Vars: 6}, pce.Options{Rows: 8})
	all, err := m.Sample(t.Context(), 20, 5)
	if err != nil {
		t.Fatal(err)
	}
	b := dataset.NewBatch(m.Schema(), 5)
	if err := m.SampleBatch(t.Context(), b, 5, 10); err != nil {
		t.Fatal(err)
	}
	for r, row := range reference.Rows(b) {
		if !slices.Equal(row, all[10+r]) {
			t.Errorf("row %d of the whole request is %v, alone %v", 10+r, all[10+r], row)
		}
	}
	if _, err := m.Sample(t.Context(), math.MaxInt, 0); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("samples without end: %v", err)
	}
	if _, err := m.Sample(t.Context(), -1, 0); !errors.Is(err, pce.ErrOptions) {
		t.Errorf("-1 samples: %v, want ErrOptions", err)
	}
}

// TestConcurrent asks from many goroutines and wants the answers of one.
func TestConcurrent(t *testing.T) {
	g, _, m := random(t, 9, reference.RandomOptions{Vars: 6}, pce.Options{Engines: 2, Threads: 1})
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(9, 2)), 30, 0.2)
	want, err := m.LogLikelihood(t.Context(), rows)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 5 {
				got, err := m.LogLikelihood(t.Context(), rows)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("LogLikelihood = %v, %v; want %v", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestClose(t *testing.T) {
	_, _, m := random(t, 1, reference.RandomOptions{Vars: 2}, pce.Options{})
	for range 2 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.LogLikelihood(t.Context(), nil); !errors.Is(err, pce.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

func TestModelErrors(t *testing.T) {
	g, _, m := random(t, 1, reference.RandomOptions{Vars: 2, Discrete: true}, pce.Options{})
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]float64{{0}, {0, 0, 0}, {0, 99}, {0, 0.5}, {0, -1}, {0, math.Inf(1)}} {
		if _, err := m.LogLikelihood(t.Context(), [][]float64{row}); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("row %v: %v, want ErrFormat", row, err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.LogLikelihood(canceled, [][]float64{{0, 0}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v, want context.Canceled", err)
	}
	for _, tc := range []struct {
		name string
		opts pce.Options
		want error
	}{
		{"device", pce.Options{Device: "abacus"}, kernels.ErrDevice},
		{"threads", pce.Options{Threads: -1}, pce.ErrOptions},
		{"engines", pce.Options{Engines: -1}, pce.ErrOptions},
		{"rows", pce.Options{Rows: 1 << 20}, pce.ErrOptions},
		{"memory", pce.Options{MaxMemory: 1}, kernels.ErrMemory},
		{"path", pce.Options{Path: "CODE"}, pce.ErrOptions},
		{"path of soft evidence", pce.Options{Path: "CODE", Soft: true}, pce.ErrOptions},
	} {
		if _, err := pce.New(t.Context(), g, params.Read, tc.opts); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
	if _, err := pce.Open(t.Context(), "model_test.go", pce.Options{}); !errors.Is(err, format.ErrModel) {
		t.Errorf("Open of a Go file: %v, want ErrModel", err)
	}
}

// TestInfoMemory: what an engine takes, as Info says, is within the bound that the engines keep.
func TestInfoMemory(t *testing.T) {
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }
	g, err := structures.HMM(structures.HMMOptions{Length: 200, Latents: 16, Tied: true, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	memory := func(limit int64) run.MemoryPlan {
		t.Helper()
		m, err := pce.New(t.Context(), g, params.Read, pce.Options{Device: "cpu", Threads: 1, Engines: 1, MaxMemory: limit})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		info, err := m.Info()
		if err != nil {
			t.Fatal(err)
		}
		return info.Memory
	}
	all := memory(0)
	limit := all.Total - all.Values/2
	if got := memory(limit); got.Total > limit || got.Rows >= all.Rows {
		t.Errorf("within %d bytes an engine takes %d, for %d rows of %d", limit, got.Total, got.Rows, all.Rows)
	}
}

// TestCloseInUse closes a model while many goroutines ask it: each call has the right
// answer or finds the model closed, and nothing is left in use.
func TestCloseInUse(t *testing.T) {
	for seed := range uint64(4) {
		g, _, m := random(t, seed, reference.RandomOptions{Vars: 6}, pce.Options{Engines: 2, Threads: 1})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 2)), 30, 0.2)
		want, err := m.LogLikelihood(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		answered := make(chan struct{}, 1)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for {
					got, err := m.LogLikelihood(t.Context(), rows)
					select {
					case answered <- struct{}{}:
					default:
					}
					if errors.Is(err, pce.ErrClosed) {
						return
					}
					if err != nil || !slices.Equal(got, want) {
						t.Errorf("LogLikelihood = %v, %v; want %v", got, err, want)
						return
					}
				}
			})
		}
		<-answered
		for range 2 {
			wg.Go(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if _, err := m.Sample(t.Context(), 1, 1); err != pce.ErrClosed {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
}

// TestCloseFreesTheFile wants no model file to stay open: after Close, and where Open
// fails after it has read the circuit.
func TestCloseFreesTheFile(t *testing.T) {
	const table = "/proc/self/fd"
	if _, err := os.Stat(table); err != nil {
		t.Skip("this system does not list the files that a process has open")
	}
	_, _, m := random(t, 1, reference.RandomOptions{Vars: 2}, pce.Options{})
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := m.Save(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	isOpen := func() bool {
		files, err := os.ReadDir(table)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(files, func(f os.DirEntry) bool {
			to, err := os.Readlink(filepath.Join(table, f.Name()))
			return err == nil && to == path
		})
	}
	if _, err := pce.Open(t.Context(), path, pce.Options{MaxMemory: 1}); !errors.Is(err, kernels.ErrMemory) || isOpen() {
		t.Errorf("Open without memory: %v; open: %t", err, isOpen())
	}
	o, err := pce.Open(t.Context(), path, pce.Options{})
	if err != nil || !isOpen() {
		t.Fatalf("%v; open: %t, or the test sees nothing", err, isOpen())
	}
	if err := o.Close(); err != nil || isOpen() {
		t.Errorf("after Close: %v; open: %t", err, isOpen())
	}
}

// TestBadParams wants New to refuse parameters that are none of the circuit, on every path.
func TestBadParams(t *testing.T) {
	const units = 32
	g := &circuit.Graph{NumVars: 2, Root: 3, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: units, Leaf: circuit.Bernoulli{}}, {Kind: circuit.Input, Units: units, Var: 1, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Product, Units: units, Children: []circuit.NodeID{0, 1}}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{2}},
	}}
	inf := float32(math.Inf(1))
	for _, path := range []run.Path{"", run.PathTensor, run.PathCode} {
		for _, tc := range []struct{ leaf, weight float32 }{
			{0.5, 2.0 / units}, {0.5, -1.0 / units}, {0.5, float32(math.NaN())}, {1.5, 1.0 / units}, {float32(math.NaN()), 1.0 / units}, {inf, 1.0 / units}, {0.5, 1.0 / units},
		} {
			m, err := pce.New(t.Context(), g, func(id circuit.NodeID, dst []float32) error {
				for i := range dst {
					if dst[i] = tc.leaf; g.Nodes[id].Kind == circuit.Sum {
						dst[i] = tc.weight
					}
				}
				return nil
			}, pce.Options{Path: path})
			if good := tc.leaf == 0.5 && tc.weight == 1.0/units; good != (err == nil) || !good && !errors.Is(err, circuit.ErrGraph) {
				t.Errorf("path %q, %+v: error %v", path, tc, err)
			}
			if m != nil {
				m.Close()
			}
		}
		if _, err := pce.New(t.Context(), g, nil, pce.Options{Path: path}); !errors.Is(err, circuit.ErrGraph) {
			t.Errorf("path %q, no parameters: %v, want ErrGraph", path, err)
		}
	}
}

// ownLeaf is a leaf of another package than circuit.
type ownLeaf struct{ circuit.Gaussian }

// TestOwnLeaf describes a model with a leaf of another package, which files have no name for, and draws rows for its entropy: by a pass
// the leaf's is not known.
func TestOwnLeaf(t *testing.T) {
	open := func(mean float32) *pce.Model {
		g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: ownLeaf{}}}}
		m, err := pce.New(t.Context(), g, func(_ circuit.NodeID, dst []float32) error {
			dst[0], dst[1] = mean, 1
			return nil
		}, pce.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	p, q := open(0), open(1)
	if info, err := p.Info(); err != nil || info.Structure != "" || info.Leaves["gaussian"] != 1 {
		t.Errorf("%+v, %v; want what is known", info, err)
	}
	d, err := p.Divergence(t.Context(), q, 10000, 1)
	if err != nil || d.KL.Exact || !(math.Abs(d.KL.Nats-0.5) <= 5*d.KL.Error) {
		t.Errorf("%+v, %v; want half a nat, of drawn rows", d, err)
	}
	if e, err := p.Entropy(t.Context(), 10000, 1); err != nil || e.Exact || !(math.Abs(e.Nats-1.4189) <= 5*e.Error) {
		t.Errorf("%+v, %v; want 1.4189 nats, of drawn rows", e, err)
	}
}
