package learnspn

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
)

// evaluator returns the reference evaluation of a learned circuit.
func evaluator(t *testing.T, l *Learned) *reference.Evaluator {
	t.Helper()
	p, err := reference.Load(l.Graph, l.Params)
	if err != nil {
		t.Fatal(err)
	}
	ev, err := reference.New(l.Graph, p)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// TestMassIsOne sums the probabilities of all 1024 states of circuits with both leaves and
// both clusterings.
func TestMassIsOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	src, leaves := tableOf(t, families(600, 0.1, rng)...)
	for _, leaf := range []string{ChowLiu, Factors} {
		l := learnFrom(t, src, leaves, func(o *Options) { o.Leaf = leaf })
		mass, err := evaluator(t, l).Mass(reference.MissingRow(10))
		if err != nil {
			t.Fatal(err)
		}
		if !near(mass, 1, 1e-6) {
			t.Errorf("%s: the states have mass %v", leaf, mass)
		}
	}
}

// TestOwnEvaluation compares the log-likelihoods by which settings are searched with those of
// the graph, over rows with missing cells.
func TestOwnEvaluation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src, leaves := tableOf(t, families(500, 0.2, rng)...)
	for _, leaf := range []string{ChowLiu, Factors} {
		o := Defaults()
		o.Leaves, o.MinRows, o.Leaf, o.Threshold = leaves, 50, leaf, 1
		all, err := readTable(t.Context(), src, leaves)
		if err != nil {
			t.Fatal(err)
		}
		root := learn(t.Context(), all, &o)
		l := &Learned{}
		l.Graph, l.Params = assemble(all, root)
		ev := evaluator(t, l)
		got := root.logLik(all, whole(all).rows)
		for r := range got {
			row := reference.MissingRow(len(all))
			for v := range all {
				if x, ok := all[v].at(int32(r)); ok {
					row[v] = x
				}
			}
			want, err := ev.LogLikelihood(row)
			if err != nil {
				t.Fatal(err)
			}
			if !near(got[r], want, 1e-5) {
				t.Fatalf("%s: row %d has log-likelihood %v, the graph says %v", leaf, r, got[r], want)
			}
		}
	}
}

// TestFamiliesPart wants the two families of columns, which are independent of each other,
// as the children of a product at the root.
func TestFamiliesPart(t *testing.T) {
	src, leaves := tableOf(t, families(2000, 0.1, rand.New(rand.NewPCG(5, 6)))...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	s := whole(all)
	want := [][]int{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}}
	for _, test := range []string{GTest, RDC} {
		o.Columns, o.Threshold = test, 0
		o.choose(all)
		l := &learner{ctx: t.Context(), opts: &o}
		if got := components(10, l.dependence(s, rand.New(rand.NewPCG(1, 1)))); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: components %v, want %v", test, got, want)
		}
	}
}

// TestEndsWithContext wants nothing more to be tested, counted or fitted once the context has ended.
func TestEndsWithContext(t *testing.T) {
	src, leaves := tableOf(t, families(500, 0, rand.New(rand.NewPCG(71, 72)))...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	o := Defaults()
	o.MinRows = 50
	o.choose(all)
	ctx, cancel := context.WithCancel(t.Context())
	l := &learner{ctx: ctx, opts: &o, fit: newLeafFitter(all, o.Smoothing)}
	dependent := l.dependence(whole(all), rand.New(rand.NewPCG(1, 1)))
	before := dependent(0, 1)
	cancel()
	if n := l.grow(whole(all), 1); !before || dependent(0, 1) || n.tree != nil || len(n.children) > 0 {
		t.Errorf("dependent before %v and after %v; %d children, a tree %v", before, dependent(0, 1), len(n.children), n.tree != nil)
	}
}

// TestWorkersDoNotMatter compares graphs and parameters of one worker and of several.
func TestWorkersDoNotMatter(t *testing.T) {
	src, leaves := tableOf(t, families(3000, 0.05, rand.New(rand.NewPCG(7, 8)))...)
	text := func(workers, components int) (*circuit.Graph, []byte) {
		l := learnFrom(t, src, leaves, func(o *Options) {
			o.Workers, o.Components, o.MinRows, o.Threshold = workers, components, 60, 0.3
		})
		var b bytes.Buffer
		for id := range l.Graph.Nodes {
			if id := circuit.NodeID(id); l.Graph.OwnsParams(id) {
				p := make([]float32, l.Graph.NumParams(id))
				if err := l.Params(id, p); err != nil {
					t.Fatal(err)
				}
				if err := binary.Write(&b, binary.LittleEndian, p); err != nil {
					t.Fatal(err)
				}
			}
		}
		return l.Graph, b.Bytes()
	}
	for _, components := range []int{1, 3} {
		graph, params := text(1, components)
		for _, workers := range []int{2, 7} {
			g, p := text(workers, components)
			if !reflect.DeepEqual(g, graph) || !bytes.Equal(p, params) {
				t.Errorf("%d components: %d workers learn another circuit than one", components, workers)
			}
		}
		if len(graph.Nodes) < 100*components {
			t.Errorf("%d components: only %d nodes, nothing was cut", components, len(graph.Nodes))
		}
	}
}

// TestMixedComponents wants a mixture of circuits, no two of which are the same, to be likelier on rows
// that were not learned from than one circuit, with settings that fit too closely.
func TestMixedComponents(t *testing.T) {
	// Each of 20 columns is the majority of three of six hidden bits, one time in ten the opposite.
	votes := func(rows int, rng *rand.Rand) []column {
		columns := make([]column, 20)
		for v := range columns {
			columns[v] = column{categories: 2, codes: make([]int, rows)}
		}
		for r := range rows {
			hidden := rng.Uint32()
			for v := range columns {
				code := (hidden>>(v%6)&1 + hidden>>((v+1+v/6)%6)&1 + hidden>>((v+3)%6)&1) / 2
				if rng.IntN(10) == 0 {
					code = 1 - code
				}
				columns[v].codes[r] = int(code)
			}
		}
		return columns
	}
	src, leaves := tableOf(t, votes(500, rand.New(rand.NewPCG(1, 2)))...)
	held, _ := tableOf(t, votes(1000, rand.New(rand.NewPCG(3, 4)))...)
	all, err := readTable(t.Context(), src, leaves)
	if err != nil {
		t.Fatal(err)
	}
	valid, err := readTable(t.Context(), held, leaves)
	if err != nil {
		t.Fatal(err)
	}
	score := map[int]float64{}
	for _, components := range []int{1, 2, 8} {
		o := Defaults()
		o.MinRows, o.Threshold, o.Components = 50, 1, components
		o.choose(all)
		root := learn(t.Context(), all, &o)
		if components > 1 {
			if root.kind != sumNode || len(root.children) != components {
				t.Fatalf("%d components: the root is of kind %d with %d children", components, root.kind, len(root.children))
			}
			for i, w := range root.weights {
				if w != 1/float64(components) || i > 0 && reflect.DeepEqual(root.children[i], root.children[i-1]) {
					t.Errorf("%d components: number %d has weight %v, or equals the one before", components, i, w)
				}
			}
		}
		score[components] = mean(root.logLik(valid, whole(valid).rows))
	}
	if !(score[8] > score[2] && score[8] > score[1]+0.2) {
		t.Errorf("mean log-likelihoods by components: %v", score)
	}
}
