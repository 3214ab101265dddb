package sliced

import (
	"errors"
	"fmt"
	"math"

	"github.com/pce-engine/pce/internal/parallel"
)

// Kind is the ModuleKind of modules.
const Kind = "sliced"

// MaxCuts is the most cut points of a column: ranks and the rank of a missing cell fit
// in 16 bits.
const MaxCuts = math.MaxUint16 - 2

// ErrModule means that a module is invalid.
var ErrModule = errors.New("sliced: bad module")

// Module is a forest lowered to ranks and masks.
type Module struct {
	Features int
	Outputs  int
	Single   bool // sums are float32, otherwise float64
	Columns  []Column
	Masks    []Mask
	Trees    []Tree
}

// ModuleKind returns Kind.
func (*Module) ModuleKind() string { return Kind }

// Column is a feature that some test asks about, with its cut points in ascending
// order. A cell x has the rank #{c : c <= x}; a missing cell has the rank
// len(Cuts)+1.
type Column struct {
	Feature int32
	Cuts    []float64
}

// Mask is a test: the set of ranks of a column that pass it, as the exclusive or of the
// sets {rank < End} for each of its ends. Ends are in 1..len(Cuts)+2.
type Mask struct {
	Column int32
	Ends   []uint16
}

// Tree is a binary tree.
type Tree struct {
	Root   int32 // a child, as in Node
	Nodes  []Node
	Leaves []Leaf
	Values []Value // already multiplied by the tree's weight
}

// Node sends rows that pass a mask to Yes and others to No. A child is the index of a
// later node, or ^i for leaf i.
type Node struct{ Mask, Yes, No int32 }

// Leaf adds Values[First:Last] of its tree. ID is its number in the library that
// trained the forest.
type Leaf struct{ First, Last, ID int32 }

// Value is what a leaf adds to an output.
type Value struct {
	Output int32
	Value  float64
}

// Validate reports the first thing that makes m unsafe to run, as an error that matches
// ErrModule.
func (m *Module) Validate() error {
	if m.Features < 1 || m.Outputs < 1 {
		return fmt.Errorf("%w: %d features and %d outputs; want 1 or more", ErrModule, m.Features, m.Outputs)
	}
	for i, c := range m.Columns {
		if c.Feature < 0 || int(c.Feature) >= m.Features || len(c.Cuts) > MaxCuts {
			return fmt.Errorf("%w: column %d has feature %d of %d and %d cuts; want at most %d", ErrModule, i, c.Feature, m.Features, len(c.Cuts), MaxCuts)
		}
		for j, x := range c.Cuts {
			if math.IsNaN(x) || j > 0 && !(c.Cuts[j-1] < x) {
				return fmt.Errorf("%w: column %d: cut %d is %v; want ascending numbers", ErrModule, i, j, x)
			}
		}
	}
	for i, mask := range m.Masks {
		if mask.Column < 0 || int(mask.Column) >= len(m.Columns) {
			return fmt.Errorf("%w: mask %d is of column %d; want 0..%d", ErrModule, i, mask.Column, len(m.Columns)-1)
		}
		if len(mask.Ends) == 0 {
			return fmt.Errorf("%w: mask %d has no ends; name one twice for the empty set", ErrModule, i)
		}
		for _, e := range mask.Ends {
			if most := len(m.Columns[mask.Column].Cuts) + 2; e < 1 || int(e) > most {
				return fmt.Errorf("%w: mask %d ends at rank %d; want 1..%d", ErrModule, i, e, most)
			}
		}
	}
	return parallel.Each(len(m.Trees), func() func(int) error {
		var seen []bool // nodes that have a parent
		return func(i int) error {
			seen = append(seen[:0], make([]bool, len(m.Trees[i].Nodes))...)
			if err := m.validateTree(&m.Trees[i], seen); err != nil {
				return fmt.Errorf("%w: tree %d: %w", ErrModule, i, err)
			}
			return nil
		}
	})
}

func (m *Module) validateTree(t *Tree, seen []bool) error {
	child := func(from int, c int32) error {
		if c >= 0 && (int(c) <= from || int(c) >= len(t.Nodes)) || c < 0 && int(^c) >= len(t.Leaves) {
			return fmt.Errorf("node %d has the child %d; want a later one of %d nodes, or one of %d leaves", from, c, len(t.Nodes), len(t.Leaves))
		}
		if c >= 0 && seen[c] {
			return fmt.Errorf("node %d has the child %d, which has a parent already", from, c)
		}
		if c >= 0 {
			seen[c] = true
		}
		return nil
	}
	if err := child(-1, t.Root); err != nil {
		return err
	}
	for i, n := range t.Nodes {
		if n.Mask < 0 || int(n.Mask) >= len(m.Masks) {
			return fmt.Errorf("node %d has mask %d; want 0..%d", i, n.Mask, len(m.Masks)-1)
		}
		if err := child(i, n.Yes); err != nil {
			return err
		}
		if err := child(i, n.No); err != nil {
			return err
		}
	}
	for i, l := range t.Leaves {
		if l.First < 0 || l.First > l.Last || int(l.Last) > len(t.Values) {
			return fmt.Errorf("leaf %d has the values %d..%d of %d", i, l.First, l.Last, len(t.Values))
		}
	}
	for i, v := range t.Values {
		if v.Output < 0 || int(v.Output) >= m.Outputs {
			return fmt.Errorf("value %d is of output %d; want 0..%d", i, v.Output, m.Outputs-1)
		}
	}
	return nil
}
