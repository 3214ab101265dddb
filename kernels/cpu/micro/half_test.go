package micro

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// everyHalf runs a test on each set with kernels on halves.
func everyHalf(t *testing.T, test func(t *testing.T, s *HalfSet)) {
	ran := false
	every(t, func(t *testing.T, s *Set) {
		if s.Half != nil {
			ran = true
			test(t, s.Half)
		}
	})
	if !ran {
		t.Skip("no set of this machine has kernels on halves: they need a CPU with AVX512_FP16")
	}
}

// toHalf rounds a number that is not negative to a half, to nearest even.
func toHalf(x float64) uint16 {
	_, e := math.Frexp(x) // x = m·2^e, m in [1/2, 1)
	unit := math.Ldexp(1, max(e-11, -24))
	n := math.RoundToEven(x / unit)
	v := n * unit
	switch {
	case v >= 0x1p16:
		return 0x7c00
	case v < 0x1p-14:
		return uint16(v * 0x1p24)
	}
	_, e = math.Frexp(v)
	return uint16(e+14)<<10 + uint16(v*math.Ldexp(1, 11-e)) - 1<<10
}

func fromHalf(h uint16) float64 {
	if h < 1<<10 {
		return float64(h) * 0x1p-24
	}
	return math.Ldexp(float64(h&0x3ff|0x400), int(h>>10)-25)
}

// halfPlus returns half(x + y) for numbers that are not negative; x may be any
// product of two halves. The float64 sum is rounded to odd first, so that
// rounding it once more changes nothing.
func halfPlus(x, y float64) float64 {
	s := x + y
	if d := s - x; (x-(s-d))+(y-d) != 0 {
		lost := (x - (s - d)) + (y - d)
		if b := math.Float64bits(s); b&1 == 0 {
			if lost > 0 {
				s = math.Float64frombits(b + 1)
			} else {
				s = math.Float64frombits(b - 1)
			}
		}
	}
	return fromHalf(toHalf(s))
}

// halfPanel is HalfSet.Panel in plain Go, with the same bits.
func halfPanel(a *HalfArgs) {
	for r := range a.Rows {
		for j := range 32 {
			total := 0.0
			for k := 0; k < a.K; k += 32 {
				run := 0.0
				for q := k; q < min(k+32, a.K); q++ {
					run = halfPlus(fromHalf(*at(a.A, r*a.ARow+q*a.ACol))*fromHalf(*at(a.B, q*a.BRow+j)), run)
				}
				total = halfPlus(total, run)
			}
			c := float32(total) * *at(a.Scale, r)
			if a.Columns != nil {
				c *= *at(a.Columns, j)
			}
			out := at(a.C, r*a.CRow+j)
			if a.Add {
				c += *out
			}
			if a.E != nil {
				c *= *at(a.E, r*a.ERow+j)
			}
			*out = c
		}
	}
}

// TestHalves walks over all halves that are not negative.
func TestHalves(t *testing.T) {
	last := -1.0
	for h := range uint16(0x7c00) {
		x := fromHalf(h)
		if !(x > last) || toHalf(x) != h {
			t.Fatalf("half %#x is %v after %v and rounds to %#x", h, x, last, toHalf(x))
		}
		next := fromHalf(h + 1)
		if h+1 == 0x7c00 {
			next = 0x1p16
		}
		if got, want := toHalf((x+next)/2), h+h&1; got != want {
			t.Fatalf("the middle above half %#x rounds to %#x, want %#x", h, got, want)
		}
		last = x
	}
}

// halves is a matrix of halves in fences of NaN.
type halves struct {
	stride int
	data   []uint16
}

func newHalves(rows, cols, gap int, fill func() uint16) *halves {
	m := &halves{cols + gap, make([]uint16, 2*margin+rows*(cols+gap))}
	for i := range m.data {
		m.data[i] = 0x7e00
	}
	for r := range rows {
		for c := range cols {
			m.data[margin+r*m.stride+c] = fill()
		}
	}
	return m
}

func (m *halves) ptr() *uint16 { return &m.data[margin] }

