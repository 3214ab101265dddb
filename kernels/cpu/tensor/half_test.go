package tensor

import (
	"math"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels/cpu/micro"
)

// TestTogether takes exponents together that are at most 16 apart, and leaves those
// of 100 and more out.
func TestTogether(t *testing.T) {
	for _, tc := range []struct {
		top  []int32
		want int32
	}{
		{[]int32{0, 16}, 16},
		{[]int32{0, 0, 17}, 16}, // two of three: 0 is at the low end of what 16 takes
		{[]int32{0, 17, 17}, 32 + 1},
		{[]int32{-5, 40, 50, 56}, 56},
		{[]int32{99, -99, -99}, -99 + 16},
		{[]int32{100, 100, 0}, 16},
		{[]int32{-100, -100, 0}, 16},
	} {
		if got := together(tc.top); got != tc.want {
			t.Errorf("%v: up to %d, want %d", tc.top, got, tc.want)
		}
	}
}

// TestArrived takes flows that differ from what came in by a 1024th, and refuses those that
// differ by more, or that are not numbers.
func TestArrived(t *testing.T) {
	for _, tc := range []struct {
		lost float64 // of what came in
		want bool
	}{
		{0, true}, {0.99 * 0x1p-10, true}, {-0.99 * 0x1p-10, true}, {1.01 * 0x1p-10, false}, {-1.01 * 0x1p-10, false},
		{1, false}, {math.Inf(-1), false}, {math.NaN(), false},
	} {
		for _, came := range []float32{1, 0x1p-100, 512} {
			if got := arrived(came*float32(1-tc.lost), came); got != tc.want {
				t.Errorf("%v of %v is lost: arrived is %v, want %v", tc.lost, came, got, tc.want)
			}
		}
	}
}

// TestHalfScales wants the largest ratio of a row and the largest of a column in [8, 16), where
// 256 products of two of them stay below the largest half, and rows with a ratio of 2^100 or
// 2^-100 set aside.
func TestHalfScales(t *testing.T) {
	tops := []int32{0, 99, -99, 100, -100, -127, 5}
	x := &executor{set: &micro.Set{Half: &micro.HalfSet{
		Tops:  func(top *int32, _ *float32, _, rows, _ int) { *top = tops[0]; tops = tops[1:] },
		Pack:  func(*uint16, int, *float32, int, *int32, *float32, int, int) {},
		Peaks: func(peak *float32, _ *float32, _ int, _ *int32, _, _ int) { *peak = 0x1p5 },
	}}}
	w := &worker{half: halfBuffers{top: make([]int32, 1), shift: make([]int32, 1), ratios: make([]uint16, 1)}}
	for _, want := range [][2]int32{{0, -3}, {99, 96}, {-99, -102}, {farTop, micro.ZeroRow}, {farTop, micro.ZeroRow}, {micro.ZeroRow, micro.ZeroRow}, {5, 2}} {
		top := tops[0]
		x.halfRatios(w, &task{width: 32}, 1, make([]float32, 32))
		if got := [2]int32{w.half.top[0], w.half.shift[0]}; got != want {
			t.Errorf("a row of 2^%d has exponent and shift %d, want %d", top, got, want)
		}
	}
	up, down := make([]float32, 1), make([]float32, 1)
	x.packLevel(&w.half, make([]uint16, 1), make([]float32, 1), 1, 1, up, down)
	if up[0] != 0x1p-2 || down[0] != 0x1p2 {
		t.Errorf("a column of 2^5 is scaled by %v and back by %v, want 2^-2 and 2^2", up[0], down[0])
	}
}

// TestHalfTerms wants products of more than 256 terms in parts of 256, each after the one before.
func TestHalfTerms(t *testing.T) {
	for _, tc := range []struct {
		n    int
		want []int
	}{{0, []int{0}}, {1, []int{1}}, {255, []int{255}}, {256, []int{256}}, {257, []int{256, 1}}, {600, []int{256, 256, 88}}} {
		var terms []int
		var added []bool
		x := &executor{set: &micro.Set{Half: &micro.HalfSet{
			Tops: func(top *int32, _ *float32, _, _, _ int) { *top = 0 },
			Pack: func(*uint16, int, *float32, int, *int32, *float32, int, int) {},
			Panel: func(a *micro.HalfArgs) {
				terms, added = append(terms, a.K), append(added, a.Add)
				if last := len(terms) == len(tc.want); (a.E != nil) != last {
					t.Errorf("%d terms: part %d is multiplied by the operands: %v, want %v", tc.n, len(terms)-1, a.E != nil, last)
				}
			},
		}}}
		w := &worker{half: halfBuffers{
			top: make([]int32, 1), shift: make([]int32, 1), scale: make([]float32, 1), ratios: make([]uint16, tc.n+1),
			weights: make([]uint16, tc.n*halfWidth+1), sums: make([]uint16, 1),
		}}
		sum := &sumPlan{back: []colRun{{n: tc.n, head: true, tail: true}}}
		x.halfFlows(w, &task{width: tc.n, cols: halfWidth, sum: sum}, 1, make([]float32, tc.n+1), make([]float32, halfWidth), make([]float32, halfWidth))
		if !slices.Equal(terms, tc.want) {
			t.Errorf("%d terms are added in parts of %d, want %d", tc.n, terms, tc.want)
		}
		for i, add := range added {
			if add != (i > 0) {
				t.Errorf("%d terms: part %d is added to what is there: %v", tc.n, i, add)
			}
		}
	}
}
