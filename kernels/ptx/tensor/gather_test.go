package tensor_test

import (
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

func TestGather(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8, 32} {
		for _, rows := range []int{1, 70} {
			l := newLevel(size, rows, 5)
			// Sum 0 is used twice, once as a part of nothing else; 1 is the root; 2 and 3
			// are stored products, the last the root of its own.
			width := 3 * size
			for id := range 4 {
				l.element(width, width-size/2, 2+2*(id/2), 1)
				if id == 1 {
					l.elements[id].Kept = tensor.NotKept
				}
				f := &l.factors[l.elements[id].Factor]
				f.Down = tensor.DownRatio
				l.sum(width, 1, -1)
				s, v := &l.sums[id], l.vector(width, width-size/2)
				s.Val, s.Exp, s.Width, s.User = v.Base, v.At, uint32(width), uint32(len(l.uses))
				if id < 2 {
					s.Groups = 1
				}
				s.Root = uint32(id % 2)
				s.Users = []uint32{2, 0, 3, 1}[id]
				for range s.Users {
					at := room(&l.kept, l.cap*width, 0)
					for i := range l.cap * width {
						l.kept[at+i] = l.rng.Float32()
					}
					l.uses = append(l.uses, tensor.Use{Kept: uint64(at), Width: uint32(width)})
				}
			}
			for r := 5; r < rows; r += 9 {
				l.val[int(l.sums[1].Val)+r*width] = 0 // an impossible row
			}
			for r := 7; r < rows; r += 9 {
				l.exp[int(l.sums[1].Exp)+r] = tensor.Lost
			}
			for r := 2; r < rows; r += 9 {
				l.bad[r] = 1
			}
			l.run(t, tensor.KernelGather, upTo(len(l.sums)), l.tiles64())
			for id := range l.sums {
				for r := range rows {
					l.checkGather(t, id, r)
				}
			}
		}
	}
}

// checkGather compares what a gathered vector gets in a row with the flows of its uses.
func (l *level) checkGather(t *testing.T, id, r int) {
	t.Helper()
	s := &l.sums[id]
	flows := make([]float64, s.Width)
	for u := range flows {
		at := int(s.Val) + r*int(s.Width) + u
		for _, use := range l.uses[s.User : s.User+s.Users] {
			flows[u] += float64(l.kept[int(use.Kept)+r*int(use.Width)+u])
		}
		v := float64(l.val[at])
		if s.Root == 1 && u == 0 && v > 0 && l.exp[int(s.Exp)+r] > tensor.Lost {
			flows[u]++
		}
		want, got := 0.0, l.ratio[at]
		if v != 0 {
			want = flows[u] / v
		}
		if s.Groups == 0 || l.bad[r] == 1 {
			if got == got {
				t.Fatalf("vector %d, row %d, unit %d: ratio %g, want none", id, r, u, got)
			}
		} else if !near(float64(got), want, 1e-6) {
			t.Fatalf("vector %d, row %d, unit %d: ratio %g, want %g", id, r, u, got, want)
		}
	}
	if s.Groups == 0 {
		l.checkDown(t, int(s.Element), r, flows)
	}
}
