package learnspn

import (
	"bytes"
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

// TestWorkersDoNotMatter compares graphs and parameters of one worker and of several.
func TestWorkersDoNotMatter(t *testing.T) {
	src, leaves := tableOf(t, families(3000, 0.05, rand.New(rand.NewPCG(7, 8)))...)
	text := func(workers int) (*circuit.Graph, []byte) {
		l := learnFrom(t, src, leaves, func(o *Options) { o.Workers, o.MinRows, o.Threshold = workers, 60, 0.3 })
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
	graph, params := text(1)
	for _, workers := range []int{2, 7} {
		g, p := text(workers)
		if !reflect.DeepEqual(g, graph) || !bytes.Equal(p, params) {
			t.Errorf("%d workers learn another circuit than one", workers)
		}
	}
	if len(graph.Nodes) < 100 {
		t.Errorf("only %d nodes: nothing was cut", len(graph.Nodes))
	}
}
