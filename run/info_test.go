package run

import (
	"slices"
	"testing"

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