// someHalf returns halves of all sizes up to 2^4, denormals and zeros too.
func someHalf(rng *rand.Rand) func() uint16 {
	return func() uint16 {
		if rng.IntN(2) == 0 {
			return toHalf(rng.Float64() * 16)
		}
		return uint16(rng.IntN(int(toHalf(16))))
	}
}

// TestHalfPanel wants the bits of plain Go at all group edges, with rows of A
// along and across its storage and with every end.
func TestHalfPanel(t *testing.T) {
	step, terms := 1, []int{0, 1, 31, 32, 33, 100}
	if testing.Short() {
		step, terms = 3, []int{0, 1, 33}
	}
	everyHalf(t, func(t *testing.T, s *HalfSet) {
		for _, k := range terms {
			for rows := 0; rows < 60; rows += step {
				testHalfPanel(t, s, rows, k)
			}
		}
		testHalfPanel(t, s, 128, 256)
		checkControl(t)
	})
}

func testHalfPanel(t *testing.T, s *HalfSet, rows, k int) {
	t.Helper()
	rng := seeded()
	scratch := make([]uint16, HalfScratch+2)
	scratch[0], scratch[HalfScratch+1] = fence&0xffff, fence&0xffff
	for end := range 4 {
		name := fmt.Sprintf("rows=%d k=%d end=%d", rows, k, end)
		a := newHalves(rows, k, end, someHalf(rng))
		arow, acol := a.stride, 1
		if end&1 != 0 {
			a = newHalves(k, rows, end, someHalf(rng))
			arow, acol = 1, a.stride
		}
		b := newHalves(k, 32, end%3, someHalf(rng))
		c, e, scale := newMatrix(rows, 32, 2*end, uniform(rng)), newMatrix(rows, 32, 3, uniform(rng)), newMatrix(1, rows, 0, spread(rng, -5, 5))
		columns := newMatrix(1, 32, 0, uniform(rng))
		want := c.clone()
		args := func(c *matrix, from, rows int) *HalfArgs {
			first := from * arow
			if k == 0 { // there is nothing to point to
				first = 0
			}
			x := &HalfArgs{Rows: rows, K: k, A: at(a.ptr(), first), ARow: arow, ACol: acol, B: b.ptr(), BRow: b.stride,
				C: at(c.ptr(), from*c.stride), CRow: c.stride, Scale: at(scale.ptr(), from), Sums: &scratch[1], Add: end&1 != 0}
			if end == 1 || end == 2 {
				x.Columns = columns.ptr()
			}
			if end&2 != 0 {
				x.E, x.ERow = at(e.ptr(), from*e.stride), e.stride
			}
			return x
		}
		again := c.clone()
		halfPanel(args(want, 0, rows))
		s.Panel(args(c, 0, rows))
		c.same(t, name, want)
		if rows > 0 { // the same bits in two calls
			cut := rng.IntN(rows)
			s.Panel(args(again, 0, cut))
			s.Panel(args(again, cut, rows-cut))
			again.same(t, name+" in two calls", want)
		}
		if scratch[0] != fence&0xffff || scratch[HalfScratch+1] != fence&0xffff {
			t.Fatalf("%s: wrote around the scratch memory", name)
		}
	}
}

// TestHalfTops compares with the definition, rows of zeros, denormals and
// infinities among them.
func TestHalfTops(t *testing.T) {
	everyHalf(t, func(t *testing.T, s *HalfSet) {
		rng := seeded()
		for _, width := range []int{32, 64, 256} {
			for _, fill := range []float32{0, 0x1p-130, 1e-30, 1, 1e30, float32(math.Inf(1)), float32(math.NaN())} {
				x := newMatrix(5, width, 3, func() float32 { return min(fill, 1) * rng.Float32() })
				for r := range 5 {
					*x.at(r, rng.IntN(width)) = fill
				}
				top := []int32{77, 77, 77, 77, 77, 77}
				s.Tops(&top[0], x.ptr(), x.stride, 5, width)
				for r, got := range top {
					want := int32(math.Float32bits(fill)>>23) - 127
					if r == 5 {
						want = 77
					}
					if fill != fill && r < 5 {
						if got <= 127 {
							t.Errorf("width %d: top of a row with NaN is %d, want more than 127", width, got)
						}
					} else if got != want {
						t.Errorf("width %d fill %v: top[%d] = %d, want %d", width, fill, r, got, want)
					}
				}
			}
		}
	})
}

