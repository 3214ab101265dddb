package pce_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// network is one of SPFlow, with a histogram that has breaks of its own in each leaf.
const network = `R SumNode(0.25*A, 0.75*B){
A ProductNode(H1, X1){
H1 Histogram(count|[0., 1., 2.5];[0.5,0.25])
X1 Gaussian(x|mean=0;stdev=1)
}
B ProductNode(H2, X2){
H2 Histogram(count|[-1., 0.5];[0.6666666666666666])
X2 Gaussian(x|mean=2;stdev=0.5)
}
}
# x;count
`

// TestCodeModel opens a network that runs as code, asks it from several goroutines, and saves
// it with all of its digits.
func TestCodeModel(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "net.spn")
	if err := os.WriteFile(path, []byte(network), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(ctx, path, pce.Options{Engines: 2, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if s := m.Schema(); s.Columns[0].Name != "x" || s.Columns[1].Name != "count" {
		t.Errorf("columns %+v", s.Columns)
	}
	var rows [][]float64
	var want []float64
	for i := range 3000 {
		x, c := float64(i%7)-3, float64(i%11)/4-1
		h1, h2 := 0x1p-52, 0x1p-52
		switch {
		case c >= 0 && c < 1:
			h1 = 0.5
		case c >= 1 && c < 2.5:
			h1 = 0.25
		}
		if c < 0.5 {
			h2 = 0.6666666666666666
		}
		a, b := math.Exp(-x*x/2)/math.Sqrt(2*math.Pi), math.Exp(-2*(x-2)*(x-2))/math.Sqrt(math.Pi/2)
		if i%5 == 0 {
			x, a, b = math.NaN(), 1, 1
		}
		rows, want = append(rows, []float64{x, c}), append(want, math.Log(0.25*h1*a+0.75*h2*b))
	}
	check := func(m *pce.Model) {
		got, err := m.LogLikelihood(ctx, rows)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 1e-11) {
				t.Errorf("row %d %v: %v, want %v", i, rows[i], got[i], want[i])
				return
			}
		}
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() { check(m) })
	}
	wait.Wait()
	info, err := m.Info()
	if err != nil || info.Path != "code" || info.Code == nil || info.Memory.Total == 0 {
		t.Errorf("info %+v, %v", info, err)
	}
	for _, q := range m.Queries() {
		if !q.Allowed {
			t.Errorf("query %+v", q)
		}
	}
	code, err := pce.Open(ctx, path, pce.Options{Path: "code"})
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	for _, q := range code.Queries() {
		if q.Allowed != (q.Name == "loglik" || q.Name == "classify") {
			t.Errorf("code alone: query %+v", q)
		}
	}
	given, err := code.LogLikelihoodGiven(ctx, rows, 0)
	if err != nil {
		t.Fatal(err)
	}
	evidence := make([][]float64, len(rows))
	for i, row := range rows {
		evidence[i] = []float64{row[0], math.NaN()}
	}
	ofGiven, err := code.LogLikelihood(ctx, evidence)
	if err != nil {
		t.Fatal(err)
	}
	for i, ll := range given {
		if !(math.Abs(ll-(want[i]-ofGiven[i])) <= 1e-11) {
			t.Errorf("row %d %v: %v given its first cell, want %v", i, rows[i], ll, want[i]-ofGiven[i])
		}
	}
	_, err = code.Conditional(ctx, rows[:1], 0)
	errs := map[string]error{"conditional": err}
	_, errs["sample"] = code.Sample(ctx, 1, 1)
	_, _, errs["mpe"] = code.MPE(ctx, rows[:1], pce.DefaultMPE)
	for what, err := range errs {
		if !errors.Is(err, pce.ErrOptions) {
			t.Errorf("%s: %v, want ErrOptions", what, err)
		}
	}
	tensors, err := pce.Open(ctx, path, pce.Options{Path: "tensor"})
	if err != nil {
		t.Fatal(err)
	}
	defer tensors.Close()
	got, err := tensors.LogLikelihood(ctx, rows)
	if err != nil || !slices.EqualFunc(got, want, near) {
		t.Errorf("log-likelihoods by tensors differ by more than 1e-5; %v", err)
	}
	if _, err := m.LogLikelihood(ctx, [][]float64{{1, math.Inf(1)}}); err == nil {
		t.Error("an infinite cell is taken")
	}
	saved := filepath.Join(t.TempDir(), "net.safetensors")
	if err := m.Save(ctx, saved); err != nil {
		t.Fatal(err)
	}
	again, err := pce.Open(ctx, saved, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	check(again)
	if again.Schema().Columns[1].Name != "count" {
		t.Error("a saved network lost its names")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.LogLikelihood(ended, rows); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
	if _, err := pce.Open(ctx, path, pce.Options{MaxMemory: 1 << 20}); err == nil {
		t.Error("a limit of 1 MiB is not heeded")
	}
}

// TestCodeOfUnreadColumns wants a number in a column that the root does not read to change nothing on any path, whatever the scale
// of the column.
func TestCodeOfUnreadColumns(t *testing.T) {
	leaf := func(v int) circuit.Node {
		return circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Gaussian{}}
	}
	s := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous, Scale: 2, Offset: 1}, {Kind: dataset.Continuous, Scale: 1000, Offset: 5}}}
	for _, nodes := range [][]circuit.Node{{leaf(0)}, {leaf(0), leaf(1)}} { // without a leaf, and with one beside the root
		g, params := &circuit.Graph{NumVars: 2, Nodes: nodes}, reference.Params{{0, 1}, {0, 1}}
		path := filepath.Join(t.TempDir(), "model.safetensors")
		if err := run.WriteCircuit(path, g, s, params[:len(nodes)].Read64); err != nil {
			t.Fatal(err)
		}
		for _, by := range []run.Path{"", run.PathTensor, run.PathCode} {
			m, err := pce.Open(t.Context(), path, pce.Options{Path: by})
			if err != nil {
				t.Fatal(err)
			}
			ll, err := m.LogLikelihood(t.Context(), [][]float64{{1, 7}, {1, math.NaN()}})
			want := -0.5*math.Log(2*math.Pi) - math.Log(2)
			if err != nil || !(math.Abs(ll[0]-want) <= 1e-6) || !(math.Abs(ll[1]-want) <= 1e-6) {
				t.Errorf("%d leaves, path %q: %v, %v; want %v of both rows", len(nodes), by, ll, err, want)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
