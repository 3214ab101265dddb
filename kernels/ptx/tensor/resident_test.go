package tensor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// TestForwardResident evaluates the same sums by both kernels, with runs of any
// number of groups, and wants the same bits and the same marks.
func TestForwardResident(t *testing.T) {
	marked, whole := 0, 0
	for _, c := range []struct {
		size, rows      int
		mixed, spread   bool
		groups          int // most of a run
		blocks, columns int // of the last sum
	}{
		{16, 1, false, false, 2, 9, 3},
		{16, 135, false, true, 1, 13, 5},
		{16, 70, true, true, 4, 4, 32},
		{32, 135, false, true, 3, 7, 1},
		{32, 65, true, false, 9, 16, 16},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			if testing.Short() && (c.spread == c.mixed && c.rows > 1 || c.groups == 3) {
				t.Skip("one size of blocks in each precision is enough for a short test; run without -short")
			}
			l := newLevel(c.size, c.rows, uint64(c.size))
			s := c.size
			l.mixed = c.mixed
			l.element(3*s, 3*s-s/2, 1, 1)
			l.element(s, s, 3, 0)
			l.element(2*s, 2*s, 3, 2)
			l.element(s, s-1, 0, 1)
			l.sum(7*s-s/3, 4, -1, band{blocks: 7})
			l.element(c.columns*s, c.columns*s, 2, 0)
			l.sum(c.blocks*s, 1, -1, band{blocks: c.blocks})
			if c.spread {
				l.spread()
			}
			val, exp := slices.Clone(l.val), slices.Clone(l.exp)
			l.run(t, tensor.KernelForward, upTo(len(l.groups)), l.tiles64())
			l.checkSums(t)
			wantVal, wantExp, wantBad := l.val, l.exp, l.bad
			l.val, l.exp, l.bad = val, exp, make([]uint32, len(l.bad))
			var list []uint32
			for _, s := range l.sums {
				for g := uint32(0); g < s.Groups; g += uint32(c.groups) {
					list = append(list, s.Group+g, min(s.Groups-g, uint32(c.groups)))
				}
			}
			before := slices.Clone(l.val)
			l.run(t, tensor.KernelForwardResident, list, l.tiles64())
			check := func(what string) {
				t.Helper()
				for i, want := range wantVal {
					if got := l.val[i]; got != want && (got == got || want == want) {
						t.Fatalf("%s: value %d: %g, want %g", what, i, got, want)
					}
				}
				if !slices.Equal(l.exp, wantExp) || !slices.Equal(l.bad, wantBad) {
					t.Fatalf("%s: other exponents or marks", what)
				}
			}
			check("resident")
			l.val, l.exp, l.bad = before, slices.Clone(exp), make([]uint32, len(l.bad))
			l.more[tensor.ArgLimits] = raw(make([]float32, len(l.exp)))
			var fits, wide []uint32
			places, place := map[uint32]uint32{}, uint32(0)
			for i, sum := range l.sums {
				places[uint32(i)] = place
				fits = append(fits, uint32(i), place)
				place += uint32(l.rows) * sum.Cols
			}
			l.more[tensor.ArgOperands] = make([]byte, 4*place)
			l.run(t, tensor.KernelFit, fits, (l.rows+tensor.FitRows-1)/tensor.FitRows)
			groups := l.groups
			l.groups = l.wideGroups()
			for i, g := range l.groups {
				wide = append(wide, uint32(i), places[g.Sum])
			}
			l.run(t, tensor.KernelForwardWide, wide, (l.rows+tensor.WideRows-1)/tensor.WideRows)
			l.groups = groups
			check("wide")
			for _, b := range wantBad[:c.rows] {
				marked += int(b)
				whole += int(1 - b)
			}
		})
	}
	if marked < 10 || whole < 100 {
		t.Errorf("%d rows marked and %d not; want some of both", marked, whole)
	}
}

// wideGroups puts the groups of each sum together, as wide as KernelForwardWide takes
// them: here all groups of a sum have the same columns.
func (l *level) wideGroups() (list []tensor.Group) {
	most := uint32(tensor.WideColumns / l.size)
	for _, s := range l.sums {
		for _, g := range l.groups[s.Group : s.Group+s.Groups] {
			if n := len(list) - 1; n >= 0 && list[n].Sum == g.Sum && list[n].Blocks+g.Blocks <= most {
				list[n].Blocks += g.Blocks
				continue
			}
			list = append(list, g)
		}
	}
	return list
}
