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
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
)

// Open returns a fresh device.
type Open func(t testing.TB) kernels.Device

// Run runs the whole suite on a device.
func Run(t *testing.T, open Open) {
	t.Run("loglikelihood", func(t *testing.T) { testLogLikelihood(t, open) })
	t.Run("step", func(t *testing.T) { testStep(t, open) })
	t.Run("batches", func(t *testing.T) { testBatches(t, open) })
	t.Run("extremes", func(t *testing.T) { testExtremes(t, open) })
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
	for i := range m.Result.Map.Len() {
		off, n := m.Result.Map.Region(i)
		region := make([]float32, n)
		id := m.Result.Map.Node(i)
		canonical := make([]float32, m.Graph.NumParams(id))
		if m.Params[id] != nil {
			if err := m.Params.Read(id, canonical); err != nil {
				return err
			}
		}
		if err := m.Result.Map.Pack(i, canonical, region); err != nil {
			return err
		}
		if err := m.Engine.WriteParams(ctx, off, region); err != nil {
			return err
		}
	}
	return nil
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

// cases yields random circuits with parameters and rows.
func cases(n int, o reference.RandomOptions, do func(name string, g *circuit.Graph, p reference.Params, rows [][]float64, rng *rand.Rand)) {
	for seed := range uint64(n) {
		rng := rand.New(rand.NewPCG(seed, 77))
		g := reference.Random(rng, o)
		p, err := reference.Init(g, seed, nil)
		if err != nil {
			panic(err)
		}
		do(fmt.Sprintf("seed=%d", seed), g, p, reference.RandomRows(g, rng, 70, 0.2), rng)
	}
}

var blockSizes = []int{0, 1, 2, 4, 8, 16, 32}

// testLogLikelihood compares log-likelihoods, missing cells included, at every
// block size.
func testLogLikelihood(t *testing.T, open Open) {
	cases(60, reference.RandomOptions{}, func(name string, g *circuit.Graph, p reference.Params, rows [][]float64, rng *rand.Rand) {
		t.Run(name, func(t *testing.T) {
			ev, err := reference.New(g, p)
			if err != nil {
				t.Fatal(err)
			}
			dev := open(t)
			defer dev.Close()
			co := compile.DefaultOptions()
			co.BlockSize = blockSizes[rng.IntN(len(blockSizes))]
			m := Build(t, dev, g, p, co, engine.Options{Rows: 64})
			ll := make([]float64, len(rows))
			if err := m.Engine.LogLikelihood(context.Background(), reference.Batch(reference.Schema(g), rows), ll); err != nil {
				t.Fatal(err)
			}
			for r, row := range rows {
				want, err := ev.LogLikelihood(row)
				if err != nil {
					t.Fatal(err)
				}
				// The bound that DESIGN states for float32.
				if !near(ll[r], want, 1e-5*max(1, math.Abs(want))) {
					t.Errorf("block=%d row %d: log-likelihood %v, want %v (%v)", co.BlockSize, r, ll[r], want, row)
				}
			}
		})
	})
}

// testStep compares the parameters after one training step, fused and by shards.
func testStep(t *testing.T, open Open) {
	cases(60, reference.RandomOptions{}, func(name string, g *circuit.Graph, p reference.Params, rows [][]float64, rng *rand.Rand) {
		t.Run(name, func(t *testing.T) {
			ev, err := reference.New(g, p)
			if err != nil {
				t.Fatal(err)
			}
			flows, err := ev.Flows(rows)
			if err != nil {
				t.Fatal(err)
			}
			step, pc := 0.1+0.9*rng.Float64(), 0.1
			if rng.IntN(3) == 0 {
				step = 1
			}
			want := ev.EM(flows, reference.Step{Size: step, Pseudocount: pc})
			rule := kernels.Rule{Step: step, Pseudocount: pc}
			batch := reference.Batch(reference.Schema(g), rows)
			ctx := context.Background()
			dev := open(t)
			defer dev.Close()
			co := compile.DefaultOptions()
			co.BlockSize = blockSizes[rng.IntN(len(blockSizes))]
			ll := make([]float64, len(rows))
			var fused, sharded [][]float32
			for _, mode := range []string{"fused", "one shard", "shards"} {
				m := Build(t, dev, g, p, co, engine.Options{Rows: 128, Train: true})
				switch mode {
				case "fused":
					err = m.Engine.Step(ctx, batch, 0, len(rows), rule, ll)
				case "one shard":
					if err = m.Engine.Accumulate(ctx, batch, 0, len(rows), ll); err == nil {
						err = m.Engine.Apply(ctx, rule)
					}
				case "shards":
					for _, s := range [][2]int{{40, 70}, {0, 7}, {7, 40}} {
						if err = m.Engine.Accumulate(ctx, batch, s[0], s[1], ll[s[0]:s[1]]); err != nil {
							t.Fatal(err)
						}
					}
					err = m.Engine.Apply(ctx, rule)
				}
				if err != nil {
					t.Fatal(err)
				}
				got := m.Read(t)
				compareParams(t, mode, g, got, want)
				switch mode {
				case "fused":
					fused = got
				case "one shard":
					sharded = got
				}
			}
			for id := range fused {
				for i := range fused[id] {
					if math.Float32bits(fused[id][i]) != math.Float32bits(sharded[id][i]) {
						t.Fatalf("node %d parameter %d: fused %v, by one shard %v; want the same bits", id, i, fused[id][i], sharded[id][i])
					}
				}
			}
		})
	})
}

// compareParams checks parameters against the reference: a relative error of
// 2e-4 (float32 sums of positive terms and one reciprocal through a few layers)
// above 1e-7 (the grid of 2^-40 counts is far below).
func compareParams(t *testing.T, what string, g *circuit.Graph, got [][]float32, want reference.Params) {
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

// testBatches checks that a row's log-likelihood and the flows of a batch do not
// depend on how the rows are cut.
func testBatches(t *testing.T, open Open) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(5, 6))
	g := reference.Random(rng, reference.RandomOptions{Vars: 6, MaxUnits: 20})
	p, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := reference.RandomRows(g, rng, 130, 0.1)
	batch := reference.Batch(reference.Schema(g), rows)
	dev := open(t)
	defer dev.Close()
	m := Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: 130, Train: true})
	all := make([]float64, len(rows))
	if err := m.Engine.LogLikelihood(ctx, batch, all); err != nil {
		t.Fatal(err)
	}
	ll := make([]float64, len(rows))
	total := make([]int64, m.Result.Program.FlowLen())
	if err := m.Engine.Accumulate(ctx, batch, 0, len(rows), ll); err != nil {
		t.Fatal(err)
	}
	if err := m.Engine.ReadFlows(ctx, 0, total); err != nil {
		t.Fatal(err)
	}
	part := make([]int64, len(total))
	for size := 1; size <= len(rows); size++ {
		if err := m.Engine.WriteFlows(ctx, 0, make([]int64, len(total))); err != nil {
			t.Fatal(err)
		}
		for lo := 0; lo < len(rows); lo += size {
			hi := min(lo+size, len(rows))
			if err := m.Engine.Accumulate(ctx, batch, lo, hi, ll[lo:hi]); err != nil {
				t.Fatal(err)
			}
		}
		for r := range ll {
			if ll[r] != all[r] {
				t.Fatalf("batches of %d: row %d has log-likelihood %v, want %v", size, r, ll[r], all[r])
			}
		}
		if err := m.Engine.ReadFlows(ctx, 0, part); err != nil {
			t.Fatal(err)
		}
		for i, f := range part {
			// Half a grid step a shard, and float32 sums in another order.
			a, b := float64(f)*kernels.Grid, float64(total[i])*kernels.Grid
			if !near(a, b, 1e-5*math.Abs(b)+float64(len(rows))*kernels.Grid) {
				t.Fatalf("batches of %d: flow %d is %v, want %v", size, i, a, b)
			}
		}
	}
}
