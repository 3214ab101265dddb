package compile

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/pce-engine/pce/circuit"
)

// manyColumns is a product of n Bernoulli inputs.
func manyColumns(n int) *circuit.Graph {
	b := &graphOf{g: &circuit.Graph{NumVars: n}}
	var inputs []circuit.NodeID
	for v := range n {
		inputs = append(inputs, b.input(v))
	}
	return b.root(b.add(circuit.Product, inputs...))
}

// nestedProducts multiplies n inputs two at a time: the product so far is the
// first or the second child of the next one.
func nestedProducts(n int, first bool) *circuit.Graph {
	b := &graphOf{g: &circuit.Graph{NumVars: n}}
	last := b.input(0)
	for v := 1; v < n; v++ {
		if in := b.input(v); first {
			last = b.add(circuit.Product, last, in)
		} else {
			last = b.add(circuit.Product, in, last)
		}
	}
	return b.root(b.add(circuit.Sum, last))
}

// mixture is a sum of n inputs of one variable.
func mixture(n int) *circuit.Graph {
	b := &graphOf{g: &circuit.Graph{NumVars: 1}}
	var inputs []circuit.NodeID
	for range n {
		inputs = append(inputs, b.input(0))
	}
	return b.root(b.add(circuit.Sum, inputs...))
}

// hmm is a chain of n steps with two states, as nodes of one unit.
func hmm(n int) *circuit.Graph {
	b := &graphOf{g: &circuit.Graph{NumVars: n}}
	x, y := b.input(0), b.input(0)
	for v := 1; v < n; v++ {
		s, t := b.add(circuit.Sum, x, y), b.add(circuit.Sum, x, y)
		x, y = b.add(circuit.Product, s, b.input(v)), b.add(circuit.Product, t, b.input(v))
	}
	return b.root(b.add(circuit.Sum, x, y))
}

// graphOf adds nodes of one unit to a graph.
type graphOf struct{ g *circuit.Graph }

func (b *graphOf) input(v int) circuit.NodeID {
	id := b.add(circuit.Input)
	b.g.Nodes[id].Var, b.g.Nodes[id].Leaf = v, circuit.Bernoulli{}
	return id
}

func (b *graphOf) add(kind circuit.Kind, children ...circuit.NodeID) circuit.NodeID {
	b.g.Nodes = append(b.g.Nodes, circuit.Node{Kind: kind, Units: 1, Children: children})
	return circuit.NodeID(len(b.g.Nodes) - 1)
}

func (b *graphOf) root(id circuit.NodeID) *circuit.Graph {
	b.g.Root = id
	return b.g
}

var longShapes = []struct {
	name  string
	build func(n int) *circuit.Graph
}{
	{"columns", manyColumns},
	{"nested-first", func(n int) *circuit.Graph { return nestedProducts(n, true) }},
	{"nested-second", func(n int) *circuit.Graph { return nestedProducts(n, false) }},
	{"mixture", mixture},
	{"hmm", hmm},
}

// TestCompileMemoryIsLinear compiles circuits four times as long with at most
// five times the bytes.
func TestCompileMemoryIsLinear(t *testing.T) {
	allocated := func(g *circuit.Graph) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		mustCompile(t, g, DefaultOptions())
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, s := range longShapes {
		small, large := allocated(s.build(4000)), allocated(s.build(16000))
		if large > 5*small {
			t.Errorf("%s: %d bytes for 4,000 variables, %d for 16,000", s.name, small, large)
		}
	}
}

// BenchmarkCompile shows what one variable costs in circuits of growing length.
func BenchmarkCompile(b *testing.B) {
	for _, s := range longShapes {
		for _, n := range []int{10_000, 20_000, 40_000, 100_000} {
			b.Run(fmt.Sprintf("shape=%s/n=%d", s.name, n), func(b *testing.B) {
				g := s.build(n)
				for b.Loop() {
					if _, err := Compile(g, DefaultOptions()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/variable")
			})
		}
	}
}
