package plan_test

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestChoice wants wide tiles where the model has them faster than others and nowhere
// else, and nothing left of those that were weighed and not taken.
func TestChoice(t *testing.T) {
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 5} }
	hmm := func(latents int) (*circuit.Graph, error) {
		return structures.HMM(structures.HMMOptions{Length: 4, Latents: latents, Tied: true, Leaf: leaf})
	}
	for _, c := range []struct {
		name  string
		graph func() (*circuit.Graph, error)
		rows  int
		wide  bool // in the forward pass
	}{
		{"wide hmm", func() (*circuit.Graph, error) { return hmm(2048) }, 512, true},
		{"hmm", func() (*circuit.Graph, error) { return hmm(1024) }, 512, false},
		{"hmm of many rows", func() (*circuit.Graph, error) { return hmm(1024) }, 4096, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := c.graph()
			if err != nil {
				t.Fatal(err)
			}
			res, err := compile.Compile(g, compile.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			schedule := func(processors int) *plan.Schedule {
				tables, err := plan.NewTables(layers.Module{Program: res.Program, Rows: c.rows, Train: true, Mixed: true})
				if err != nil {
					t.Fatal(err)
				}
				tables.Processors = processors
				return plan.NewSchedule(tables, true)
			}
			chosen, wide := schedule(132), schedule(1)
			groups := len(schedule(132).Tables.Groups)
			if a, b := plan.Seconds(chosen, 132), plan.Seconds(wide, 132); !(a > 0 && a <= b) {
				t.Errorf("the schedule takes %v s, wide tiles alone %v", a, b)
			}
			launched := false
			for _, w := range chosen.Forward {
				launched = launched || w.Kernel == tensor.KernelForwardWide
			}
			if launched != c.wide {
				t.Errorf("wide tiles in the forward pass: %v, want %v", launched, c.wide)
			}
			if launched {
				return
			}
			if groups >= len(wide.Tables.Groups) {
				t.Errorf("%d groups, and with wide ones %d", groups, len(wide.Tables.Groups))
			}
			for _, s := range chosen.Spaces() {
				if s.Arg == tensor.ArgOperands && s.Bytes > 0 {
					t.Errorf("%d bytes of operands that no launch writes", s.Bytes)
				}
			}
		})
	}
}

// TestPatchChoice wants wide patches for few sums of 64 units, whose narrow patches leave most of a card
// without work, and narrow ones for sums of 32.
func TestPatchChoice(t *testing.T) {
	tree, err := structures.GridTree(3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	for units, want := range map[int]bool{32: false, 64: true} {
		g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: units, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }})
		if err != nil {
			t.Fatal(err)
		}
		res, err := compile.Compile(g, compile.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		tables, err := plan.NewTables(layers.Module{Program: res.Program, Rows: 512, Train: true, Mixed: true})
		if err != nil {
			t.Fatal(err)
		}
		tables.Processors = 132
		wide := false
		for _, w := range plan.NewSchedule(tables, true).Move {
			wide = wide || w.Kernel == tensor.KernelMoveWide
		}
		if wide != want {
			t.Errorf("sums of %d units have wide patches: %v, want %v", units, wide, want)
		}
	}
}

// TestPatchMemory wants launches with no more shared memory than a block of threads may have, on a card with little of it too,
// where sums that share weights have a long side and a short one: these are cut like wide ones if some others are wide.
func TestPatchMemory(t *testing.T) {
	g := &circuit.Graph{NumVars: 3}
	add := func(n circuit.Node) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		g.Root = circuit.NodeID(len(g.Nodes) - 1)
		return g.Root
	}
	input := func(v, units int) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Input, Var: v, Units: units, Leaf: circuit.Categorical{Categories: 3}})
	}
	sum := func(units int, of circuit.NodeID) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Sum, Units: units, Children: []circuit.NodeID{of}})
	}
	product := func(of ...circuit.NodeID) circuit.NodeID {
		return add(circuit.Node{Kind: circuit.Product, Units: 64, Children: of})
	}
	first := sum(64, input(0, 16))
	second := sum(64, input(1, 16))
	g.Nodes[second].Tie = circuit.TieTo(first)
	sum(1, product(sum(64, product(first, second)), input(2, 64)))
	res, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	v := tensor.Variant{Block: res.Program.BlockSize, Major: 8}
	for _, limit := range []int{48 << 10, 99 << 10, 163 << 10} {
		tables, err := plan.NewTables(layers.Module{Program: res.Program, Rows: 64, Train: true})
		if err != nil {
			t.Fatal(err)
		}
		tables.Processors, tables.Shared = 1, limit
		s := plan.NewSchedule(tables, true)
		wide := false
		for _, w := range slices.Concat(s.Forward, s.Backward, s.Move, s.Count) {
			wide = wide || w.Kernel == tensor.KernelMoveWide
			if most := v.DynamicShared(w.Kernel, limit); w.Shared > most {
				t.Errorf("%s asks for %d bytes of dynamic shared memory; a block of threads may have %d with %d in all", w.Kernel, w.Shared, most, limit)
			}
		}
		if wide != (limit == 163<<10) {
			t.Errorf("%d bytes of shared memory: wide patches: %v", limit, wide)
		}
	}
}

// TestGrid wants no more blocks of threads along y than a grid may have, however many rows a launch has.
func TestGrid(t *testing.T) {
	g, err := structures.HMM(structures.HMMOptions{Length: 3, Latents: 1024, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 3} }})
	if err != nil {
		t.Fatal(err)
	}
	res, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	const most = 1<<16 - 1
	for rows, wide := range map[int]bool{most * tensor.FitRows: true, most*tensor.FitRows + 1: false, 1 << 20: false} {
		tables, err := plan.NewTables(layers.Module{Program: res.Program, Rows: rows, Train: true})
		if err != nil {
			t.Fatal(err)
		}
		tables.Processors = 1
		s := plan.NewSchedule(tables, true)
		launched := false
		for _, w := range slices.Concat(s.Forward, s.Sample, s.Backward, s.Move, s.Count) {
			launched = launched || w.Kernel == tensor.KernelFit
			if w.Blocks > 0 && w.Rows > 0 && (rows+w.Rows-1)/w.Rows > most {
				t.Errorf("%d rows: %d blocks of %s along y", rows, (rows+w.Rows-1)/w.Rows, w.Kernel)
			}
		}
		if launched != wide {
			t.Errorf("%d rows: %s is launched: %v, want %v", rows, tensor.KernelFit, launched, wide)
		}
	}
}
