package layers

import "testing"

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
