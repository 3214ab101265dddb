package kerneltest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// testOwners updates the owners of a program in parts, in any order, and wants
// what an update of all leaves, bit for bit, and nothing else touched on the way.
func testOwners(t *testing.T, open Open, _ Depth) {
	for _, s := range append(structured(t, 8, 4), everyLeaf(t), tiedGaussians(t)) {
		t.Run(s.name, func(t *testing.T) {
			dev := open(t)
			defer dev.Close()
			build := func() *Model {
				return Build(t, dev, s.graph, initial(t, s.graph), compile.DefaultOptions(), engine.Options{Rows: 32, Train: true})
			}
			m := build()
			rows := reference.RandomRows(s.graph, rand.New(rand.NewPCG(51, 52)), 48, 0.1)
			batch := reference.Batch(reference.Schema(s.graph), rows)
			accumulate(t, m, batch)
			testFlowCheck(t, m)
			testParts(t, m, build(), tensor.Rule{Step: 0.6, Pseudocount: 0.1})
			accumulate(t, m, batch)
			first := tensor.Anemone{Momentum: 0.9, Rows: 48}
			rule := tensor.Rule{Step: 0.3, Pseudocount: 0.1, Anemone: &first}
			if err := m.Engine.Apply(context.Background(), rule); err != nil {
				t.Fatal(err)
			}
			rule.Anemone = &tensor.Anemone{Momentum: 0.9, Weight: first.Next(), Rows: 48}
			accumulate(t, m, batch)
			testParts(t, m, build(), rule)
		})
	}
}

// everyLeaf is a tree over variables with a leaf of each kind.
func everyLeaf(t testing.TB) structure {
	t.Helper()
	leaves := []circuit.Leaf{
		circuit.Categorical{Categories: 5}, circuit.Bernoulli{}, circuit.Binomial{Trials: 4}, circuit.Indicator{Domain: 3},
		circuit.DiscretisedLogistic{Domain: 7}, circuit.Histogram{Edges: []int{0, 2, 3, 6}}, circuit.Gaussian{}, circuit.Poisson{},
		circuit.LogNormal{},
	}
	tree, err := structures.GridTree(3, 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 3, Leaf: func(v int) circuit.Leaf { return leaves[v] }})
	if err != nil {
		t.Fatal(err)
	}
	return structure{"every leaf", g}
}

