package micro

import (
	"fmt"
	"math"
	"testing"
)

// everyBF16 runs a test on each set with bfloat16 kernels.
func everyBF16(t *testing.T, test func(t *testing.T, s *BF16Set)) {
	ran := false
	every(t, func(t *testing.T, s *Set) {
		if s.BF16 != nil {
			ran = true
			test(t, s.BF16)
		}
	})
	if !ran {
		t.Skip("no set of this machine has bfloat16 kernels: they need a CPU with AVX512_BF16")
	}
}

// toBF16 rounds to bfloat16, to nearest even.
func toBF16(x float32) uint32 {
	b := math.Float32bits(x)
	return (b + 0x7fff + b>>16&1) >> 16
}

func fromBF16(x uint32) float64 { return float64(math.Float32frombits(x << 16)) }

// TestPack compares both ways of packing with rounding by integers.
func TestPack(t *testing.T) {
	everyBF16(t, func(t *testing.T, s *BF16Set) {
		rng := seeded()
		eachShape(func(name string, rows, width int) {
			x := newMatrix(rows, width, 3, spread(rng, -30, 30))
			get := func(r, c int) float32 {
				if r >= rows || c >= width {
					return 0
				}
				return *x.at(r, c)
			}
			const guard = 0xdeadbeef
			check := func(what string, rows, width int, pack func(dst *uint32, dstRow int), want func(r, k int) uint32) {
				stride := width + 2
				dst := make([]uint32, (rows+2)*stride)
				for i := range dst {
					dst[i] = guard
				}
				pack(&dst[stride], stride)
				for i, got := range dst {
					r, k := i/stride-1, i%stride
					w := uint32(guard)
					if r >= 0 && r < rows && k < width {
						w = want(r, k)
					}
					if got != w {
						t.Fatalf("%s %s: word [%d][%d] = %#x, want %#x", name, what, r, k, got, w)
					}
				}
			}
			check("PackRows", rows, (width+1)/2,
				func(dst *uint32, dstRow int) { s.PackRows(dst, dstRow, x.ptr(), x.stride, rows, width) },
				func(r, k int) uint32 { return toBF16(get(r, 2*k)) | toBF16(get(r, 2*k+1))<<16 })
			check("PackPairs", (rows+1)/2, width,
				func(dst *uint32, dstRow int) { s.PackPairs(dst, dstRow, x.ptr(), x.stride, rows, width) },
				func(r, k int) uint32 { return toBF16(get(2*r, k)) | toBF16(get(2*r+1, k))<<16 })
		})
	})
}

// TestBF16Panel compares the panels on pairs with float64 sums.
func TestBF16Panel(t *testing.T) {
	everyBF16(t, func(t *testing.T, s *BF16Set) {
		rng := seeded()
		// A pair word is carried as the float32 of the same bits.
		pair := func() float32 {
			return math.Float32frombits(toBF16(rng.Float32()) | toBF16(rng.Float32())<<16)
		}
		for _, w := range panelWidths {
			for rows := range 41 {
				for _, k := range []int{0, 1, 7, 32} {
					name := fmt.Sprintf("w=%d rows=%d k=%d", w, rows, k)
					a, b := newMatrix(rows, k, 3, pair), newMatrix(k, w, 1, pair)
					c, e := newMatrix(rows, w, 2, uniform(rng)), newMatrix(rows, w, 4, uniform(rng))
					was := c.clone()
					s.Panel(&PanelArgs{Rows: rows, K: k, W: w, A: a.ptr(), ARow: a.stride, ACol: 1, B: b.ptr(), BRow: b.stride,
						C: c.ptr(), CRow: c.stride, E: e.ptr(), ERow: e.stride, Add: true})
					for r := range rows {
						for j, got := range c.row(r) {
							want := float64(*was.at(r, j))
							for q := range k {
								x, y := math.Float32bits(*a.at(r, q)), math.Float32bits(*b.at(q, j))
								want += fromBF16(x&0xffff)*fromBF16(y&0xffff) + fromBF16(x>>16)*fromBF16(y>>16)
							}
							want *= float64(*e.at(r, j))
							// Products are exact; two sums a word.
							if !near(float64(got), want, float64(4*k+4)*0x1p-24*want) {
								t.Fatalf("%s: c[%d][%d] = %v, want %v", name, r, j, got, want)
							}
						}
					}
					c.check(t, name)
				}
			}
		}
		checkControl(t)
	})
}
