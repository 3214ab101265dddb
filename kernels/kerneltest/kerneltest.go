// Package kerneltest is the conformance suite that every device must pass: it
// compares a device with circuit/reference on random circuits.
//
// # Shapes and units
//
// Log-likelihoods are natural logs; tolerances are stated where they are used.
//
// # Errors
//
// A device that departs from the reference fails the test that it is given.
//
// # Source
//
// One suite for every implementation of an interface, as gonum has for BLAS.
package kerneltest

import (
	"context"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
)

// Open returns a fresh device.
type Open func(t testing.TB) kernels.Device

// Depth is how much of the suite runs.
type Depth int

// The depths. A first device of its kind gets the whole suite; others, which run
// the same host code on other kernels or threads, need less of it.
const (
	Brief Depth = iota
	Full
)

// Suite is the suite for one kind of device.
type Suite struct {
	Open  Open
	Depth Depth
	// Parallel runs parts of the suite at once, on devices of their own. A card that
	// records a graph refuses allocations meanwhile, so its parts follow each other.
	Parallel bool

	choice string
}

// Run runs the suite.
func (s Suite) Run(t *testing.T) {
	open := s.choose(t)
	part := func(name string, run func(*testing.T, Open, Depth)) {
		t.Run(name, func(t *testing.T) {
			if s.Parallel {
				t.Parallel()
			}
			run(t, open, s.Depth)
		})
	}
	part("buffers", testBuffers)
	part("calls", testCalls)
	part("freeing", testFreeing)
	part("anemone", testAnemone)
	part("loglikelihood", testLogLikelihood)
	part("step", testStep)
	part("batches", testBatches)
	part("tables", testTables)
	part("codes", testCodes)
	part("widths", testWidths)
	part("singles", testSingles)
	part("extremes", testExtremes)
	part("far leaves", testFarLeaves)
	part("grouped", testGrouped)
	part("offsets", testOffsets)
	part("mass", testMass)
	part("ordinary", testOrdinary)
	part("mixed", testMixed)
	part("topdown", testTopDown)
	part("sample", testSample)
	part("posteriors", testPosteriors)
	part("maximise", testMaximise)
	part("soft", testSoft)
	part("owners", testOwners)
	part("derivatives", testDerivatives)
	part("thresholds", testThresholds)
	if s.Depth == Full {
		part("long", testLong)
	}
}

// Model is a circuit with its program on a device.
type Model struct {
	Graph  *circuit.Graph
	Params reference.Params
	Result *compile.Result
	Engine *engine.Engine
}

// Build compiles a graph and loads it with parameters.
func Build(t testing.TB, dev kernels.Device, g *circuit.Graph, params reference.Params, co compile.Options, eo engine.Options) *Model {
	t.Helper()
	res, err := compile.Compile(g, co)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	e, err := engine.New(ctx, dev, res.Program, eo)
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{g, params, res, e}
	if err := m.Write(ctx); err != nil {
		t.Fatal(err)
	}
	return m
}

// Write loads the model's parameters into the engine.
func (m *Model) Write(ctx context.Context) error {
	all, err := packed(m.Graph, m.Params, m.Result.Map, m.Result.Program.NumParams)
	if err != nil {
		return err
	}
	return m.Engine.WriteParams(ctx, 0, all)
}

// packed returns n parameters in the order of a program; those of nodes that p lacks
// are zeros.
func packed(g *circuit.Graph, p reference.Params, m *compile.ParamMap, n int64) ([]float32, error) {
	all := make([]float32, n)
	for i := range m.Len() {
		id := m.Node(i)
		canonical := make([]float32, g.NumParams(id))
		if p[id] != nil {
			if err := p.Read(id, canonical); err != nil {
				return nil, err
			}
		}
		off, size := m.Region(i)
		if err := m.Pack(i, canonical, all[off:off+int64(size)]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Read returns the engine's parameters by node, in canonical order.
func (m *Model) Read(t testing.TB) [][]float32 {
	t.Helper()
	out := make([][]float32, len(m.Graph.Nodes))
	for i := range m.Result.Map.Len() {
		off, n := m.Result.Map.Region(i)
		region := make([]float32, n)
		if err := m.Engine.ReadParams(context.Background(), off, region); err != nil {
			t.Fatal(err)
		}
		id := m.Result.Map.Node(i)
		out[id] = make([]float32, m.Graph.NumParams(id))
		if err := m.Result.Map.Unpack(i, region, out[id]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// near is false for NaN.
func near(got, want, tol float64) bool { return got == want || math.Abs(got-want) <= tol }

// compareParams checks parameters against the reference: a relative error of
// 2e-4 (float32 sums of positive terms and one reciprocal through a few layers)
// above 1e-7 (the grid of 2^-40 counts is far below).
func compareParams(t testing.TB, what string, g *circuit.Graph, got [][]float32, want reference.Params) {
	t.Helper()
	bad := 0
	for id := range want {
		for i, w := range want[id] {
			if x := float64(got[id][i]); !near(x, w, 2e-4*math.Abs(w)+1e-7) {
				if bad++; bad <= 3 {
					n := &g.Nodes[id]
					name := n.Kind.String()
					if n.Kind == circuit.Input {
						name = n.Leaf.Name()
					}
					t.Errorf("%s: node %d (%s, %d units) parameter %d = %v, want %v", what, id, name, n.Units, i, x, w)
				}
			}
		}
	}
}