// tiedGaussians is a chain whose leaves share their parameters.
func tiedGaussians(t testing.TB) structure {
	t.Helper()
	leaf := func(int) circuit.Leaf { return circuit.Gaussian{} }
	g, err := structures.HMM(structures.HMMOptions{Length: 5, Latents: 3, Tied: true, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	return structure{"tied gaussians", g}
}

// accumulate adds up the flows of two shards.
func accumulate(t testing.TB, m *Model, batch *dataset.Batch) {
	t.Helper()
	for lo := 0; lo < batch.Rows; lo += 32 {
		hi := min(lo+32, batch.Rows)
		if err := m.Engine.Accumulate(context.Background(), batch, lo, hi, make([]float64, hi-lo)); err != nil {
			t.Fatal(err)
		}
	}
}

// state is what an update may change, floats as their bits.
type state struct {
	params, averages []float32
	flows            []int64
}

func readState(t testing.TB, e *engine.Engine) *state {
	t.Helper()
	p := e.Program()
	s := &state{make([]float32, p.NumParams), make([]float32, p.AverageLen()), make([]int64, p.FlowLen())}
	ctx := context.Background()
	if err := errors.Join(e.ReadParams(ctx, 0, s.params), e.ReadAverages(ctx, 0, s.averages), e.ReadFlows(ctx, 0, s.flows)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *state) write(t testing.TB, e *engine.Engine) {
	t.Helper()
	ctx := context.Background()
	if err := errors.Join(e.WriteParams(ctx, 0, s.params), e.WriteAverages(ctx, 0, s.averages), e.WriteFlows(ctx, 0, s.flows)); err != nil {
		t.Fatal(err)
	}
}

func (s *state) clone() *state {
	return &state{slices.Clone(s.params), slices.Clone(s.averages), slices.Clone(s.flows)}
}

// take copies what belongs to owners.
func (s *state) take(from *state, owners []layers.Owner) {
	for _, o := range owners {
		takeRanges(s.params, from.params, o.Params)
		takeRanges(s.averages, from.averages, o.Averages)
		takeRanges(s.flows, from.flows, o.Flows)
	}
}

func takeRanges[T any](to, from []T, ranges []layers.Range) {
	for _, r := range ranges {
		copy(to[r.Lo:r.Hi], from[r.Lo:r.Hi])
	}
}

func (s *state) compare(t testing.TB, what string, want *state) {
	t.Helper()
	compareBits(t, what+": parameter", s.params, want.params, math.Float32bits)
	compareBits(t, what+": average", s.averages, want.averages, math.Float32bits)
	compareBits(t, what+": flow", s.flows, want.flows, func(f int64) uint32 { return uint32(f) ^ uint32(f>>32) })
}

func compareBits[T comparable](t testing.TB, what string, got, want []T, bits func(T) uint32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] || bits(got[i]) != bits(want[i]) {
			t.Fatalf("%s %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// testParts updates by the flows that are there, at once and, in another engine,
// in parts.
func testParts(t *testing.T, m, other *Model, rule tensor.Rule) {
	t.Helper()
	ctx := context.Background()
	e, owners := other.Engine, m.Result.Program.Owners()
	before := readState(t, m.Engine)
	if err := m.Engine.Apply(ctx, rule); err != nil {
		t.Fatal(err)
	}
	after := readState(t, m.Engine)
	compareBits(t, "after an update of all: flow", after.flows, make([]int64, len(after.flows)), func(int64) uint32 { return 0 })
	owned := before.clone()
	owned.take(after, owners)
	after.compare(t, "owners and what has changed", owned)
	if slices.Equal(before.params, after.params) {
		t.Fatal("the update moved nothing")
	}

	rng := rand.New(rand.NewPCG(53, 54))
	for _, n := range []int{3, 1, 2, 5} {
		bounds := layers.SplitOwners(owners, n)
		before.write(t, e)
		want, moved := before.clone(), before.clone()
		for _, k := range rng.Perm(n) {
			if rule.Anemone != nil { // which counts visits by the parameters before the step
				copy(want.params, before.params)
				if err := e.WriteParams(ctx, 0, before.params); err != nil {
					t.Fatal(err)
				}
			}
			lo, hi := bounds[k], bounds[k+1]
			if err := e.ApplyOwners(ctx, rule, lo, hi); err != nil {
				t.Fatal(err)
			}
			got := readState(t, e)
			want.take(after, owners[lo:hi])
			got.compare(t, "after a part", want)
			moved.take(got, owners[lo:hi])
		}
		moved.compare(t, "in parts", after)
	}

	before.write(t, e)
	for _, part := range [][2]int{{0, 0}, {1, 1}, {len(owners), len(owners)}} {
		if err := e.ApplyOwners(ctx, rule, part[0], part[1]); err != nil {
			t.Error(err)
		}
	}
	for _, part := range [][2]int{{-1, 1}, {0, len(owners) + 1}, {2, 1}} {
		if err := e.ApplyOwners(ctx, rule, part[0], part[1]); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("an update of the owners %d to %d: %v", part[0], part[1]-1, err)
		}
	}
	readState(t, e).compare(t, "after updates of nobody", before)
}

// testFlowCheck passes the flows of two shards, and catches a block that is
// counted twice, a negative flow and flows that are lost.
func testFlowCheck(t *testing.T, m *Model) {
	t.Helper()
	p := m.Result.Program
	flows := readState(t, m.Engine).flows
	check := func(o layers.Owner, flows []int64) error {
		c := layers.NewFlowCheck(o)
		for lo := 0; lo < len(flows); lo += 1000 { // over the ends of ranges
			c.Add(int64(lo), flows[lo:min(lo+1000, len(flows))])
		}
		return c.Err(2)
	}
	for _, o := range p.Owners() {
		if err := check(o, flows); err != nil {
			t.Errorf("true flows: %v", err)
			continue
		}
		norms := o.Flows[len(o.Flows)-1]
		wrong := func(what string, edit func(flows []int64)) {
			t.Helper()
			bad := slices.Clone(flows)
			edit(bad)
			if err := check(o, bad); !errors.Is(err, layers.ErrFlows) {
				t.Errorf("%v, %s: %v", o, what, err)
			}
		}
		wrong("negative normaliser", func(f []int64) { f[norms.Lo] = -1 })
		if o.Statistics {
			continue
		}
		counts := o.Flows[0]
		block := min(int64(p.BlockSize*p.BlockSize), counts.Len())
		at, most := counts.Lo, int64(-1) // the block with the largest flow
		for lo := counts.Lo; lo+block <= counts.Hi; lo += block {
			sum := int64(0)
			for _, f := range flows[lo : lo+block] {
				sum += f
			}
			if sum > most {
				at, most = lo, sum
			}
		}
		wrong("negative count", func(f []int64) { f[counts.Lo] = -1 })
		wrong("block counted twice", func(f []int64) {
			for i := range f[at : at+block] {
				f[at+int64(i)] *= 2
			}
		})
		wrong("block lost", func(f []int64) { clear(f[at : at+block]) })
		wrong("no normalisers", func(f []int64) { clear(f[norms.Lo:norms.Hi]) })
	}
}
