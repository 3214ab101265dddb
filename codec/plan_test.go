package codec

import (
	"bytes"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
)

// TestPlanOfTrees wants one pass up and one down where a circuit splits its variables in one
// way: nothing is computed twice of any node. What is computed too often changes no byte of a
// file, so no other test sees it.
func TestPlanOfTrees(t *testing.T) {
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 2} }
	for name, parents := range map[string][]int{
		"one variable": {-1},
		"chain":        {-1, 0, 1, 2, 3},
		"star":         {-1, 0, 0, 0, 0, 0},
		"tree":         {-1, 0, 0, 0, 1, 1, 1, 2, 2, 4, 4, 4, 9},
	} {
		g, err := structures.HCLT(structures.Tree{Parent: parents}, structures.HCLTOptions{Latents: 2, Leaf: leaf})
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPlan(g)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.vars) != len(parents) || int(p.first[len(parents)]) != len(p.ops) {
			t.Fatalf("%s: %d steps and %d ops of %d variables", name, len(p.vars), len(p.ops), len(parents))
		}
		times := map[op]int{}
		for _, o := range p.ops {
			if o.kind == opOutside && p.alias[o.node] != circuit.None {
				t.Errorf("%s: the outside of node %d, which a partial has, is computed", name, o.node)
			}
			included := op{kind: o.kind, node: o.node}
			if o.kind == opInclude { // each child for itself
				included.from = int32(p.args[o.from])
			}
			if times[included]++; times[included] > 1 {
				t.Errorf("%s: computation %d of node %d comes %d times, want once", name, o.kind, o.node, times[included])
			}
		}
	}
}

// TestPlanOfRoots codes rows of a circuit whose root is a product, beside nodes that the root
// does not reach. The size says whether the right probabilities were used: damage to them is
// the same in both directions.
func TestPlanOfRoots(t *testing.T) {
	input := func(v int) circuit.Node {
		return circuit.Node{Kind: circuit.Input, Units: 1, Var: v, Leaf: circuit.Bernoulli{}}
	}
	g := &circuit.Graph{NumVars: 3, Root: 4, Nodes: []circuit.Node{
		input(1), input(0), input(1), input(2),
		{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{1, 2, 3}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0}},
	}}
	chances := []float32{0.5, 0.5, 0.125, 0.25} // of ones, by node
	params := func(id circuit.NodeID, dst []float32) error {
		if dst[0] = 1; g.Nodes[id].Kind == circuit.Input {
			dst[0], dst[1] = 1-chances[id], chances[id]
		}
		return nil
	}
	m, err := New(g, params, reference.Schema(g))
	if err != nil {
		t.Fatal(err)
	}
	const rows = 4096
	content := []byte{0, 0, 8, 2, 0, 0, rows >> 8, 0, 0, 0, 0, 3}
	for r := range rows {
		bit := func(on bool) byte {
			if on {
				return 1
			}
			return 0
		}
		content = append(content, byte(r&1), bit(r%8 == 5), bit(r/8%4 == 2))
	}
	var file, back bytes.Buffer
	if _, err := m.Compress(t.Context(), &file, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Decompress(t.Context(), &back, bytes.NewReader(file.Bytes())); err != nil || !bytes.Equal(back.Bytes(), content) {
		t.Fatalf("what was compressed does not come back: %v", err)
	}
	entropy := func(p float64) float64 { return -p*math.Log2(p) - (1-p)*math.Log2(1-p) }
	bits := rows * (1 + entropy(0.125) + entropy(0.25)) // the rows have just these frequencies
	if size := float64(file.Len()); !(size <= 1.001*bits/8+64) || !(size >= bits/8) {
		t.Errorf("%v bytes for %v bits", size, bits)
	}
}
