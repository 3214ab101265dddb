package engine_test

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// part is a leaf with the parameters of one unit.
type part struct {
	leaf   circuit.Leaf
	params []float64
}

// mixture returns a sum of products of leaves: parts[k][v] is that of variable v in the k-th product.
func mixture(weights []float64, parts [][]part) (*circuit.Graph, reference.Params) {
	g, params := &circuit.Graph{NumVars: len(parts[0])}, reference.Params{}
	add := func(n circuit.Node, p []float64) circuit.NodeID {
		g.Nodes, params = append(g.Nodes, n), append(params, p)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	var products []circuit.NodeID
	for _, leaves := range parts {
		var children []circuit.NodeID
		for v, l := range leaves {
			children = append(children, add(circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: l.leaf}, l.params))
		}
		products = append(products, add(circuit.Node{Kind: circuit.Product, Units: 1, Children: children}, nil))
	}
	g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: products}, weights)
	return g, params
}

// checkMixture compares covariances of the variables 0 and 1 of a mixture, in both orders, and the expectation
// of their product with what the means of its leaves say, given the variables from 2 on.
func checkMixture(t *testing.T, weights []float64, parts [][]part, given ...float64) {
	t.Helper()
	g, params := mixture(weights, parts)
	m := buildWith(t, g, params, engine.Options{Rows: 5, Queries: true})
	row := append([]float64{missing, missing}, given...)
	total, a, b, ab, aa, bb := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
	for k, leaves := range parts {
		w := weights[k]
		for i, x := range given {
			w *= math.Exp(leaves[2+i].leaf.LogProb(leaves[2+i].params, x))
		}
		mean, variance := leaves[0].leaf.Moments(leaves[0].params)
		other, otherVariance := leaves[1].leaf.Moments(leaves[1].params)
		total, a, b, ab = total+w, a+w*mean, b+w*other, ab+w*mean*other
		aa, bb = aa+w*(variance+mean*mean), bb+w*(otherVariance+other*other)
	}
	a, b, ab = a/total, b/total, ab/total
	want, deviations := ab-a*b, math.Sqrt((aa/total-a*a)*(bb/total-b*b))
	full := append([]float64{parts[0][0].leaf.Mode(parts[0][0].params), parts[0][1].leaf.Mode(parts[0][1].params)}, given...)
	ll := m.wantLL(t, full)
	for _, variables := range [][]int{{0, 1}, {1, 0}} {
		out := make([]float64, 4)
		if err := m.eng.Covariance(t.Context(), m.batch([][]float64{row}), variables, out); err != nil {
			t.Errorf("variables %v: %v", variables, err)
		} else if !near(out[1], want, 2e-6*deviations) || out[1] != out[2] {
			t.Errorf("variables %v: covariances %v, want %v", variables, out, want)
		}
		got := make([]float64, 1)
		of := []engine.Polynomial{{Terms: []engine.Term{{Factor: 1, Variables: variables}}}}
		if err := m.eng.Expect(t.Context(), m.batch([][]float64{row}), of, got); err != nil {
			t.Errorf("variables %v: %v", variables, err)
		} else if !near(got[0], ab, 2e-6*(deviations+math.Abs(a*b))) {
			t.Errorf("variables %v: the mean of the product is %v, want %v", variables, got, ab)
		}
		after := make([]float64, 1)
		if err := m.eng.LogLikelihood(t.Context(), m.batch([][]float64{full}), after); err != nil || !near(after[0], ll, 1e-5*max(1, math.Abs(ll))) {
			t.Errorf("variables %v: a log-likelihood of %v afterwards, want %v: %v", variables, after, ll, err)
		}
	}
}

func histogram(floor float64, breaks []float64, densities ...float64) part {
	return part{circuit.RealHistogram{Breaks: breaks, Floor: floor}, densities}
}

