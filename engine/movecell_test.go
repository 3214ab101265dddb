package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestMoveCell wants what is known of a missing cell to come with it, to a cell that had a value as well, and to be gone where a
// value comes.
func TestMoveCell(t *testing.T) {
	missing := float32(math.NaN())
	list := []*dataset.Evidence{{Low: 1, High: 2}, {Low: 3, High: 4}}
	from := dataset.Cells{Values: []float32{missing, 7, missing}, Soft: dataset.SoftCells{Of: []uint32{2, 1, 0}, List: list}}
	to := dataset.Cells{Values: []float32{5, missing, 5}, Soft: dataset.SoftCells{Of: []uint32{0, 1, 1}, List: list}}
	for k := range 3 {
		moveCell(&to, k, &from, k)
	}
	if !to.IsMissing(0) || to.Soft.At(0) != list[1] || to.Values[1] != 7 || to.Soft.At(1) != nil || !to.IsMissing(2) || to.Soft.At(2) != nil {
		t.Errorf("moved: %+v", to)
	}
	b := &dataset.Batch{Rows: 3, Columns: []dataset.Cells{from, {Values: []float32{1, 2, 3}}}}
	if h := hiding(b, []int{0, 2}, 1); h.Columns[0].Soft.At(0) != list[1] || h.Columns[0].Soft.At(1) != nil || !slices.Equal(h.Columns[0].Soft.Of, []uint32{2, 0}) {
		t.Errorf("rows 0 and 2: %+v", h.Columns[0])
	}
}
