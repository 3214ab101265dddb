package plan_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// module compiles a circuit whose sums have wide columns and products of many factors.
func module(t *testing.T) layers.Module {
	t.Helper()
	const units = 160
	var g circuit.Graph
	add := func(n circuit.Node) circuit.NodeID {
		if n.Units == 0 {
			n.Units = units
		}
		g.Nodes = append(g.Nodes, n)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	product := func(size int) circuit.NodeID {
		var factors []circuit.NodeID
		for range size {
			factors = append(factors, add(circuit.Node{Kind: circuit.Input, Var: g.NumVars, Leaf: circuit.Categorical{Categories: 3}}))
			g.NumVars++
		}
		return add(circuit.Node{Kind: circuit.Product, Children: factors})
	}
	var parts []circuit.NodeID
	for range 2 {
		parts = append(parts, add(circuit.Node{Kind: circuit.Sum, Children: []circuit.NodeID{product(tensor.BareFactors + 2)}}))
	}
	top := add(circuit.Node{Kind: circuit.Product, Children: parts})
	g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{top}})
	res, err := compile.Compile(&g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return layers.Module{Program: res.Program, Rows: 300, Train: true}
}

// tables lowers a module for a card of one multiprocessor, which gets wide tiles.
func tables(t *testing.T, m layers.Module, shared int) *plan.Tables {
	t.Helper()
	tables, err := plan.NewTables(m)
	if err != nil {
		t.Fatal(err)
	}
	tables.Processors, tables.Shared = 1, min(tables.Shared, shared)
	return tables
}

// spare returns a list with room behind its end, in which two schedules could append
// over each other.
func spare[T any](list []T) []T { return append(make([]T, 0, len(list)+1000), list...) }

// clean reports whether nothing has been appended in that room.
func clean[T comparable](list []T) bool {
	var zero T
	return !slices.ContainsFunc(list[len(list):cap(list)], func(v T) bool { return v != zero })
}

// TestScheduleTwice makes several schedules of the same tables and wants them equal,
// the earlier ones as they were, and the tables untouched.
func TestScheduleTwice(t *testing.T) {
	hmm, err := structures.HMM(structures.HMMOptions{Length: 4, Latents: 640, Tied: true, Leaf: func(int) circuit.Leaf { return circuit.Categorical{Categories: 5} }})
	if err != nil {
		t.Fatal(err)
	}
	tied, err := compile.Compile(hmm, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		module layers.Module
		shared int
		// What the schedule adds.
		kept, groups, columns bool
	}{
		{"resident", module(t), 163 << 10, true, false, true},
		{"little shared memory", module(t), 40 << 10, false, false, false},
		{"wide", layers.Module{Program: tied.Program, Rows: 300, Train: true}, 163 << 10, false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			given, untouched := tables(t, c.module, c.shared), tables(t, c.module, c.shared)
			given.Groups, given.Columns, given.Members = spare(given.Groups), spare(given.Columns), spare(given.Members)
			first := plan.NewSchedule(given, true)
			if !reflect.DeepEqual(given, untouched) {
				t.Error("the schedule has changed the tables that it was made from")
			}
			kept := false
			for _, e := range first.Tables.Elements {
				kept = kept || e.Formed != tensor.NotKept
			}
			groups, columns := len(first.Tables.Groups) > len(given.Groups), len(first.Tables.Columns) > len(given.Columns)
			if len(first.Tables.Patches) == 0 || kept != c.kept || groups != c.groups || columns != c.columns {
				t.Errorf("%d patches; products kept: %v, wide groups: %v, wide columns: %v; want some, %v, %v, %v",
					len(first.Tables.Patches), kept, groups, columns, c.kept, c.groups, c.columns)
			}
			encoded, spaces := first.Encode(), first.Spaces()
			// One of other launches from the same arrays, then the first one again.
			few := *given
			few.Processors = 1 << 20
			if other := plan.NewSchedule(&few, false); reflect.DeepEqual(other, first) {
				t.Error("other tables and no training give the same schedule")
			}
			if again := plan.NewSchedule(given, true); !reflect.DeepEqual(again, first) {
				t.Error("the same tables give another schedule the second time")
			}
			if !reflect.DeepEqual(first.Encode(), encoded) || !reflect.DeepEqual(first.Spaces(), spaces) {
				t.Error("a later schedule has changed an earlier one")
			}
			if !reflect.DeepEqual(given, untouched) || !clean(given.Groups) || !clean(given.Columns) || !clean(given.Members) {
				t.Error("schedules have changed the tables, or written behind them")
			}
		})
	}
}
