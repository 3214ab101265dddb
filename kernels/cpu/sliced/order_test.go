package sliced

import (
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/sliced"
)

// TestColumnsInAnyOrder computes a forest whose columns are not in the order of their features, one of them twice.
func TestColumnsInAnyOrder(t *testing.T) {
	m := &sliced.Module{Features: 9, Outputs: 1, Single: true}
	for i, feature := range []int32{8, 1, 6, 7, 0, 1, 3} {
		m.Columns = append(m.Columns, sliced.Column{Feature: feature, Cuts: []float64{float64(i)}})
		m.Masks = append(m.Masks, sliced.Mask{Column: int32(i), Ends: []uint16{1}})
		m.Trees = append(m.Trees, sliced.Tree{
			Nodes:  []sliced.Node{{Mask: int32(i), Yes: ^0, No: ^1}},
			Leaves: []sliced.Leaf{{First: 0, Last: 1}, {}}, Values: []sliced.Value{{Value: float64(int(1) << i)}},
		})
	}
	const rows = 700
	cells, wide := make([]float32, rows*m.Features), make([]float64, rows*m.Features)
	for i := range cells {
		wide[i] = float64(i * 7 % 11)
		cells[i] = float32(wide[i])
	}
	plain, err := sliced.New(m)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, rows)
	for at := 0; at < rows; at += sliced.BlockRows {
		end := min(rows, at+sliced.BlockRows)
		plain.Sums(wide[at*m.Features:end*m.Features], want[at:end])
	}
	for _, l := range All() {
		p, err := New(m, l)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, rows)
		Sums(p, cells, []float64{0}, got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: sums differ", l.Name)
		}
	}
}
