package compile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// TestMaxUnits counts the units of vectors and of products up to the bound.
func TestMaxUnits(t *testing.T) {
	const most = 1 << 28
	for _, tc := range []struct {
		name  string
		units []int // of vectors; the last one multiplies the first one as often as products says
		times int
		ok    bool
	}{
		{"vectors at the bound", []int{most - 32, 31}, 0, true},
		{"vectors beyond it", []int{most - 31, 1}, 0, false},
		{"products at the bound", []int{most / 8, 1}, 8, true},
		{"products beyond it", []int{most/8 + 1, 1}, 8, false},
	} {
		s := &state{cuts: []int32{0}}
		for _, u := range tc.units {
			s.nodes = append(s.nodes, node{units: u})
		}
		for range tc.times {
			s.factors = append(s.factors, 0)
			s.cuts = append(s.cuts, int32(len(s.factors)))
		}
		s.nodes[len(s.nodes)-1].hi = int32(tc.times)
		if err := s.checkUnits(32); (err == nil) != tc.ok || err != nil && !errors.Is(err, circuit.ErrGraph) {
			t.Errorf("%s: %v, want ok: %v", tc.name, err, tc.ok)
		}
	}
}

// TestMaxEdgeBlocks makes room for edge blocks up to the bound.
func TestMaxEdgeBlocks(t *testing.T) {
	const most = 1 << 27
	s := &state{prog: &layers.Program{BlockSize: 32, ParamBlocks: 5}}
	if err := s.room(most - 5); err != nil {
		t.Errorf("%d edge blocks: %v", most, err)
	}
	if err := s.room(most - 4); !errors.Is(err, ErrOptions) {
		t.Errorf("%d edge blocks: %v, want ErrOptions", most+1, err)
	}
	for size, want := range map[int]string{16: "of 16 units; use a larger compile.block_size or a smaller circuit", 32: "of 32 units; use a smaller circuit"} {
		s.prog.BlockSize = size
		if err := s.room(most); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTooManyEdgeBlocks compiles a sum of more edge blocks than there may be: that is an error before any of them takes memory.
func TestTooManyEdgeBlocks(t *testing.T) {
	const units = 1<<14 + 1<<12
	g := &circuit.Graph{NumVars: 1, Root: 2, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: units, Leaf: circuit.Bernoulli{}},
		{Kind: circuit.Sum, Units: units, Children: []circuit.NodeID{0}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{1}},
	}}
	o := DefaultOptions()
	o.BlockSize = 1
	for name, e := range map[string]*circuit.Edges{"all": nil, "in blocks": {Rows: units, Cols: units, Pairs: [][2]int32{{0, 0}}}} {
		g.Nodes[1].Edges = e
		if _, err := Compile(g, o); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "edge blocks of 1 units") {
			t.Errorf("%s: %v, want ErrOptions of edge blocks", name, err)
		}
	}
}

// TestSparseBlocks lists the blocks that many edge blocks share once, up to a bound.
func TestSparseBlocks(t *testing.T) {
	const units, size = 256, 32
	e := &circuit.Edges{Rows: 1, Cols: 1}
	for r := range int32(units) {
		for c := range int32(units) {
			e.Pairs = append(e.Pairs, [2]int32{r, c})
		}
	}
	cols := columns{start: []int{0, 100, units}, first: []int32{0, 4}, units: units, blocks: 9}
	const want = units / size * (4 + 5)
	for most, ok := range map[int64]bool{want: true, want - 1: false, 1 << 27: true} {
		if blks, got := sparseBlocks(e, cols, size, most); got != ok || got && (len(blks) != want || blks[1] != edgeBlock{1, 0} || blks[want-1] != edgeBlock{7, 8}) {
			t.Errorf("at most %d: %d blocks, %v", most, len(blks), got)
		}
	}
}

// TestGroupRoundsManyCounts groups 512 distinct counts as they are, and rounds 513.
func TestGroupRoundsManyCounts(t *testing.T) {
	counts := func(n int) (list []int) {
		for c := range n {
			list = append(list, c+1)
		}
		return list
	}
	if got := group(counts(512), 600, 0); !slices.Equal(got, counts(512)) {
		t.Errorf("512 distinct counts are padded to %d capacities", len(got))
	}
	if got := group(counts(513), 600, 0); len(got) > 512 || got[len(got)-1] != 513 {
		t.Errorf("513 distinct counts are padded to %d capacities up to %d, want at most 512", len(got), got[len(got)-1])
	}
}

// TestBlockSize chooses the size of blocks on either side of where two of them cost
// the same.
func TestBlockSize(t *testing.T) {
	for _, tc := range []struct {
		hidden, columns int // units of a sum below the root, 0: none, and of the input
		want            int
	}{
		{0, 11, 1}, {0, 12, 16}, // 25·11 < 1.15·16² < 25·12
		{304, 304, 16}, {336, 336, 32}, // 1.15·(304² + 16·304) < 320² + 32·320, and the other way round
	} {
		b := &graphOf{g: &circuit.Graph{NumVars: 1}}
		last := b.input(0)
		b.g.Nodes[last].Units = tc.columns
		if tc.hidden > 0 {
			last = b.add(circuit.Sum, last)
			b.g.Nodes[last].Units = tc.hidden
		}
		r := mustCompile(t, b.root(b.add(circuit.Sum, last)), DefaultOptions())
		if got := r.Program.BlockSize; got != tc.want {
			t.Errorf("%+v: blocks of %d units, want %d", tc, got, tc.want)
		}
	}
}
