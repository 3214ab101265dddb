package layers

import (
	"errors"
	"slices"
	"testing"
)

// TestGrid checks that the rows of a step, as often as shared parameters count
// them, stay below 2^62 units.
func TestGrid(t *testing.T) {
	tied := &Program{Sums: make([]Sum, 31), Inputs: make([]Input, 32)} // all owned by the first
	own := &Program{Sums: []Sum{{Owner: 0}, {Owner: 1}}}
	for _, tc := range []struct {
		name string
		p    *Program
		rows int64
		want float64
	}{
		{"small", own, 512, 0x1p-40},
		{"full", own, 1 << 22, 0x1p-40},
		{"one more", own, 1<<22 + 1, 0x1p-39},
		{"large", own, 1 << 32, 0x1p-30},
		{"tied", tied, 512, 0x1p-35},
		{"tied and large", tied, 1 << 24, 0x1p-33},
	} {
		got := tc.p.Grid(tc.rows)
		if got != tc.want {
			t.Errorf("%s: Grid(%d) = %v, want %v", tc.name, tc.rows, got, tc.want)
		}
		most := float64(max(tc.rows, 1)) * 32
		if tc.p == own {
			most = float64(tc.rows)
		}
		if most/got > 0x1p62 {
			t.Errorf("%s: %d rows make %v units", tc.name, tc.rows, most/got)
		}
	}
}

// TestPosteriorOffsets lays out a column with codes and one whose functions have two inputs.
func TestPosteriorOffsets(t *testing.T) {
	p := &Program{
		Columns: []Column{{Codes: 3}, {Codes: 0}, {Codes: 5}},
		Vectors: []Vector{{Units: 4}, {Units: 2}, {Units: 7}, {Units: 9}},
		Inputs:  []Input{{Vector: 0, Column: 1}, {Vector: 1, Column: 0, Codes: 3}, {Vector: 2, Column: 1}, {Vector: 3, Column: 2, Codes: 5}},
	}
	for _, tc := range []struct{ of, want []int }{
		{nil, []int{0}},
		{[]int{0, 1, 2}, []int{0, 3, 14, 19}},
		{[]int{2, 1}, []int{0, 5, 16}},
	} {
		of := make([]int32, len(tc.of))
		for i, c := range tc.of {
			of[i] = int32(c)
		}
		if offsets, err := p.PosteriorOffsets(of); err != nil || !slices.Equal(offsets, tc.want) {
			t.Errorf("offsets of %v are %v, want %v: %v", tc.of, offsets, tc.want, err)
		}
	}
	for _, of := range [][]int32{{-1}, {3}, {0, 2, 0}} {
		if _, err := p.PosteriorOffsets(of); !errors.Is(err, ErrIndex) {
			t.Errorf("offsets of %v: %v, want ErrIndex", of, err)
		}
	}
}

// TestCellBytes counts codes of 2 or 4 bytes, values of 4 and a log-likelihood.
func TestCellBytes(t *testing.T) {
	m := Module{Rows: 3, Program: &Program{Columns: []Column{{Codes: 3}, {Codes: 0}, {Codes: 65535}}}}
	if got, all := m.CellBytes(), m.RowBytes(); got != 3*8 || all != 3*16 {
		t.Errorf("cells of %d bytes, %d in all; want 24 and 48", got, all)
	}
	m.Program.Columns[2].Codes++
	if got := m.CellBytes(); got != 3*12 {
		t.Errorf("cells of %d bytes with wide codes, want 36", got)
	}
}
