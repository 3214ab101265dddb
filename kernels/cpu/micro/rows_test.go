package micro

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// eachShape calls test for widths and rows around the vector sizes.
func eachShape(test func(name string, rows, width int)) {
	for _, width := range append([]int{0, 4, 12, 15, 17, 33, 63, 65}, rowWidths...) {
		for _, rows := range []int{0, 1, 2, 7, 8, 30} {
			test(fmt.Sprintf("rows=%d width=%d", rows, width), rows, width)
		}
	}
}

// TestRowKernels compares the kernels without rounding freedom with the
// generic ones, bit by bit.
func TestRowKernels(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		eachShape(func(name string, rows, width int) {
			fill := spread(rng, -20, 3)
			x, f := newMatrix(rows, width, 3, fill), newMatrix(rows, width, 6, fill)
			want := x.clone()
			s.AddRows(x.ptr(), x.stride, f.ptr(), f.stride, rows, width)
			generic.AddRows(want.ptr(), want.stride, f.ptr(), f.stride, rows, width)
			x.same(t, name+" AddRows", want)

			shift := make([]int32, rows+1)
			for r := range rows {
				shift[r] = []int32{0, 0, 1, -3, 126, 127, 128, 1000, ZeroRow, -127, -500, math.MaxInt32, 5}[rng.IntN(13)]
			}
			s.ScaleRows(x.ptr(), x.stride, &shift[0], rows, width)
			generic.ScaleRows(want.ptr(), want.stride, &shift[0], rows, width)
			x.same(t, name+" ScaleRows", want)

			sum := newMatrix(1, width, 0, fill)
			want = sum.clone()
			s.ColumnSums(sum.ptr(), f.ptr(), f.stride, rows, width)
			generic.ColumnSums(want.ptr(), f.ptr(), f.stride, rows, width)
			sum.same(t, name+" ColumnSums", want)

			table := newMatrix(5, width, 2, fill)
			want = table.clone()
			codes := make([]uint16, rows+1)
			for r := range rows {
				codes[r] = uint16(rng.IntN(5))
			}
			codes[rows] = 65535 // beyond the rows: may not be used
			s.ScatterAdd(table.ptr(), table.stride, &codes[0], f.ptr(), f.stride, rows, width)
			generic.ScatterAdd(want.ptr(), want.stride, &codes[0], f.ptr(), f.stride, rows, width)
			table.same(t, name+" ScatterAdd", want)

			wide := make([]uint32, rows+1)
			for r := range rows {
				wide[r] = uint32(codes[r])
			}
			wide[rows] = math.MaxUint32 // beyond the rows: may not be used
			generic.ScatterAdd(want.ptr(), want.stride, &codes[0], f.ptr(), f.stride, rows, width)
			s.ScatterAddWide(table.ptr(), table.stride, &wide[0], f.ptr(), f.stride, rows, width)
			table.same(t, name+" ScatterAddWide", want)
		})
	})
}

// TestScalePanel checks each element.
func TestScalePanel(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, w := range panelWidths {
			for rows := range 20 {
				x, f := newMatrix(rows, w, 0, uniform(rng)), newMatrix(1, rows, 0, uniform(rng))
				was := x.clone()
				s.ScalePanel(x.ptr(), f.ptr(), rows, w)
				for r := range rows {
					for j, got := range x.row(r) {
						if want := *was.at(r, j) * *f.at(0, r); got != want {
							t.Fatalf("w=%d rows=%d: x[%d][%d] = %v, want %v", w, rows, r, j, got, want)
						}
					}
				}
				x.check(t, fmt.Sprintf("w=%d rows=%d", w, rows))
			}
		}
	})
}

// TestAddExponents walks over lengths, with neighbours that must stay, and adds
// every pair of exponents around the ends of their range.
func TestAddExponents(t *testing.T) {
	edges := []int32{0, 1, -1, 126, -149, 1 << 20, -1 << 20, 1 << 28, Most - 1, Most, -1 << 29, -1 << 30, -1000000000, -1442695041, Lost + 1<<20, Lost + 1, Lost}
	want := func(a, b int32) int32 {
		switch sum := float64(a) + float64(b); {
		case a == Lost || b == Lost || sum < Lost:
			return Lost
		case sum > Most:
			return Most
		default:
			return int32(sum)
		}
	}
	every(t, func(t *testing.T, s *Set) {
		for n := range 150 {
			dst, src := make([]int32, n+2), make([]int32, n+2)
			for i := range dst {
				dst[i], src[i] = edges[i%len(edges)], edges[(i/len(edges)+n)%len(edges)]
			}
			was := slices.Clone(dst)
			s.AddExponents(&dst[1], &src[1], n)
			for i, got := range dst {
				sum := was[i]
				if i > 0 && i <= n {
					sum = want(was[i], src[i])
				}
				if got != sum {
					t.Fatalf("n=%d: dst[%d] = %d + %d = %d, want %d", n, i, was[i], src[i], got, sum)
				}
			}
		}
		for _, a := range edges {
			for _, b := range edges {
				got, sum := [16]int32{}, [16]int32{}
				for i := range got {
					got[i], sum[i] = a, b
				}
				s.AddExponents(&got[0], &sum[0], 16)
				for _, e := range got {
					if e != want(a, b) || AddExponents(a, b) != e {
						t.Fatalf("%d + %d = %d, of two alone %d, want %d", a, b, e, AddExponents(a, b), want(a, b))
					}
				}
			}
		}
	})
	for _, e := range []float64{math.Inf(-1), -1e60, Lost - 1, Lost, Lost + 1, -1e9, 0, 1, Most, Most + 1, 1e60, math.Inf(1)} {
		if got, want := float64(Exponent(e)), min(max(e, Lost), Most); got != want {
			t.Errorf("Exponent(%v) = %v, want %v", e, got, want)
		}
	}
}

// TestRatio checks quotients to two units in the last place and zeros.
func TestRatio(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		eachShape(func(name string, rows, width int) {
			x, f := newMatrix(rows, width, 3, spread(rng, -100, 10)), newMatrix(rows, width, 1, spread(rng, -20, 10))
			was := x.clone()
			s.Ratio(x.ptr(), x.stride, f.ptr(), f.stride, rows, width)
			for r := range rows {
				for j, got := range x.row(r) {
					var want float64
					if d := float64(*was.at(r, j)); d != 0 {
						want = float64(*f.at(r, j)) / d
					}
					if !near(float64(got), want, 0x1p-22*want) {
						t.Fatalf("%s: [%d][%d] = %v, want %v", name, r, j, got, want)
					}
				}
			}
			x.check(t, name)
		})
		checkControl(t)
	})
}
