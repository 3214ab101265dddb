package spn_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/kernels/simt"
)

// TestChoice: float32 is taken where its bound, in the units of the choice, is at most the largest error, on
// both sides of it, and refused where it was asked for and is not.
func TestChoice(t *testing.T) {
	g, params := histograms(rand.New(rand.NewPCG(1, 4)), 3, true)
	compile := func(c spn.Choice) (*spn.Program, error) { return spn.CompileFor(g, params.Read64, c) }
	typ := func(c spn.Choice) simt.Type {
		t.Helper()
		p, err := compile(c)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		return p.Type
	}
	if got := typ(spn.Choice{}); got != simt.F64 {
		t.Errorf("no error is allowed: %v, want f64", got)
	}
	if got := typ(spn.Choice{Type: "f32"}); got != simt.F32 {
		t.Errorf("f32 by name: %v", got)
	}
	f32, err := compile(spn.Choice{Type: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	lls, _ := run(t, f32, [][]float64{{0, 0, 0}, {1, 2, 3}, {-9, 0, 1}, {math.NaN(), math.NaN(), math.NaN()}, {1, 1, 1}})
	for _, kind := range []spn.ErrorKind{spn.Absolute, spn.Relative, spn.AbsoluteLog} {
		lo, hi := 0.0, 1.0 // f64 and f32
		for range 60 {
			mid := (lo + hi) / 2
			if typ(spn.Choice{Error: kind, MaxError: mid}) == simt.F32 {
				hi = mid
			} else {
				lo = mid
			}
		}
		if hi > 1e-4 || hi < 1e-8 {
			t.Errorf("%s: f32 from %v on", kind, hi)
		}
		for _, ll := range lls { // of which one is outside of a histogram
			if ll < f32.Least {
				continue
			}
			within := f32.Bound.Of(ll)
			if kind != spn.AbsoluteLog {
				within = math.Expm1(within)
			}
			if kind == spn.Absolute {
				within *= math.Exp(ll)
			}
			if within > hi {
				t.Errorf("%s: f32 from %v on, and a row of %v nats is within %v", kind, hi, ll, within)
			}
		}
		if _, err := compile(spn.Choice{Type: "f32", Error: kind, MaxError: lo}); !errors.Is(err, spn.ErrOptions) {
			t.Errorf("%s: f32 with a largest error of %v: %v, want ErrOptions", kind, lo, err)
		}
		if got := typ(spn.Choice{Type: "f32", Error: kind, MaxError: hi}); got != simt.F32 {
			t.Errorf("%s: %v with a largest error of %v", kind, got, hi)
		}
		if got := typ(spn.Choice{Type: "f64", Error: kind, MaxError: 1}); got != simt.F64 {
			t.Errorf("%s: %v, want f64 by name", kind, got)
		}
	}
	for _, c := range []spn.Choice{{Type: "i32"}, {Error: "cubic"}, {MaxError: -1}, {MaxError: math.NaN()}, {MaxError: math.Inf(1)}, {Space: "cubic"}} {
		if _, err := compile(c); !errors.Is(err, spn.ErrOptions) {
			t.Errorf("%+v: %v, want ErrOptions", c, err)
		}
	}
}

// TestChoiceOfRange: densities that overflow f32 in linear space are computed in f64 there.
func TestChoiceOfRange(t *testing.T) {
	g, params := histograms(rand.New(rand.NewPCG(1, 1)), 3, true)
	for i := range g.Nodes {
		if g.Nodes[i].Kind == circuit.Input {
			params[i] = []float64{math.Ldexp(1, 100)}
			g.Nodes[i].Leaf = circuit.RealHistogram{Breaks: []float64{0, math.Ldexp(1, -100)}}
		}
	}
	p, err := spn.CompileFor(g, params.Read64, spn.Choice{Space: spn.Linear, MaxError: 1})
	if err != nil || p.Type != simt.F64 {
		t.Errorf("%v, %v; want f64", p, err)
	}
	if _, err := spn.CompileFor(g, params.Read64, spn.Choice{Space: spn.Linear, Type: "f32"}); !errors.Is(err, spn.ErrOptions) {
		t.Errorf("f32 by name: %v, want ErrOptions", err)
	}
}

// TestSharedSums: sums that share their operands over a hundred levels, 2^100 ways to the leaves, are tables of
// one variable, which are made once for each sum.
func TestSharedSums(t *testing.T) {
	g := graph{Graph: circuit.Graph{NumVars: 1}}
	leaf := func(p ...float64) circuit.NodeID {
		return g.add(circuit.Node{Leaf: circuit.RealHistogram{Breaks: []float64{0, 1, 2}, Floor: 0x1p-52}}, p)
	}
	a, b := leaf(0.25, 0.75), leaf(0.5, 0.5)
	for range 100 {
		a, b = g.add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{a, b}}, []float64{0.75, 0.25}),
			g.add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{a, b}}, []float64{0.5, 0.5})
	}
	g.Root = g.add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{a, b}}, []float64{0.5, 0.5})
	rows := [][]float64{{0}, {1}, {2}, {-1}, {math.NaN()}}
	check(t, "ladder", &g.Graph, g.params, spn.Options{Type: simt.F32, Joint: 16}, rows)
	p, err := spn.Compile(&g.Graph, g.params.Read64, spn.Options{Type: simt.F32, Joint: 16})
	if err != nil || p.Info.Instructions > 60 {
		t.Errorf("%v, %v; want one table", p.Info, err)
	}
}
