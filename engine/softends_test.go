package engine_test

import (
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// mixed opens a mixture of leaves of one variable, of which params are those of the units one after another.
func mixed(t *testing.T, leaf circuit.Leaf, params, weights []float64) *model {
	t.Helper()
	n := len(weights)
	g := &circuit.Graph{NumVars: 1, Root: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: n, Leaf: leaf}, {Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	co := compile.DefaultOptions()
	co.Soft = 4
	return buildCompiled(t, g, reference.Params{params, weights}, co, engine.Options{Rows: 256, Queries: true})
}

// within returns n rows of which a range is known.
func (m *model) within(low, high float64, n int) *dataset.Batch {
	return m.softBatch(slices.Repeat([][]float64{{missing}}, n), slices.Repeat([][]*dataset.Evidence{{{Low: low, High: high}}}, n))
}

// TestMomentsBeyondFloats wants moments that float64 does not hold to be infinite, not NaN.
func TestMomentsBeyondFloats(t *testing.T) {
	for _, sigma := range []float64{27, 40} {
		m := mixed(t, circuit.LogNormal{}, []float64{0, 1, 0, sigma}, []float64{0.5, 0.5})
		for _, b := range []*dataset.Batch{m.batch([][]float64{{missing}}), m.within(1, math.Inf(1), 1)} {
			out := make([]float64, 2)
			if err := m.eng.Moments(t.Context(), b, out); err != nil {
				t.Fatal(err)
			}
			if !(out[0] > 1e150) || !math.IsInf(out[1], 1) || math.IsInf(out[0], 1) != (sigma > 38) {
				t.Errorf("sigma %v, evidence %v: moments %v", sigma, b.HasSoft(), out)
			}
		}
	}
}