// TestHistogramCovariances has histograms whose breaks are whole numbers or fractions, differ between units, are rounded
// by float32 or lie far from 0; whose bins are empty or do not integrate to 1; and whose floor is high.
func TestHistogramCovariances(t *testing.T) {
	const floor = 0x1p-52
	whole, real, far := []float64{0, 1, 2}, []float64{0.1, 0.7, 1.3, 5}, []float64{1.6e9, 1.6e9 + 86400, 1.6e9 + 2*86400, 1.6e9 + 5*86400}
	bit := [2]part{{circuit.Bernoulli{}, []float64{0.8, 0.2}}, {circuit.Bernoulli{}, []float64{0.1, 0.9}}}
	for name, c := range map[string][2][2]part{ // of each product two variables
		"whole":           {{histogram(floor, whole, 0.8, 0.2), histogram(floor, whole, 0.3, 0.7)}, {histogram(floor, whole, 0.1, 0.9), histogram(floor, whole, 0.9, 0.1)}},
		"an empty bin":    {{histogram(floor, whole, 1, 0), histogram(floor, whole, 0.3, 0.7)}, {histogram(floor, whole, 0.1, 0.9), histogram(floor, whole, 0.9, 0.1)}},
		"wide":            {{bit[0], histogram(floor, []float64{0, 2, 6, 14}, 0.3, 0.09, 0.005)}, {bit[1], histogram(floor, []float64{0, 2, 6, 14}, 0.05, 0.1, 0.0625)}},
		"real":            {{bit[0], histogram(floor, real, 0.5, 1, 0.1/3.7)}, {bit[1], histogram(floor, real, 1, 0.5, 0.1/3.7)}},
		"different":       {{histogram(floor, real, 0.5, 1, 0.1/3.7), histogram(floor, whole, 0.5, 0.5)}, {histogram(floor, []float64{-0.5, 0.7, 9.5}, 0.5, 0.4/8.8), histogram(floor, []float64{-3, 1, 7}, 0.125, 0.5/6)}},
		"apart":           {{histogram(floor, []float64{0, 1}, 1), bit[0]}, {histogram(floor, []float64{5, 7}, 0.5), bit[1]}},
		"of other masses": {{histogram(floor, whole, 0.8, 0.2), histogram(floor, whole, 0.3, 0.7)}, {histogram(floor, whole, 1, 4), histogram(floor, []float64{0, 3}, 2)}},
		"far":             {{histogram(floor, far, 1e-6, 2e-6, 0), bit[0]}, {histogram(floor, far, 2e-6, 1e-6, 3e-6), bit[1]}},
		"an indicator":    {{{circuit.Indicator{Domain: 2, Value: 1}, nil}, histogram(floor, real, 5, 10, 1/3.7)}, {{circuit.Indicator{Domain: 2}, nil}, histogram(floor, real, 1, 0.5, 0.1/3.7)}},
		"a high floor":    {{histogram(0.1, whole, 1, 0), bit[0]}, {histogram(0.1, []float64{0, 1, 2, 4}, 0, 0.5, 0.25), bit[1]}},
	} {
		t.Run(name, func(t *testing.T) {
			evidence := [2]part{histogram(0.01, real, 2, 3, 1), histogram(0.01, real, 0.5, 0.7, 0.3)}
			parts := [][]part{{c[0][0], c[0][1], evidence[0]}, {c[1][0], c[1][1], evidence[1]}}
			checkMixture(t, []float64{0.6, 0.4}, parts, missing)
			checkMixture(t, []float64{0.6, 0.4}, parts, 0.9)
		})
	}
}

