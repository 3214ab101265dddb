package tensor

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/layers"
)

// TestCut cuts blocks that follow each other but for gaps, on both sides of the bound on
// a run.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		n, size int
		gaps    []int // blocks that do not continue what is before them
		want    []span
	}{
		{0, 4, nil, []span{{0, 0}}},
		{1, 4, nil, []span{{0, 1}}},
		{3, 4, nil, []span{{0, 3}}},
		{3, 4, []int{1, 2}, []span{{0, 1}, {1, 2}, {2, 3}}},
		{4, 4, []int{3}, []span{{0, 3}, {3, 4}}},
		{maxRun / 32, 32, nil, []span{{0, 16}}},
		{maxRun/32 + 1, 32, nil, []span{{0, 16}, {16, 17}}},
		{40, 32, []int{10}, []span{{0, 10}, {10, 26}, {26, 40}}},
		{2, 2 * maxRun, nil, []span{{0, 1}, {1, 2}}},
	} {
		if got := cut(c.n, c.size, func(k int) bool { return !slices.Contains(c.gaps, k) }); !slices.Equal(got, c.want) {
			t.Errorf("%d blocks of %d with gaps at %v: %v, want %v", c.n, c.size, c.gaps, got, c.want)
		}
	}
	for _, c := range []struct{ ids, want []int32 }{{nil, nil}, {[]int32{0}, nil}, {[]int32{3, 1}, []int32{3, 1}}, {[]int32{3, 0, 4}, []int32{3}}} {
		if got := present(c.ids); !slices.Equal(got, c.want) {
			t.Errorf("of %v %v are there, want %v", c.ids, got, c.want)
		}
	}
}

// TestRunsOfWeights wants runs of the backward pass whose weights follow each other: one
// run for a column where the edge blocks stand in the order of its rows, as compile
// writes them, and one for each block where they stand the other way round, which
// Validate allows.
func TestRunsOfWeights(t *testing.T) {
	const size = 16
	g, err := structures.HMM(structures.HMMOptions{Length: 3, Latents: 4 * size, Leaf: func(int) circuit.Leaf { return circuit.Bernoulli{} }})
	if err != nil {
		t.Fatal(err)
	}
	o := compile.DefaultOptions()
	o.BlockSize = size
	for _, reversed := range []bool{false, true} {
		r, err := compile.Compile(g, o)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Program
		renumber := func(params []int32) {
			for i, block := range params {
				for _, s := range p.Sums {
					if reversed && block >= s.Param && block < s.Param+s.NumBlocks {
						params[i] = 2*s.Param + s.NumBlocks - 1 - block
						break
					}
				}
			}
		}
		type edge struct{ row, col int32 } // node block and element block
		weights := map[edge]int32{}
		for _, l := range p.Layers {
			for _, q := range l.Sums {
				renumber(q.ParamIDs)
			}
			for _, q := range l.Elements {
				renumber(q.ParentParamIDs)
				for i, n := range q.ParentIDs {
					weights[edge{n, q.ElementIDs[i/q.MaxParents]}] = q.ParentParamIDs[i]
				}
			}
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		x := newExecutor(layers.Module{Program: p, Rows: 4, Train: true}, opened(t, cpu.Options{Threads: 1}))
		longest := 0
		for i, sp := range x.sumPlans() {
			s := &p.Sums[i]
			rows, cols := p.Vectors[s.Vector].First, p.Elements[s.ElemLo].First
			for _, run := range sp.back {
				longest = max(longest, run.n/size)
				for b := range int32(run.n / size) {
					e := edge{rows + int32(run.row/size) + b, cols + int32(run.col/size)}
					if got, want := run.param+b, weights[e]; got != want {
						t.Errorf("reversed %v: sum %d takes weight block %d from node block %d to element block %d, want %d", reversed, i, got, e.row, e.col, want)
					}
				}
			}
		}
		if want := map[bool]int{false: 4, true: 1}[reversed]; longest != want {
			t.Errorf("reversed %v: the longest run has %d blocks, want %d", reversed, longest, want)
		}
	}
}