// TestHalfPack compares with rounding in float64.
func TestHalfPack(t *testing.T) {
	everyHalf(t, func(t *testing.T, s *HalfSet) {
		rng := seeded()
		for _, width := range []int{32, 96} {
			shift := []int32{0, 3, -3, -130, ZeroRow, 128, 100}
			rows := len(shift)
			x := newMatrix(rows, width, 1, spread(rng, -30, 10))
			for j := range width {
				*x.at(3, j) *= 0x1p-96
				*x.at(4, j) = float32(math.Inf(1))
				*x.at(5, j) = float32(math.NaN())
				*x.at(6, j) *= 0x1p100
			}
			columns := newMatrix(1, width, 0, func() float32 { return 1 })
			f := columns.ptr()
			if width == 96 {
				f = nil
			} else {
				for j := range width {
					*columns.at(0, j) = float32(math.Ldexp(1, rng.IntN(8)))
				}
			}
			dst := newHalves(rows, width, 2, func() uint16 { return 0x7e00 })
			s.Pack(dst.ptr(), dst.stride, x.ptr(), x.stride, &shift[0], f, rows, width)
			for i, got := range dst.data {
				r, j := (i-margin)/dst.stride, (i-margin)%dst.stride
				want := uint16(0x7e00)
				if i >= margin && r < rows && j < width {
					want = 0
					if shift[r] <= 127 && shift[r] != ZeroRow {
						want = toHalf(math.Ldexp(float64(*x.at(r, j)), -int(max(shift[r], -127))) * float64(*columns.at(0, j)))
					}
				}
				if got != want {
					t.Fatalf("width %d: half [%d][%d] is %#x, want %#x", width, r, j, got, want)
				}
			}
		}
		checkControl(t)
	})
}

// TestHalfSumsScale compares with float64 sums and with plain products.
func TestHalfSumsScale(t *testing.T) {
	everyHalf(t, func(t *testing.T, s *HalfSet) {
		rng := seeded()
		for _, width := range []int{32, 64, 256} {
			const rows = 7
			name := fmt.Sprintf("width=%d", width)
			x, f := newMatrix(rows, width, 3, spread(rng, -20, 0)), newMatrix(1, rows, 0, uniform(rng))
			sum := newMatrix(1, rows, 0, uniform(rng))
			s.Sums(sum.ptr(), x.ptr(), x.stride, rows, width)
			want := x.clone()
			for r := range rows {
				exact := 0.0
				for k, v := range x.row(r) {
					exact += float64(v)
					*want.at(r, k) = v * *f.at(0, r)
				}
				if got := float64(*sum.at(0, r)); !near(got, exact, float64(width)*0x1p-24*exact) {
					t.Errorf("%s: sum[%d] = %v, want %v", name, r, got, exact)
				}
			}
			sum.check(t, name)
			s.Scale(x.ptr(), x.stride, f.ptr(), rows, width)
			x.same(t, name, want)
		}
	})
}

// TestHalfPeaks compares with the definition.
func TestHalfPeaks(t *testing.T) {
	everyHalf(t, func(t *testing.T, s *HalfSet) {
		rng := seeded()
		for _, width := range []int{32, 64, 96, 256} {
			for _, rows := range []int{0, 1, 9} {
				name := fmt.Sprintf("width=%d rows=%d", width, rows)
				x, peak := newMatrix(rows, width, 3, spread(rng, -20, 20)), newMatrix(1, width, 0, uniform(rng))
				shift := make([]int32, rows+1)
				for r := range shift {
					if rng.IntN(3) == 0 {
						shift[r] = ZeroRow
					}
				}
				s.Peaks(peak.ptr(), x.ptr(), x.stride, &shift[0], rows, width)
				for k, got := range peak.row(0) {
					var want float32
					for r := range rows {
						if v := *x.at(r, k); shift[r] != ZeroRow && v >= 2*want && v > 0 {
							_, e := math.Frexp(float64(v))
							want = float32(math.Ldexp(1, e-1))
						}
					}
					if got != want {
						t.Fatalf("%s: peak[%d] = %v, want %v", name, k, got, want)
					}
				}
				peak.check(t, name)
			}
		}
	})
}
