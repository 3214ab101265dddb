package forest

import (
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/sliced"
)

// testKey is what comparisons of one number have in common.
type testKey struct {
	threshold uint64 // its bits
	feature   int32
	test      forest.Test
	missing   bool
	zero      bool
}

func keyOf(n *forest.Node) testKey {
	return testKey{math.Float64bits(n.Threshold), n.Feature, n.Test, n.MissingYes, n.ZeroMissing}
}

// testNode is the first node that asks a test.
type testNode struct{ tree, node int32 }

// testPart is a run of trees whose tests are numbered apart from those of other runs.
// Most forests ask the same over and over, so the cut points and the mask of each test are found once.
type testPart struct {
	first, last int               // its trees
	asked       []int32           // of all nodes, tree by tree: the test's number
	starts      []int             // of each tree, in asked
	tests       []testNode        // by number
	numbers     map[testKey]int32 // nil once it turns out that this forest asks nearly every test once
	masks       []int32           // by number: that among the tests of the forest, and in the end the mask
}

const (
	// manyTests is how many tests a run of trees may have before it matters whether they are asked again.
	manyTests = 1 << 14
	// partTrees is the least number of trees of a run.
	partTrees = 16
	mostParts = 64
)

// findTests numbers the tests of the forest in the order of trees and nodes. Where tests have several
// numbers they get the same mask, so the module does not depend on how trees are divided.
func (l *lowering) findTests() {
	size := max(partTrees, (len(l.f.Trees)+mostParts-1)/mostParts)
	for first := 0; first < len(l.f.Trees); first += size {
		l.parts = append(l.parts, testPart{first: first, last: min(first+size, len(l.f.Trees))})
	}
	_ = parallel.Each(len(l.parts), func() func(int) error { // whose function returns nil
		return func(i int) error {
			l.parts[i].find(l.f)
			return nil
		}
	})
	numbers := map[testKey]int32{}
	for i := range l.parts {
		p := &l.parts[i]
		p.masks = make([]int32, len(p.tests))
		for k, at := range p.tests {
			n := &l.f.Trees[at.tree].Nodes[at.node]
			shared := p.numbers != nil && !n.Test.Categorical()
			if shared {
				if known, ok := numbers[keyOf(n)]; ok {
					p.masks[k] = known
					continue
				}
				numbers[keyOf(n)] = int32(len(l.tests))
			}
			p.masks[k] = int32(len(l.tests))
			l.tests = append(l.tests, at)
		}
		p.tests, p.numbers = nil, nil
	}
}

// find numbers the tests of the part's nodes.
func (p *testPart) find(f *forest.Forest) {
	nodes := 0
	for i := p.first; i < p.last; i++ {
		p.starts = append(p.starts, nodes)
		nodes += len(f.Trees[i].Nodes)
	}
	p.asked, p.numbers = make([]int32, 0, nodes), map[testKey]int32{}
	for i := p.first; i < p.last; i++ {
		t := &f.Trees[i]
		for j := range t.Nodes {
			at := int32(0)
			if t.Nodes[j].Test != forest.Leaf {
				at = p.number(&t.Nodes[j], testNode{int32(i), int32(j)})
			}
			p.asked = append(p.asked, at)
		}
	}
}

// number returns the number of a node's test. Tests of categories have one each.
func (p *testPart) number(n *forest.Node, where testNode) int32 {
	at := int32(len(p.tests))
	if len(p.numbers) > manyTests && len(p.numbers) > len(p.asked)/4 { // half of the nodes are leaves
		p.numbers = nil
	}
	if p.numbers != nil && !n.Test.Categorical() {
		key := keyOf(n)
		if known, ok := p.numbers[key]; ok {
			return known
		}
		p.numbers[key] = at
	}
	p.tests = append(p.tests, where)
	return at
}

// columns collects the cut points of every feature.
func (l *lowering) columns() error {
	cuts := map[int32][]float64{}
	for _, at := range l.tests {
		t := &l.f.Trees[at.tree]
		n := &t.Nodes[at.node]
		list := cuts[n.Feature]
		if list == nil {
			list = []float64{}
		}
		for _, s := range l.spans(t, n) {
			for _, b := range [...]bound{s.from, s.to} {
				if b.set {
					list = append(list, b.at+0) // one zero
				}
			}
		}
		cuts[n.Feature] = list
	}
	features := make([]int32, 0, len(cuts))
	for feature := range cuts {
		features = append(features, feature)
	}
	slices.Sort(features)
	l.m.Columns = make([]sliced.Column, len(features))
	l.column = make(map[int32]int32, len(features))
	for i, feature := range features {
		l.column[feature] = int32(i)
	}
	return parallel.Each(len(features), func() func(int) error {
		return func(i int) error {
			feature := features[i]
			list := cuts[feature]
			slices.Sort(list)
			list = slices.Compact(list)
			if len(list) > sliced.MaxCuts {
				return fmt.Errorf("%w: feature %d has %d cut points; want at most %d", ErrLower, feature, len(list), sliced.MaxCuts)
			}
			l.m.Columns[i] = sliced.Column{Feature: feature, Cuts: list}
			return nil
		}
	})
}
