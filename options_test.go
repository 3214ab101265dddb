package pce_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/kernels"
)

// start returns random parameters.
func start(t *testing.T, g *circuit.Graph) circuit.ParamFunc {
	t.Helper()
	p, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Read
}

// TestKernelPath evaluates rows on every path of this machine. The environment
// names one for those who name none.
func TestKernelPath(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 6, Latents: 40, Tied: true, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }})
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]float64{{0, 1, 2, 0, 1, 2}, {2, 2, math.NaN(), 1, 0, 0}, {1, 1, 1, 1, 1, 1}}
	evaluate := func(env, path string) []float64 {
		t.Helper()
		t.Setenv("PCE_CPU", env)
		m, err := pce.New(t.Context(), g, start(t, g), pce.Options{Device: "cpu", KernelPath: path})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ll, err := m.LogLikelihood(t.Context(), rows)
		if err != nil {
			t.Fatal(err)
		}
		return ll
	}
	same := func(a, b []float64) bool {
		for i := range a {
			if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
				return false
			}
		}
		return true
	}
	paths := pce.KernelPaths()
	if n := len(paths); n == 0 || paths[n-1] != "generic" {
		t.Fatalf("paths %v", paths)
	}
	best := evaluate("", "")
	if !same(best, evaluate("", paths[0])) {
		t.Errorf("%s gives other bits than the best", paths[0])
	}
	differ := len(paths) == 1
	for _, path := range paths {
		ll := evaluate("", path)
		for i := range ll {
			if !near(ll[i], best[i]) {
				t.Errorf("%s, row %d: %v, want %v", path, i, ll[i], best[i])
			}
		}
		differ = differ || !same(ll, best)
		if !same(ll, evaluate(path, "")) {
			t.Errorf("%s from the environment gives other bits", path)
		}
		if !same(ll, evaluate(paths[0], path)) {
			t.Errorf("the environment has its way over %s", path)
		}
	}
	if !differ {
		t.Errorf("the paths %v give the same bits; nothing was chosen", paths)
	}
}

// TestBadKernelPath refuses paths that are not there, and any where the CPU does
// not compute.
func TestBadKernelPath(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	for _, tc := range []struct {
		opts  pce.Options
		words string
	}{
		{pce.Options{Device: "cpu", KernelPath: "mmx"}, `"mmx" on this machine; use `},
		{pce.Options{Device: "emulator", KernelPath: "generic"}, `kernel path "generic" on device "emulator"`},
	} {
		_, err := pce.New(t.Context(), g, start(t, g), tc.opts)
		if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), tc.words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", tc.opts, err)
		}
	}
}
