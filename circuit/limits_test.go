package circuit

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// oneSum is a sum of the given number of units over inputs of the given units, and the root.
func oneSum(units int, inputs ...int) *Graph {
	g := &Graph{NumVars: 1}
	var children []NodeID
	for _, u := range inputs {
		children = append(children, NodeID(len(g.Nodes)))
		g.Nodes = append(g.Nodes, Node{Kind: Input, Units: u, Leaf: Bernoulli{}})
	}
	g.Nodes = append(g.Nodes, Node{Kind: Sum, Units: units, Children: children})
	g.Nodes = append(g.Nodes, Node{Kind: Sum, Units: 1, Children: []NodeID{NodeID(len(g.Nodes) - 1)}})
	g.Root = NodeID(len(g.Nodes) - 1)
	return g
}

// times repeats a number of units.
func times(n, units int) (list []int) {
	for range n {
		list = append(list, units)
	}
	return list
}

// TestGraphLimits stands graphs on either side of each bound.
func TestGraphLimits(t *testing.T) {
	vars := func(n, v int) *Graph {
		g := oneSum(1, 1)
		g.NumVars, g.Nodes[0].Var = n, v
		return g
	}
	domain := func(codes int) *Graph {
		g := oneSum(1, 1)
		g.Nodes[0].Leaf = Categorical{Categories: codes}
		return g
	}
	leafParams := func(units, categories int) *Graph {
		g := oneSum(1, units)
		g.Nodes[0].Leaf = Categorical{Categories: categories}
		return g
	}
	for _, tc := range []struct {
		name  string
		graph *Graph
		ok    bool
	}{
		{"2^24 variables", vars(1<<24, 1<<24-1), true},
		{"one more", vars(1<<24+1, 0), false},
		{"2^24 units", oneSum(1<<24, 1), true},
		{"one more unit", oneSum(1<<24+1, 1), false},
		{"2^31 columns", oneSum(1, times(128, 1<<24)...), true},
		{"one more column", oneSum(1, append(times(128, 1<<24), 1)...), false},
		{"2^40 weights", oneSum(1<<16, 1<<24), true},
		{"more weights", oneSum(1<<16+1, 1<<24), false},
		{"most codes", domain(1 << 24), true},
		{"one more code", domain(1<<24 + 1), false},
		{"2^40 leaf parameters", leafParams(1<<24, 1<<16), true},
		{"more leaf parameters", leafParams(1<<24, 1<<16+1), false},
	} {
		if err := Validate(tc.graph); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrGraph) {
			t.Errorf("%s: %v, want ok: %v", tc.name, err, tc.ok)
		}
	}
}

// TestLimitNamed wants the limit that a sum is beyond in the error, not the other one.
func TestLimitNamed(t *testing.T) {
	for want, g := range map[string]*Graph{
		"sum node 129 is over 2147483649 units of children; want at most 2147483648":                     oneSum(1, append(times(128, 1<<24), 1)...),
		"sum node 1 has 65537 units over 16777216 units of children; want at most 1099511627776 weights": oneSum(1<<16+1, 1<<24),
	} {
		if err := Validate(g); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestTrialsLimit takes the most trials of a binomial leaf, whose codes are one more,
// and refuses one more.
func TestTrialsLimit(t *testing.T) {
	for trials, ok := range map[int]bool{0: false, 1: true, 1<<24 - 1: true, 1 << 24: false} {
		g := oneSum(1, 1)
		g.Nodes[0].Leaf = Binomial{Trials: trials}
		if err := Validate(g); (err == nil) != ok {
			t.Errorf("%d trials: %v, want ok: %v", trials, err, ok)
		}
	}
}

// TestMassTolerance stands sums of probabilities on either side of what files of
// other programs may be off by.
func TestMassTolerance(t *testing.T) {
	g := oneSum(1, 2)
	for _, tc := range []struct {
		off float64
		ok  bool
	}{{0, true}, {0.9e-3, true}, {-0.9e-3, true}, {1.1e-3, false}, {-1.1e-3, false}, {math.NaN(), false}} {
		if err := CheckParams(g, 1, []float64{0.25, 0.75 + tc.off}); (err == nil) != tc.ok {
			t.Errorf("weights that are off by %v: %v, want ok: %v", tc.off, err, tc.ok)
		}
		if err := CheckParams(g, 0, []float64{0.25, 0.75 + tc.off, 0.5, 0.5}); (err == nil) != tc.ok {
			t.Errorf("a leaf that is off by %v: %v, want ok: %v", tc.off, err, tc.ok)
		}
	}
}

// TestSupportSteps looks for a proof that two supports are disjoint with the last
// step that is allowed, and with the one after it.
func TestSupportSteps(t *testing.T) {
	g := &Graph{NumVars: 1, Nodes: []Node{
		{Kind: Input, Units: 1, Leaf: Indicator{Domain: 2}},
		{Kind: Input, Units: 1, Leaf: Indicator{Domain: 2, Value: 1}},
	}}
	for before, want := range map[int]bool{0: true, 1<<22 - 1: true, 1 << 22: false} {
		d := disjointness{g: g, known: map[[2]NodeID]bool{}, steps: before}
		if got := d.disjoint(0, 1); got != want {
			t.Errorf("after %d steps: disjoint %v, want %v", before, got, want)
		}
	}
}
