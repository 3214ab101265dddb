package circuit_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// decisions is a random deterministic circuit: a sum asks for a variable, whose indicators are
// multiplied by circuits of the others. The last variable is a leaf, two units of which sums
// choose by the edges that exist.
func decisions(rng *rand.Rand, vars int, last circuit.Leaf) *circuit.Graph {
	g := &circuit.Graph{NumVars: vars}
	add := func(n circuit.Node) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	var below func(left []int, units int) circuit.NodeID
	below = func(left []int, units int) circuit.NodeID {
		if len(left) == 0 {
			x := add(circuit.Node{Kind: circuit.Input, Units: 2, Var: vars - 1, Leaf: last})
			e := &circuit.Edges{Rows: 1, Cols: 1}
			for u := range units {
				e.Pairs = append(e.Pairs, [2]int32{int32(u), int32(rng.IntN(2))})
			}
			return add(circuit.Node{Kind: circuit.Sum, Units: units, Children: []circuit.NodeID{x}, Edges: e})
		}
		k := rng.IntN(len(left))
		v := left[k]
		rest := append(append([]int{}, left[:k]...), left[k+1:]...)
		codes := 2 + rng.IntN(2)
		var children []circuit.NodeID
		for c := range codes {
			x := add(circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Indicator{Domain: 3, Value: c}})
			children = append(children, add(circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{x, below(rest, 1)}}))
		}
		return add(circuit.Node{Kind: circuit.Sum, Units: units, Children: children})
	}
	all := make([]int, vars-1)
	for v := range all {
		all[v] = v
	}
	g.Root = below(all, 1)
	return g
}

// TestDeterministicQueries compares entropy, cross-entropy and divergence of deterministic
// circuits with sums and integrals over all rows, for every kind of leaf.
func TestDeterministicQueries(t *testing.T) {
	for _, leaf := range []circuit.Leaf{
		circuit.Categorical{Categories: 4}, circuit.Bernoulli{}, circuit.Binomial{Trials: 5}, circuit.Histogram{Edges: []int{0, 1, 4}},
		circuit.DiscretisedLogistic{Domain: 6}, circuit.Indicator{Domain: 3, Value: 1}, circuit.Gaussian{}, circuit.LogNormal{}, circuit.Poisson{},
		circuit.RealHistogram{Breaks: []float64{-1, 0.5, 2, 7}}, circuit.RealHistogram{Breaks: []float64{-1, 0, 2, 7}},
	} {
		for seed := range uint64(4) {
			rng := rand.New(rand.NewPCG(seed, 5))
			g := decisions(rng, 2+int(seed%3), leaf)
			if p := circuit.Properties(g); !p.Deterministic || !p.Smooth || !p.Decomposable {
				t.Fatalf("%s: %+v; want a deterministic circuit", leaf.Name(), p)
			}
			var params [2]reference.Params
			var ev [2]*reference.Evaluator
			for k := range params {
				var err error
				if params[k], err = reference.Init(g, seed+uint64(10*k), nil); err != nil {
					t.Fatal(err)
				}
				if ev[k], err = reference.New(g, params[k]); err != nil {
					t.Fatal(err)
				}
			}
			points, err := ev[0].Points(reference.MissingRow(g.NumVars))
			if err != nil {
				t.Fatal(err)
			}
			var want circuit.Information
			for row, weight := range points {
				lp, err := ev[0].LogLikelihood(row)
				if err != nil {
					t.Fatal(err)
				}
				lq, err := ev[1].LogLikelihood(row)
				if err != nil {
					t.Fatal(err)
				}
				if p := weight * math.Exp(lp); p > 0 {
					want.Entropy -= p * lp
					want.CrossEntropy -= p * lq
					want.KL += p * (lp - lq)
				}
			}
			got, err := circuit.DeterministicInformation(g, params[0].Read, params[1].Read)
			if err != nil {
				t.Fatal(err)
			}
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*max(1, math.Abs(b)) } // weights are float32
			if !near(got.Entropy, want.Entropy) || !near(got.CrossEntropy, want.CrossEntropy) || !near(got.KL, want.KL) {
				t.Errorf("%s, seed %d: %+v, want %+v", leaf.Name(), seed, got, want)
			}
			if self, err := circuit.DeterministicInformation(g, params[0].Read, params[0].Read); err != nil || self.KL != 0 || self.CrossEntropy != self.Entropy {
				t.Errorf("%s, seed %d: %+v of a circuit and itself, %v", leaf.Name(), seed, self, err)
			}
		}
	}
}

