package layers_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/layers"
)

// flowOwner has counts at 10 to 29 and normalisers at 100 to 104.
var flowOwner = layers.Owner{Sum: 3, Input: -1, Sharers: 2, Flows: []layers.Range{{Lo: 10, Hi: 30}, {Lo: 100, Hi: 105}}}

// goodFlows are flows that flowOwner accepts, and others around them.
func goodFlows() []int64 {
	f := slices.Repeat([]int64{-7}, 120)
	for i := 10; i < 30; i++ {
		f[i] = int64(i) << 20
	}
	total := int64(0)
	for _, x := range f[10:30] {
		total += x
	}
	for i := 100; i < 105; i++ {
		f[i] = total / 5
	}
	return f
}

// TestFlowCheck feeds flows in chunks of any order.
func TestFlowCheck(t *testing.T) {
	flows := goodFlows()
	rng := rand.New(rand.NewPCG(2, 34))
	for range 200 {
		size := 1 + rng.IntN(130)
		c := layers.NewFlowCheck(flowOwner)
		for _, k := range rng.Perm((len(flows) + size - 1) / size) {
			c.Add(int64(k*size), flows[k*size:min((k+1)*size, len(flows))])
		}
		if err := c.Err(1); err != nil {
			t.Fatalf("chunks of %d: %v", size, err)
		}
	}
}

// TestFlowCheckOfNothing takes an owner that has a range without flows, as an input without statistics has, behind all flows.
func TestFlowCheckOfNothing(t *testing.T) {
	c := layers.NewFlowCheck(layers.Owner{Sum: -1, Input: 5, Sharers: 1, Statistics: true, Flows: []layers.Range{{Lo: 10, Hi: 12}, {Lo: 12, Hi: 12}}})
	c.Add(10, []int64{4, 5})
	if err := c.Err(1); err != nil {
		t.Error(err)
	}
}

// TestFlowCheckRefuses makes one thing wrong at a time.
func TestFlowCheckRefuses(t *testing.T) {
	total := 0.0
	for _, x := range goodFlows()[10:30] {
		total += float64(x)
	}
	within := int64((0x1p-7 + 0x1p-18) * total) // and half a unit for each of 25 flows and shard
	for _, tc := range []struct {
		name   string
		edit   func(f []int64)
		shards int
		words  string // "" where the flows pass
	}{
		{"good", func([]int64) {}, 1, ""},
		{"just within the bound", func(f []int64) { f[17] += within + 12 }, 1, ""},
		{"just outside", func(f []int64) { f[17] += within + 14 }, 1, "want a difference of"},
		{"within for more shards", func(f []int64) { f[17] += within + 50 }, 4, ""},
		{"just too little", func(f []int64) { f[17] -= within + 14 }, 1, "want a difference of"},
		{"negative count", func(f []int64) { f[12] = -1 }, 1, "sum 3 has the flow -1 at 12; want 0 or more"},
		{"negative normaliser", func(f []int64) { f[104] = -5 }, 1, "the flow -5 at 104"},
		{"counts doubled", func(f []int64) {
			for i := 10; i < 15; i++ {
				f[i] *= 2
			}
		}, 1, "want a difference of"},
		{"no normalisers", func(f []int64) { clear(f[100:105]) }, 1, "want a difference of"},
		{"more than 64 bits", func(f []int64) { f[10], f[11], f[12] = math.MaxInt64, math.MaxInt64, math.MaxInt64 }, 1, "want a difference of"},
	} {
		flows := goodFlows()
		tc.edit(flows)
		c := layers.NewFlowCheck(flowOwner)
		c.Add(0, flows)
		if err := c.Err(tc.shards); (tc.words == "") != (err == nil) || err != nil && (!errors.Is(err, layers.ErrFlows) || !strings.Contains(err.Error(), tc.words)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.words)
		}
	}
}

// TestFlowCheckPlaces wants each flow once, and statistics of either sign.
func TestFlowCheckPlaces(t *testing.T) {
	flows := goodFlows()
	add := func(c *layers.FlowCheck, lo, hi int) { c.Add(int64(lo), flows[lo:hi]) }
	for _, tc := range []struct {
		name   string
		chunks [][2]int
		words  string
	}{
		{"a gap", [][2]int{{0, 15}, {16, 120}}, "have not come"},
		{"no end", [][2]int{{0, 104}}, "of sum 3 at 100 to 104"},
		{"no counts", [][2]int{{30, 120}}, "of sum 3 at 10 to 29"},
		{"twice", [][2]int{{0, 20}, {19, 120}}, "the flow of sum 3 at 19 comes twice"},
		{"twice behind a gap", [][2]int{{20, 30}, {0, 15}, {12, 13}}, "at 12 comes twice"},
		{"over another", [][2]int{{14, 15}, {10, 20}}, "at 14 comes twice"},
	} {
		c := layers.NewFlowCheck(flowOwner)
		for _, r := range tc.chunks {
			add(c, r[0], r[1])
		}
		if err := c.Err(1); !errors.Is(err, layers.ErrFlows) || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.words)
		}
	}
	c := layers.NewFlowCheck(flowOwner)
	c.Add(math.MaxInt64-1, flows) // wraps round
	c.Add(math.MinInt64, flows)
	add(c, 0, 120)
	if err := c.Err(1); err != nil {
		t.Errorf("with chunks from elsewhere: %v", err)
	}

	function := layers.Owner{Sum: -1, Input: 5, Sharers: 1, Statistics: true, Flows: flowOwner.Flows}
	flows[11] = -1 << 40
	c = layers.NewFlowCheck(function)
	add(c, 0, 120)
	if err := c.Err(1); err != nil {
		t.Errorf("statistics: %v", err)
	}
	flows[100] = -1
	c = layers.NewFlowCheck(function)
	add(c, 0, 120)
	if err := c.Err(1); !errors.Is(err, layers.ErrFlows) || !strings.Contains(err.Error(), "input 5") {
		t.Errorf("negative normaliser of statistics: %v", err)
	}
}
