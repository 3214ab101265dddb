package sliced

import (
	"testing"

	"github.com/pce-engine/pce/kernels/sliced"
)

// TestTogether: rows of trees that go on below their tops walk through a tree in many blocks, others in one, and so do those of
// many outputs, whose sums would take hundreds of megabytes for each thread.
func TestTogether(t *testing.T) {
	for _, tt := range []struct{ nodes, outputs, want int }{
		{maxHeight, 1, blockRows}, {maxHeight + 4, 1, deepMost * blockRows}, {maxHeight + 4, 1024, deepMost * blockRows}, {maxHeight + 4, 1 << 14, blockRows},
	} {
		nodes, want := tt.nodes, tt.want
		m := &sliced.Module{Features: 1, Outputs: tt.outputs, Single: true, Columns: []sliced.Column{{Cuts: []float64{0}}}, Masks: []sliced.Mask{{Ends: []uint16{1}}}}
		chain := sliced.Tree{Values: []sliced.Value{{Value: 1}}, Leaves: make([]sliced.Leaf, nodes+1)}
		for i := range int32(nodes) {
			chain.Leaves[i+1].Last = 1
			chain.Nodes = append(chain.Nodes, sliced.Node{Yes: i + 1, No: ^i})
		}
		chain.Nodes[nodes-1].Yes = ^int32(nodes)
		m.Trees = []sliced.Tree{chain}
		for _, l := range All() {
			p, err := New(m, l)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Together(); got != want {
				t.Errorf("%s: a chain of %d nodes and %d outputs has %d rows together, want %d", l.Name, nodes, tt.outputs, got, want)
			}
			if s := p.newScratch(); len(s.single)+len(s.deep.single) != tt.outputs*want {
				t.Errorf("%s: %d and %d sums of %d outputs", l.Name, len(s.single), len(s.deep.single), tt.outputs)
			}
		}
	}
}
