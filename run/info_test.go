package run

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
)

// TestStates counts complete rows up to MaxStates², and none of a column of numbers.
func TestStates(t *testing.T) {
	two, three := dataset.Column{Categories: 2}, dataset.Column{Categories: 3}
	for _, tt := range []struct {
		columns []dataset.Column
		want    int
	}{
		{[]dataset.Column{two, three, three}, 18},
		{[]dataset.Column{{Categories: 1}}, 1},
		{slices.Repeat([]dataset.Column{two}, 32), MaxStates * MaxStates},
		{slices.Repeat([]dataset.Column{two}, 33), 0},
		{slices.Repeat([]dataset.Column{three}, 200), 0},
		{[]dataset.Column{two, {Kind: dataset.Continuous}}, 0},
	} {
		if got := States(&dataset.Schema{Columns: tt.columns}); got != tt.want {
			t.Errorf("%d columns have %d states, want %d", len(tt.columns), got, tt.want)
		}
	}
}

// TestQueriesOfProperties wants a circuit that is smooth or decomposable alone to answer no query, and one that is both to answer all,
// exactly where nothing more is asked of it.
func TestQueriesOfProperties(t *testing.T) {
	b := &Blueprint{Graph: &circuit.Graph{}, Schema: &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous}}}}
	for _, p := range []circuit.Props{{}, {Smooth: true}, {Decomposable: true}, {Smooth: true, Decomposable: true}} {
		both := p.Smooth && p.Decomposable
		for _, q := range b.queries(p) {
			exact := both && q.Name != QueryEntropy && q.Name != QueryKL && q.Name != QueryMPE
			if q.Allowed != both || q.Exact != exact {
				t.Errorf("%+v: %s is allowed: %v, exact: %v; want %v and %v", p, q.Name, q.Allowed, q.Exact, both, exact)
			}
		}
	}
	b.Schema = &dataset.Schema{Columns: []dataset.Column{{Categories: 2}, {Categories: 3}}} // whose rows can be gone through
	for _, q := range b.queries(circuit.Props{Smooth: true, Decomposable: true}) {
		if (q.Name == QueryEntropy || q.Name == QueryKL) && !q.Exact {
			t.Errorf("%s of six complete rows is not exact", q.Name)
		}
	}
}