// TestLongDeterministicQueries has the entropy of a Markov chain of 2^1000 rows: that of the
// first code, and for each step the entropy of a transition by the chance of its code.
func TestLongDeterministicQueries(t *testing.T) {
	const vars, stay = 1000, 0.75
	g, weights := &circuit.Graph{NumVars: vars}, map[circuit.NodeID][]float32{}
	add := func(n circuit.Node, p []float32) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		weights[circuit.NodeID(len(g.Nodes)-1)] = p
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	var tail [2]circuit.NodeID // the variables from v on, given code c of the one before
	for v := vars - 1; v >= 0; v-- {
		var with []circuit.NodeID
		for c := range 2 {
			x := add(circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Indicator{Domain: 2, Value: c}}, nil)
			if v < vars-1 {
				x = add(circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{x, tail[c]}}, nil)
			}
			with = append(with, x)
		}
		for c := range tail {
			p := []float32{stay, 1 - stay}
			if c == 1 {
				p = []float32{0.5, 0.5}
			}
			tail[c] = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: with}, p)
		}
	}
	g.Root = tail[0]
	read := func(id circuit.NodeID, dst []float32) error { copy(dst, weights[id]); return nil }
	got, err := circuit.DeterministicInformation(g, read, read)
	if err != nil {
		t.Fatal(err)
	}
	h0, h1 := -stay*math.Log(stay)-(1-stay)*math.Log(1-stay), math.Ln2
	want, zero := 0.0, 1.0
	for range vars {
		want += zero*h0 + (1-zero)*h1
		zero = zero*stay + (1-zero)*0.5
	}
	if !(math.Abs(got.Entropy-want) <= 1e-9*want) || got.KL != 0 {
		t.Errorf("entropy %v, want %v", got.Entropy, want)
	}
	failing := errors.New("no parameters")
	if _, err := circuit.DeterministicInformation(g, read, func(circuit.NodeID, []float32) error { return failing }); !errors.Is(err, failing) {
		t.Errorf("parameters that cannot be read: %v", err)
	}
	// The other one never leaves code 0.
	never := func(id circuit.NodeID, dst []float32) error {
		if copy(dst, weights[id]); len(dst) == 2 {
			dst[0], dst[1] = 1, 0
		}
		return nil
	}
	if x, err := circuit.DeterministicInformation(g, read, never); err != nil || !math.IsInf(x.KL, 1) || !math.IsInf(x.CrossEntropy, 1) || x.Entropy != got.Entropy {
		t.Errorf("what the other excludes: %+v, %v", x, err)
	}
	if x, err := circuit.DeterministicInformation(g, never, read); err != nil || x.Entropy != 0 || !(math.Abs(x.KL+vars*math.Log(stay)) <= 1e-9*vars) {
		t.Errorf("what excludes the other's: %+v, %v", x, err)
	}
}

// TestPoissonDivergence wants the divergence of rates that are near each other, where the rates cancel: with d their
// distance it is d²/2p - d³/3p² and less.
func TestPoissonDivergence(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Poisson{}}}}
	rate := func(r float32) circuit.ParamFunc {
		return func(_ circuit.NodeID, dst []float32) error { dst[0] = r; return nil }
	}
	for _, r := range []float32{1e4, 1e7, 9e11} {
		next := math.Nextafter32(r, 2*r)
		x, err := circuit.DeterministicInformation(g, rate(r), rate(next))
		if err != nil {
			t.Fatal(err)
		}
		p, d := float64(r), float64(next)-float64(r)
		want := d*d/(2*p) - d*d*d/(3*p*p)
		if !(math.Abs(x.KL-want) <= 1e-9*want) {
			t.Errorf("rates %g and %g diverge by %.12g, want %.12g", r, next, x.KL, want)
		}
	}
}

// TestUnusedInformation asks nothing of nodes that the root does not reach: their parameters may be left open, as other queries do
// not read them.
func TestUnusedInformation(t *testing.T) {
	coin := circuit.Node{Kind: circuit.Input, Units: 1, Leaf: circuit.Bernoulli{}}
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{coin, coin, coin}, Root: 1}
	params := func(id circuit.NodeID, dst []float32) error {
		if id != g.Root {
			return errors.New("left open")
		}
		dst[0], dst[1] = 0.5, 0.5
		return nil
	}
	if x, err := circuit.DeterministicInformation(g, params, params); err != nil || !(math.Abs(x.Entropy-math.Ln2) <= 1e-12) {
		t.Errorf("%+v, %v; want the entropy of a coin", x, err)
	}
}

// TestPoissonEntropy compares the entropy with its own sum on both sides of the rate from which a series gives it.
func TestPoissonEntropy(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: circuit.Poisson{}}}}
	for _, rate := range []float32{9999.999, 10000, 10001, 1e6} {
		params := func(_ circuit.NodeID, dst []float32) error { dst[0] = rate; return nil }
		x, err := circuit.DeterministicInformation(g, params, params)
		if err != nil {
			t.Fatal(err)
		}
		p, want := []float64{float64(rate)}, 0.0
		wide := 10 * math.Sqrt(p[0])
		for k := math.Floor(p[0] - wide); k <= p[0]+wide; k++ {
			lp := circuit.Poisson{}.LogProb(p, k)
			want -= lp * math.Exp(lp)
		}
		if !(math.Abs(x.Entropy-want) <= 1e-9) {
			t.Errorf("the entropy of rate %g is %.12g, want %.12g", rate, x.Entropy, want)
		}
	}
}
