package sliced

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module asks whether feature 1 is below 2, or, for those that are not, whether it is
// missing.
func module() *Module {
	return &Module{
		Features: 2, Outputs: 2, Single: true,
		Columns: []Column{{Feature: 1, Cuts: []float64{2, 5}}},
		Masks:   []Mask{{Ends: []uint16{1}}, {Ends: []uint16{3, 4}}},
		Trees: []Tree{
			{Nodes: []Node{{Mask: 0, Yes: ^0, No: 1}, {Mask: 1, Yes: ^1, No: ^2}}, Leaves: []Leaf{{0, 1, 7}, {1, 2, 8}, {2, 4, 9}}, Values: []Value{{0, 1}, {0, 2}, {0, 3}, {1, 4}}},
			{Root: ^0, Leaves: []Leaf{{0, 1, 0}}, Values: []Value{{1, 0.5}}},
		},
	}
}

func TestProgram(t *testing.T) {
	p, err := New(module())
	if err != nil {
		t.Fatal(err)
	}
	row := []float64{9, 1.5, 9, 2, 9, math.NaN(), 9, math.Inf(1)}
	sums, leaves := make([]float64, 8), make([]float64, 8)
	p.Sums(row, sums)
	p.Leaves(row, leaves)
	if want := []float64{1, 0.5, 3, 4.5, 2, 0.5, 3, 4.5}; !slices.Equal(sums, want) {
		t.Errorf("sums %v, want %v", sums, want)
	}
	if want := []float64{7, 0, 9, 0, 8, 0, 9, 0}; !slices.Equal(leaves, want) {
		t.Errorf("leaves %v, want %v", leaves, want)
	}
	p.Sums(nil, nil)
	if module().ModuleKind() != Kind {
		t.Error("another kind of module")
	}
}

// TestConcurrent: calls share no memory.
func TestConcurrent(t *testing.T) {
	p, err := New(module())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			rows, sums := make([]float64, 2*BlockRows), make([]float64, 2*BlockRows)
			for i := range rows {
				rows[i] = float64(g)
			}
			for range 20 {
				clear(sums)
				p.Sums(rows, sums)
				if want := []float64{1, 1, 3, 3}[g]; sums[0] != want || sums[2*BlockRows-2] != want {
					t.Errorf("sums %v and %v, want %v", sums[0], sums[2*BlockRows-2], want)
				}
			}
		})
	}
	all.Wait()
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Module){
		"0 features":                    func(m *Module) { m.Features = 0 },
		"column 0 has feature 2 of 2":   func(m *Module) { m.Columns[0].Feature = 2 },
		"65534 cuts; want at most":      func(m *Module) { m.Columns[0].Cuts = make([]float64, MaxCuts+1) },
		"cut 1 is 2; want ascending":    func(m *Module) { m.Columns[0].Cuts[1] = 2 },
		"cut 0 is NaN":                  func(m *Module) { m.Columns[0].Cuts[0] = math.NaN() },
		"mask 0 is of column 1":         func(m *Module) { m.Masks[0].Column = 1 },
		"mask 1 ends at rank 5":         func(m *Module) { m.Masks[1].Ends[1] = 5 },
		"mask 0 ends at rank 0":         func(m *Module) { m.Masks[0].Ends[0] = 0 },
		"mask 0 has no ends":            func(m *Module) { m.Masks[0].Ends = nil },
		"node 0 has mask 2":             func(m *Module) { m.Trees[0].Nodes[0].Mask = 2 },
		"node 1 has the child 1":        func(m *Module) { m.Trees[0].Nodes[1].No = 1 },
		"has a parent already":          func(m *Module) { m.Trees[0].Nodes[0].Yes, m.Trees[0].Nodes[0].No = 1, 1 },
		"node 1 has the child 0":        func(m *Module) { m.Trees[0].Nodes[1].No = 0 },
		"node 0 has the child 2":        func(m *Module) { m.Trees[0].Nodes[0].No = 2 },
		"node 0 has the child -4":       func(m *Module) { m.Trees[0].Nodes[0].Yes = ^3 },
		"node -1 has the child 0":       func(m *Module) { m.Trees[1].Root = 0 },
		"leaf 2 has the values 2..5":    func(m *Module) { m.Trees[0].Leaves[2].Last = 5 },
		"value 3 is of output 2; want ": func(m *Module) { m.Trees[0].Values[3].Output = 2 },
	} {
		m := module()
		change(m)
		if _, err := New(m); !errors.Is(err, ErrModule) || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
}
