package pce_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
)

// histograms is a circuit whose leaves have breaks of their own, each other ones, and densities that do not integrate
// to 1; those of every third variable are of whole numbers.
func histograms(t *testing.T, seed uint64) (*circuit.Graph, reference.Params) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	o := structures.DefaultRATSPN()
	o.Vars, o.Latents, o.Depth, o.Seed = 5, 3, 2, seed
	o.Leaf = func(v int) circuit.Leaf {
		breaks := []float64{math.Floor(4*rng.NormFloat64()) / 2}
		for range 2 + rng.IntN(4) {
			breaks = append(breaks, breaks[len(breaks)-1]+float64(1+rng.IntN(3))/2)
		}
		if v%3 == 0 {
			for i := range breaks {
				breaks[i] = 2*breaks[i] + 1
			}
		}
		return circuit.RealHistogram{Breaks: breaks, Floor: 1e-6}
	}
	g, err := structures.RATSPN(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := reference.Init(g, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range g.Nodes {
		if g.Nodes[i].Kind == circuit.Input {
			for k := range p[i] {
				p[i][k] *= 0.5 + rng.Float64()
			}
		}
	}
	return g, p
}

// TestNetworkQueries compares every query about a model that is code by default with the reference, in which observed cells
// have the densities as they are and others the normalised bins, on the CPU and on the emulator.
func TestNetworkQueries(t *testing.T) {
	ctx := t.Context()
	seeds, launched, candidates := uint64(6), 400, 20
	if testing.Short() { // one network on each device
		seeds, launched, candidates = 2, 63, 4
	}
	for seed := range seeds {
		device := []string{"cpu", "emulator"}[seed%2]
		t.Run(fmt.Sprintf("seed=%d/%s", seed, device), func(t *testing.T) {
			g, p := histograms(t, seed)
			m, err := pce.New(ctx, g, p.Read, pce.Options{Device: device, Rows: 7})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if info, err := m.Info(); err != nil || info.Path != "code" {
				t.Fatalf("path %+v, %v; want code", info, err)
			}
			narrow, err := reference.Load(g, p.Read)
			if err != nil {
				t.Fatal(err)
			}
			ev, err := reference.New(g, narrow)
			if err != nil {
				t.Fatal(err)
			}
			rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 3)), 9, 0.5)
			rows[0] = nans(g.NumVars)
			rows[1] = []float64{99, math.NaN(), -99, math.NaN(), math.NaN()} // outside all bins
			lls, err := m.LogLikelihood(ctx, rows)
			if err != nil {
				t.Fatal(err)
			}
			given, err := m.LogLikelihoodGiven(ctx, rows, 1, 3)
			if err != nil {
				t.Fatal(err)
			}
			means, variances, err := m.Moments(ctx, rows)
			if err != nil {
				t.Fatal(err)
			}
			conditional, err := m.Conditional(ctx, rows, 2, 0)
			if err != nil {
				t.Fatal(err)
			}
			full, how, err := m.MPE(ctx, rows, pce.MPEOptions{Candidates: candidates, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			quantiles, err := m.Quantiles(ctx, rows, 1, 0.125, 0.5, 0.875)
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				want, err := ev.LogLikelihood(row)
				if err != nil || !(math.Abs(lls[i]-want) <= 1e-9) {
					t.Errorf("row %v: log-likelihood %v, want %v; %v", row, lls[i], want, err)
				}
				evidence := nans(len(row))
				evidence[1], evidence[3] = row[1], row[3]
				ofGiven, err := ev.LogLikelihood(evidence)
				if err != nil || !(math.Abs(given[i]-(want-ofGiven)) <= 1e-9) {
					t.Errorf("row %v: log-likelihood %v given two columns, want %v; %v", row, given[i], want-ofGiven, err)
				}
				mean, variance, err := ev.Moments(row)
				if err != nil || !slices.EqualFunc(means[i], mean, near) || !slices.EqualFunc(variances[i], variance, near) {
					t.Errorf("row %v: means %v and variances %v, want %v and %v; %v", row, means[i], variances[i], mean, variance, err)
				}
				if want := []float64{mean[2], variance[2], mean[0], variance[0]}; !slices.EqualFunc(conditional[i], want, near) {
					t.Errorf("row %v: conditional %v, want %v", row, conditional[i], want)
				}
				best := math.Inf(-1) // of all completions: densities are constant between points
				points, err := ev.Points(row)
				if err != nil {
					t.Fatal(err)
				}
				for x := range points {
					ll, err := ev.LogLikelihood(x)
					if err != nil {
						t.Fatal(err)
					}
					best = max(best, ll)
				}
				ll, err := ev.LogLikelihood(full[i])
				if err != nil || !near(how[i].LogLikelihood, ll) || !near(ll, best) || !(how[i].Bound >= best-1e-5) {
					t.Errorf("row %v: %v has %v, said to be %+v, the best is %v; %v", row, full[i], ll, how[i], best, err)
				}
				for v, x := range full[i] {
					if v%3 == 0 && math.IsNaN(row[v]) && x != math.Trunc(x) {
						t.Errorf("row %v: column %d, of whole numbers, is completed with %v", row, v, x)
					}
				}
				if q := quantiles[i]; !slices.IsSorted(q) || !math.IsNaN(row[1]) && q[0] != row[1] {
					t.Errorf("row %v: quantiles %v", row, q)
				}
			}
			n, samples := 4000, 500
			if device == "emulator" { // which plays each instruction
				n, samples = launched, 50
			}
			draws, err := m.SampleGiven(ctx, slices.Repeat(rows[2:3], n), seed)
			if err != nil {
				t.Fatal(err)
			}
			for v, x := range rows[2] {
				sum, square := 0.0, 0.0
				for _, d := range draws {
					sum, square = sum+d[v], square+d[v]*d[v]
					if v%3 == 0 && d[v] != math.Trunc(d[v]) {
						t.Fatalf("column %d, of whole numbers, is drawn as %v", v, d[v])
					}
				}
				mean, want := sum/float64(n), means[2][v]
				if sd := math.Sqrt(variances[2][v]); !math.IsNaN(x) && mean != x || !(math.Abs(mean-want) <= 5*sd/math.Sqrt(float64(n))+1e-5) {
					t.Errorf("column %d: draws have the mean %v, want %v", v, mean, want)
				}
			}
			if _, err := m.Entropy(ctx, samples, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLogNormalAmongGaussiansOnDevices wants a number that is not positive to have the density of the Gaussian alone on every device, whichever leaf
// comes first.
func TestLogNormalAmongGaussiansOnDevices(t *testing.T) {
	normal, logs := circuit.Node{Kind: circuit.Input, Units: 1, Leaf: circuit.Gaussian{}}, circuit.Node{Kind: circuit.Input, Units: 1, Leaf: circuit.LogNormal{}}
	want := math.Log(0.5) - 1.125 - math.Log(2*math.Pi)/2
	for _, leaves := range [][]circuit.Node{{normal, logs}, {logs, normal}} {
		g := &circuit.Graph{NumVars: 1, Root: 2, Nodes: append(leaves, circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0, 1}})}
		p := reference.Params{{0, 1}, {0, 1}, {0.5, 0.5}}
		for _, device := range []string{"cpu", "emulator"} {
			m, err := pce.New(t.Context(), g, p.Read, pce.Options{Device: device})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			ll, err := m.LogLikelihood(t.Context(), [][]float64{{-1.5}})
			if err != nil || !(math.Abs(ll[0]-want) <= 1e-6) {
				t.Errorf("%s first, on %s: log-likelihood %v, want %v: %v", leaves[0].Leaf.Name(), device, ll, want, err)
			}
		}
	}
}
