package tensor_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
)

// excludingChain is a hidden Markov model of 16 states, of which each emits one of four codes and is followed by two, and rows that
// it has drawn.
func excludingChain(rng *rand.Rand, vars, rows int) (*circuit.Graph, reference.Params, [][]float64) {
	const states, codes = 16, 4
	g, p := &circuit.Graph{NumVars: vars}, reference.Params{}
	add := func(n circuit.Node, theta []float64) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		p = append(p, theta)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	emit := make([]float64, states*codes)
	next := make([]float64, states*states)
	for s := range states {
		emit[s*codes+s%codes] = 1
		next[s*states+(3*s+1)%states], next[s*states+(5*s+2)%states] = 0.25, 0.75
	}
	below := circuit.None
	for v := vars - 1; v >= 0; v-- {
		op := add(circuit.Node{Kind: circuit.Input, Units: states, Var: v, Leaf: circuit.Categorical{Categories: codes}}, slices.Clone(emit))
		if below != circuit.None {
			op = add(circuit.Node{Kind: circuit.Product, Units: states, Children: []circuit.NodeID{op, below}}, nil)
		}
		if v == 0 {
			g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{op}}, slices.Repeat([]float64{1. / states}, states))
			break
		}
		below = add(circuit.Node{Kind: circuit.Sum, Units: states, Children: []circuit.NodeID{op}}, slices.Clone(next))
	}
	list := make([][]float64, rows)
	for r := range list {
		row, s := make([]float64, vars), rng.IntN(states)
		for v := range row {
			if row[v] = float64(s % codes); rng.IntN(8) == 0 {
				row[v] = math.NaN()
			}
			s = []int{(3*s + 1) % states, (5*s + 2) % states, (5*s + 2) % states, (5*s + 2) % states}[rng.IntN(4)]
		}
		list[r] = row
	}
	return g, p, list
}

// TestExcludedStates wants rows in which some units of a vector are 0, and the others are not, to be taken as float32 has them, with
// the log-likelihoods and the step of float64: zeros lose no digits.
func TestExcludedStates(t *testing.T) {
	g, p, rows := excludingChain(rand.New(rand.NewPCG(7, 8)), 9, 70)
	ev, err := reference.New(g, p)
	if err != nil {
		t.Fatal(err)
	}
	flows, err := ev.Flows(rows)
	if err != nil {
		t.Fatal(err)
	}
	after := ev.EM(flows, reference.Step{Size: 0.5, Pseudocount: 0.1})
	for _, set := range sets() {
		for _, threads := range []int{1, 3} {
			dev := opener(set, threads)(t)
			defer dev.Close()
			m := kerneltest.Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: len(rows), Train: true})
			ll := make([]float64, len(rows))
			if err := m.Engine.Step(t.Context(), reference.Batch(reference.Schema(g), rows), 0, len(rows), tensor.Rule{Step: 0.5, Pseudocount: 0.1}, ll); err != nil {
				t.Fatal(err)
			}
			for r, got := range ll {
				if want, err := ev.LogLikelihood(rows[r]); err != nil || !(math.Abs(got-want) <= 1e-5) {
					t.Errorf("%s: row %d has %v, want %v; %v", set.Name, r, got, want, err)
				}
			}
			got := m.Read(t)
			for id, theta := range after {
				for i, w := range theta {
					if !(math.Abs(float64(got[id][i])-w) <= 1e-5) {
						t.Fatalf("%s: parameter %d of node %d becomes %v, want %v", set.Name, i, id, got[id][i], w)
					}
				}
			}
			if n := m.Engine.Recomputed(); n != 0 {
				t.Errorf("%s: %d rows of vectors were recomputed in log space, want none", set.Name, n)
			}
		}
	}
}

// TestExcludedParts wants a circuit that excludes nearly all of its parts in every row to keep nothing of these, and what other rows in
// log space take to be used once more by the next call.
func TestExcludedParts(t *testing.T) {
	const parts, units, rows = 100, 8, 512
	g, p := &circuit.Graph{NumVars: 2}, reference.Params{}
	add := func(n circuit.Node, theta []float64) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		p = append(p, theta)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	even := slices.Repeat([]float64{1. / units}, units*units)
	var sums []circuit.NodeID
	for c := range parts {
		own := add(circuit.Node{Kind: circuit.Input, Units: units, Var: 0, Leaf: circuit.Indicator{Domain: parts, Value: c}}, nil)
		tiny := make([]float64, 2*units) // the second code of the first unit has no float32 beside those of the others
		for u := range units {
			tiny[2*u], tiny[2*u+1] = 0.5, 0.5
		}
		tiny[0], tiny[1] = 1, 1e-37
		other := add(circuit.Node{Kind: circuit.Input, Units: units, Var: 1, Leaf: circuit.Categorical{Categories: 2}}, tiny)
		weights := slices.Clone(even)
		if c == 0 { // a unit that reads the first one alone
			copy(weights, []float64{1, 0, 0, 0, 0, 0, 0, 0})
		}
		op := add(circuit.Node{Kind: circuit.Product, Units: units, Children: []circuit.NodeID{own, other}}, nil)
		sums = append(sums, add(circuit.Node{Kind: circuit.Sum, Units: units, Children: []circuit.NodeID{op}}, weights))
	}
	g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: sums}, slices.Repeat([]float64{1. / (parts * units)}, parts*units))
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	batch := func(part func(r int) int, code float64) *dataset.Batch {
		list := make([][]float64, rows)
		for r := range list {
			list[r] = []float64{float64(part(r)), code}
		}
		return reference.Batch(reference.Schema(g), list)
	}
	dev := opener(sets()[0], 2)(t)
	defer dev.Close()
	m := kerneltest.Build(t, dev, g, p, compile.DefaultOptions(), engine.Options{Rows: rows, Train: true})
	all, far, ll := batch(func(r int) int { return r % parts }, 0), batch(func(int) int { return 0 }, 1), make([]float64, rows)
	evaluate := func(b *dataset.Batch) int64 {
		if err := m.Engine.LogLikelihood(t.Context(), b, ll); err != nil {
			t.Fatal(err)
		}
		return heap()
	}
	before := heap()
	if more := evaluate(all) - before; more > 1<<20 || m.Engine.Recomputed() == 0 {
		t.Errorf("parts that rows exclude take %d bytes; %d are in log space", more, m.Engine.Recomputed())
	}
	once := evaluate(far)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	twice := evaluate(far)
	runtime.ReadMemStats(&end)
	if kept, made := twice-once, end.TotalAlloc-start.TotalAlloc; once-before < 1<<16 || kept > 1<<15 || made > 1<<16 {
		t.Errorf("rows in log space take %d bytes; the same ones %d more, for which %d were allocated", once-before, kept, made)
	}
}
