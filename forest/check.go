package forest

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/internal/parallel"
)

// Limits of a forest. They bound what a row and its results take.
const (
	MaxFeatures = 1 << 24
	MaxOutputs  = 1 << 16
)

// Check reports the first thing that is wrong with the forest, as an error that
// matches ErrForest: sizes, children and features out of range, nodes that two
// parents share, or categories that are out of order. Readers of files call it.
func (f *Forest) Check() error {
	if f == nil {
		return fmt.Errorf("%w: a nil pointer; give a forest", ErrForest)
	}
	if f.Features < 0 || f.Features > MaxFeatures {
		return fmt.Errorf("%w: %d features; want 0..%d", ErrForest, f.Features, MaxFeatures)
	}
	if f.Outputs < 1 || f.Outputs > MaxOutputs {
		return fmt.Errorf("%w: %d outputs; want 1..%d", ErrForest, f.Outputs, MaxOutputs)
	}
	if f.Link >= links || f.Combine >= combines || f.Input > Float64 || f.Sum > Float64 || f.Output > Float64 {
		return fmt.Errorf("%w: link %d, combination %d or a precision is unknown", ErrForest, f.Link, f.Combine)
	}
	if f.Link.single() && f.Outputs != 1 {
		return fmt.Errorf("%w: link %s wants 1 output, not %d", ErrForest, f.Link, f.Outputs)
	}
	for _, s := range []struct {
		what      string
		got, want int
		ok        bool
	}{
		{"base scores", len(f.Base), f.Outputs, false},
		{"divisors", len(f.Divisor), f.Outputs, f.Divisor == nil},
		{"names of features", len(f.Names), f.Features, f.Names == nil},
		{"labels of classes", len(f.Labels), f.Classes, f.Labels == nil},
		{"classes", f.Classes, f.Outputs, f.Classes == 0 || f.Classes == 2 && f.Outputs == 1},
		{"classes", f.Classes, 2, f.Classes != 1}, // which a score could be beyond
	} {
		if !s.ok && s.got != s.want {
			return fmt.Errorf("%w: %d %s; want %d", ErrForest, s.got, s.what, s.want)
		}
	}
	if l := f.Linear; l != nil {
		if len(f.Trees) > 0 {
			return fmt.Errorf("%w: a linear model with %d trees; want one or the other", ErrForest, len(f.Trees))
		}
		if len(l.Bias) != f.Outputs || len(l.Weights) != f.Features*f.Outputs {
			return fmt.Errorf("%w: a linear model with %d weights and %d biases for %d features and %d outputs", ErrForest, len(l.Weights), len(l.Bias), f.Features, f.Outputs)
		}
	}
	return parallel.Each(len(f.Trees), func() func(int) error {
		var seen []bool
		return func(i int) error {
			var err error
			if seen, err = f.Trees[i].check(f, seen); err != nil {
				return fmt.Errorf("%w: tree %d: %w", ErrForest, i, err)
			}
			return nil
		}
	})
}

// check reports the first fault of a tree of f. It uses seen as scratch and returns
// it, grown if it was too short.
func (t *Tree) check(f *Forest, seen []bool) ([]bool, error) {
	if len(t.Nodes) == 0 || len(t.Nodes) > math.MaxInt32 {
		return seen, fmt.Errorf("%d nodes; want 1..%d", len(t.Nodes), math.MaxInt32)
	}
	for len(seen) < len(t.Nodes) {
		seen = append(seen, make([]bool, len(t.Nodes)-len(seen))...)
	}
	clear(seen[:len(t.Nodes)])
	seen[0] = true
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Test >= tests {
			return seen, fmt.Errorf("node %d: test %d is unknown", i, n.Test)
		}
		length := len(t.Values)
		if n.Test != Leaf {
			length = len(t.Categories)
			if n.Feature < 0 || int(n.Feature) >= f.Features {
				return seen, fmt.Errorf("node %d: feature %d is out of range; want 0..%d", i, n.Feature, f.Features-1)
			}
			for _, child := range []int32{n.Yes, n.No} {
				if child <= 0 || int(child) >= len(t.Nodes) {
					return seen, fmt.Errorf("node %d: child %d is out of range; want 1..%d", i, child, len(t.Nodes)-1)
				}
				if seen[child] {
					return seen, fmt.Errorf("node %d: child %d has a parent already", i, child)
				}
				seen[child] = true
			}
		}
		if n.Test == Leaf || n.Test.Categorical() {
			if n.First < 0 || n.First > n.Last || int(n.Last) > length {
				return seen, fmt.Errorf("node %d: list %d..%d is out of range; want 0..%d", i, n.First, n.Last, length)
			}
		}
		if n.Test.Categorical() {
			list := t.Categories[n.First:n.Last]
			for j := range list {
				if math.IsNaN(list[j]) || j > 0 && !(list[j-1] < list[j]) {
					return seen, fmt.Errorf("node %d: categories are not in ascending order", i)
				}
			}
		}
	}
	for i := range t.Values {
		if o := t.Values[i].Output; o < 0 || int(o) >= f.Outputs {
			return seen, fmt.Errorf("value %d is of output %d; want 0..%d", i, o, f.Outputs-1)
		}
	}
	return seen, nil
}
