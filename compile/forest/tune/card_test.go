package tune

import (
	"errors"
	"slices"
	"testing"

	"github.com/pce-engine/pce/compile/forest/schedule"
)

// TestCards: the points of Algorithm 1 on both sides of its bounds. Their schedules are legal, differ, and use a card.
func TestCards(t *testing.T) {
	wide := func(features int) *Shape { return shapeOf(features, slices.Repeat([]int{8}, 100)...) }
	for _, c := range []struct {
		s       *Shape
		batch   int
		points  int
		rows    []int
		threads []int
		cached  bool
	}{
		{wide(100), 2048, 2 * 2 * 3 * 3, []int{8, 32}, []int{20, 50}, true},
		{wide(100), 2049, 2 * 2 * 2 * 3, []int{32, 64}, []int{2, 10}, true},
		{wide(101), 2049, 2 * 2 * 2 * 3, []int{8, 32}, []int{20, 50}, true},
		{wide(1500), 64, 2 * 2 * 3 * 3, []int{8, 32}, []int{20, 50}, true},
		{wide(1501), 64, 2 * 2 * 3 * 3, []int{8, 32}, []int{20, 50}, false},
		{shapeOf(4, 3, 3, 3), 64, 3 * 3, []int{32}, []int{3}, true}, // blocks of 24 threads are too small
	} {
		all := Cards(c.s, c.batch)
		if c.batch <= fewRows && c.s.Trees == 100 { // 32 rows of 50 threads are too many for a block
			c.points -= 3 * 3
		}
		if c.batch > fewRows && c.s.Features > manyFeatures {
			c.points -= 2 * 3
		}
		if len(all) != c.points {
			t.Errorf("%d rows of %d features: %d points, want %d", c.batch, c.s.Features, len(all), c.points)
		}
		seen := map[string]bool{}
		for _, p := range append(all, CardsReduced(all)...) {
			s := p.Schedule(c.s.Trees, c.s.Depth)
			n, err := s.Nest()
			if err != nil {
				t.Fatalf("%+v: %v", p, err)
			}
			if seen[s.Text()] || n.Loops[0].Dimension != "grid.x" || n.Loops[0].Cache != p.CacheRows {
				t.Errorf("%+v\n%s", p, n.Text())
			}
			seen[s.Text()] = true
			if !slices.Contains(c.rows, p.RowsPerBlock) || !slices.Contains(c.threads, p.TreeThreads) || p.CacheRows && !c.cached || p.Threads() > mostThreads || p.Threads() < leastThreads {
				t.Errorf("%d rows of %d features: %+v", c.batch, c.s.Features, p)
			}
		}
		for _, p := range all {
			if p.CacheRows != c.cached || p.SharedReduce || p.Unroll != (p.Interleave > 1) {
				t.Errorf("%+v in the first part", p)
			}
		}
		if more := CardsReduced(all); len(more) > 2*best || !more[0].SharedReduce {
			t.Errorf("the second part has %+v", more)
		}
	}
	p := CardParams{RowsPerBlock: 64, RowsPerThread: 4, TreeThreads: 4, Interleave: 2, CacheTrees: true, Unroll: true, Represent: schedule.Reorg, SharedReduce: true}
	n, err := p.Schedule(10, 5).Nest()
	want := "represent reorg\npad\nfor b0 in batch by 64, gpuDimension grid.x\n  for b2 in batch by 4, gpuDimension block.x\n    for b3 in batch\n" +
		"      for t0 in tree by 3, gpuDimension block.y, cache, sharedReduce\n        for t1 in tree, interleave 2, unrollWalk 5\n"
	if err != nil || n.Text() != want || p.Threads() != 64 {
		t.Errorf("%v\n%s, want\n%s", err, n.Text(), want)
	}
}

// TestGuessCard: few rows are spread over more threads than many, and what does not fit is refused.
func TestGuessCard(t *testing.T) {
	few, err := H200.GuessCard(hundred(8), 256)
	many, err2 := H200.GuessCard(hundred(8), 1<<20)
	if err != nil || err2 != nil || few.TreeThreads <= many.TreeThreads {
		t.Errorf("%v, %v: %+v for 256 rows, %+v for a million", err, err2, few, many)
	}
	s := hundred(8)
	p := many
	if a, b := H200.Cost(s, &p, 1<<16), H200.Cost(s, &p, 1<<20); !(a > 0) || b < 8*a || b > 17*a {
		t.Errorf("16 times the rows take %v, not 16 times %v", b, a)
	}
	p.CacheTrees, p.Represent = true, schedule.Array
	if c := H200.Cost(hundred(14), &p, 4096); c < 1e300 {
		t.Errorf("a forest of 26 MB is cached in %v", c)
	}
	if _, err := (&Card{Processors: 1, Clock: 1, Threads: 31, Shared: 1}).GuessCard(s, 256); !errors.Is(err, ErrTune) {
		t.Errorf("a card without room: %v", err)
	}
}