// TestHistogramCovariancesRefuse wants errors where no points fit all leaves of either column, and the covariance where
// they fit those of one.
func TestHistogramCovariancesRefuse(t *testing.T) {
	bit := [2]part{{circuit.Bernoulli{}, []float64{0.8, 0.2}}, {circuit.Bernoulli{}, []float64{0.1, 0.9}}}
	for name, c := range map[string][2]part{
		"a Gaussian and a histogram":        {{circuit.Gaussian{}, []float64{1, 1}}, histogram(0, []float64{0, 0.5}, 2)},
		"a Gaussian and a log-normal":       {{circuit.Gaussian{}, []float64{1, 1}}, {circuit.LogNormal{}, []float64{1, 1}}},
		"whole numbers and others":          {histogram(0, []float64{0, 0.5}, 2), histogram(0, []float64{0, 1}, 1)},
		"breaks that float32 does not tell": {histogram(0, []float64{1.6e9, 1.6e9 + 10, 1.6e9 + 600}, 0.08, 0.2/590), histogram(0, []float64{1.6e9, 1.6e9 + 600}, 1./600)},
	} {
		of := func(second [2]part) *model {
			g, params := mixture([]float64{0.5, 0.5}, [][]part{{c[0], second[0]}, {c[1], second[1]}})
			return buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
		}
		m, both := of(bit), of(c)
		b, out := m.batch([][]float64{{missing, missing}}), make([]float64, 4)
		for _, variables := range [][]int{{0, 1}, {1, 0}} {
			if err := both.eng.Covariance(t.Context(), b, variables, out); !errors.Is(err, dataset.ErrSetting) {
				t.Errorf("%s in both of the columns %v: %v, %v", name, variables, out, err)
			}
			if err := m.eng.Covariance(t.Context(), b, variables, out); err != nil || !(math.Abs(out[1]) > 0) {
				t.Errorf("%s in one of the columns %v: %v, %v", name, variables, out, err)
			}
		}
	}
	// Leaves that two variables share keep their densities, which must be normalised, and their floor, which must be nothing beside bins.
	shared := func(leaf, other circuit.RealHistogram, densities []float64) ([]float64, error) {
		g, params := mixture([]float64{0.5, 0.5}, [][]part{{{leaf, densities}, {leaf, densities}}, {{other, []float64{0.5, 0.5}}, {other, []float64{0.5, 0.5}}}})
		g.Nodes[1].Tie, params[1] = circuit.TieTo(0), nil
		m := buildWith(t, g, params, engine.Options{Rows: 4, Queries: true})
		out := make([]float64, 4)
		return out, m.eng.Covariance(t.Context(), m.batch([][]float64{{missing, missing}}), []int{0, 1}, out)
	}
	for scale, want := range map[float64]error{1: nil, 2: dataset.ErrSetting} {
		l := circuit.RealHistogram{Breaks: []float64{0, 1, 2}}
		out, err := shared(l, l, []float64{0.25 * scale, 0.75 * scale})
		if !errors.Is(err, want) || want == nil && !near(out[1], 0.015625, 1e-6) {
			t.Errorf("shared leaves, densities times %v: %v, %v", scale, out, err)
		}
	}
	for floor, want := range map[float64]error{0x1p-52: nil, 0.01: dataset.ErrSetting} {
		low, high := circuit.RealHistogram{Breaks: []float64{0, 1, 2}, Floor: floor}, circuit.RealHistogram{Breaks: []float64{4, 5, 6}}
		for _, l := range [][2]circuit.RealHistogram{{low, high}, {high, low}} {
			if out, err := shared(l[0], l[1], []float64{0.5, 0.5}); !errors.Is(err, want) || want == nil && !near(out[1], 4, 1e-5) {
				t.Errorf("shared leaves apart, a floor of %v: %v, %v", floor, out, err)
			}
		}
		if out, err := shared(low, low, []float64{0.25, 0.75}); err != nil || !near(out[1], 0.015625, 1e-6) {
			t.Errorf("shared leaves over the same bins, a floor of %v: %v, %v", floor, out, err)
		}
	}
	for floor, want := range map[float64]error{1e-9: nil, 4e-6: dataset.ErrSetting} { // little beside the densest bin, but not beside a wide one
		low, wide := circuit.RealHistogram{Breaks: []float64{0, 1, 2}, Floor: floor}, circuit.RealHistogram{Breaks: []float64{4, 5, 1005}}
		if out, err := shared(wide, low, []float64{0.5, 0.0005}); !errors.Is(err, want) || want == nil && !(math.Abs(out[1]/(253.75*253.75/4)-1) < 1e-4) {
			t.Errorf("shared leaves of which one has a wide bin, a floor of %v: %v, %v", floor, out, err)
		}
	}
}
