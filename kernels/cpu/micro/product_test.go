package micro

import (
	"fmt"
	"math"
	"testing"
)

var rowWidths = []int{1, 2, 3, 7, 8, 16, 24, 32, 40, 48, 64, 96, 100, 128, 200, 256, 272, 512, 1000}

// productCase is one call of Product in fences; guard rows of codes lie beyond
// the rows that are multiplied.
type productCase struct {
	rows, width int
	factors     []Factor
	tables      []*matrix
	out         *matrix
	shift       []int32
	wide        bool
	scratch     *matrix
}

func newProductCase(rows, width, factors int, wideCodes bool, fill func() float32) *productCase {
	rng := seeded()
	p := &productCase{rows: rows, width: width, out: newMatrix(rows, width, 3, fill), shift: make([]int32, rows+2)}
	p.scratch = newMatrix(1, width, 3, fill)
	for i := range factors {
		n := rows
		codes, wide := make([]uint16, rows+1), make([]uint32, rows+1)
		codes[rows], wide[rows] = math.MaxUint16, math.MaxUint32
		if i%2 == 0 {
			n = 9
			for r := range rows {
				c := rng.IntN(n)
				codes[r], wide[r] = uint16(c), uint32(c)
			}
		}
		m := newMatrix(n, width, i%5, fill)
		f := Factor{Base: m.ptr(), Row: m.stride}
		switch {
		case i%2 != 0:
		case wideCodes:
			f.WideCodes = &wide[0]
		default:
			f.Codes = &codes[0]
		}
		p.tables, p.factors = append(p.tables, m), append(p.factors, f)
	}
	p.shift[0], p.shift[rows+1] = 77, 78
	return p
}

// spread makes the product wide and gives two of three factors exponents of their
// own, from -3000 to 1000.
func (p *productCase) spread() {
	rng := seeded()
	p.wide = true
	for i := range p.factors {
		if m := p.tables[i]; i%3 < 2 {
			own := newMatrix(m.rows, m.cols, m.stride-m.cols, func() float32 { return float32(rng.IntN(4000) - 3000) })
			p.factors[i].Exps = own.ptr()
		}
	}
}

func (p *productCase) args(from, rows int, fit bool) *ProductArgs {
	a := &ProductArgs{Rows: rows, Width: p.width, Out: at(p.out.ptr(), from*p.out.stride), OutRow: p.out.stride, Shift: &p.shift[1+from], Fit: fit, Wide: p.wide, Scratch: p.scratch.ptr()}
	for _, f := range p.factors {
		switch {
		case f.Codes != nil:
			f.Codes = at(f.Codes, from)
		case f.WideCodes != nil:
			f.WideCodes = at(f.WideCodes, from)
		default:
			f.Base = at(f.Base, from*f.Row)
			f.Exps = offsetBy(f.Exps, from*f.Row)
		}
		a.Factors = append(a.Factors, f)
	}
	return a
}

// exact returns the product of row r, element j as m·2^e.
func (p *productCase) exact(r, j int) (float64, int) {
	m, e := 1.0, 0
	for i := range p.factors {
		xs, own := p.factors[i].row(r, p.width)
		x, up := math.Frexp(float64(xs[j]))
		if own != nil {
			up += int(own[j])
		}
		y, carry := math.Frexp(m * x)
		m, e = y, e+up+carry
	}
	return m, e
}

// check compares the rows with the exact products; small is the exponent below
// which a plain product may be taken as 0.
func (p *productCase) check(t *testing.T, name string, fit bool) {
	t.Helper()
	plain := len(p.factors) <= plainFactors && !p.wide
	for r := range p.rows {
		shift := int(p.shift[1+r])
		var most float32
		alive := false
		for j, got := range p.out.row(r) {
			m, e := p.exact(r, j)
			alive = alive || m != 0 && (!plain || e > -126)
			most = max(most, got)
			if shift == ZeroRow {
				if got != 0 {
					t.Fatalf("%s: row %d of shift ZeroRow holds %v", name, r, got)
				}
				continue
			}
			want := math.Ldexp(m, e-shift)
			lost := 0x1p-126
			if plain {
				lost = max(lost, math.Ldexp(1, -126-shift))
			}
			// A rounding for each factor, one for the scale.
			if !near(float64(got), want, float64(len(p.factors)+1)*0x1p-24*want+lost) {
				t.Fatalf("%s: row %d element %d = %v, want %v (shift %d)", name, r, j, got, want, shift)
			}
		}
		if !fit {
			continue
		}
		if alive != (shift != ZeroRow) {
			t.Fatalf("%s: row %d has shift %d, alive is %v", name, r, shift, alive)
		}
		if alive && !(most >= 1 && most < 2) {
			t.Fatalf("%s: row %d has maximum %v", name, r, most)
		}
	}
	if p.shift[0] != 77 || p.shift[p.rows+1] != 78 {
		t.Fatalf("%s: shifts beyond the rows were written", name)
	}
	p.out.check(t, name)
	p.scratch.check(t, name+": scratch")
}

// TestProduct compares Product with exact products over widths, factors, codes
// and exponents, then repeats it with the shifts given and in two calls.
func TestProduct(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, width := range rowWidths {
			for i, factors := range []int{1, 2, 3, 4, 5, 25, 783, 1, 2, 3, 4, 25} {
				if factors == 783 && (width > 48 || testing.Short() && width != 16) || testing.Short() && factors > 2 && (i+width)%3 != 0 {
					continue
				}
				wide, ownExps := i > 6, i > 6 && (i+width)%2 == 0
				lo, hi := -40, 40
				if factors > plainFactors {
					lo, hi = -145, 120 // denormals too; they vanish in no product
				}
				rows := 11
				if width == 16 && factors < 4 {
					rows = 40
				}
				name := fmt.Sprintf("width=%d factors=%d wide=%v own=%v", width, factors, wide, ownExps)
				fill := spread(rng, lo, hi)
				if factors > 5 {
					fill = func() float32 { return float32(math.Ldexp(1+rng.Float64(), lo+rng.IntN(hi-lo))) }
				}
				p := newProductCase(rows, width, factors, wide, fill)
				if ownExps {
					p.spread()
				}
				p.clearRow(3)
				s.Product(p.args(0, rows, true))
				p.check(t, name, true)

				want := p.out.clone()
				p.shift[1+5] += 2
				p.shift[1+6] = ZeroRow
				s.Product(p.args(0, rows, false))
				p.check(t, name+" given", false)
				p.shift[1+5] -= 2
				for r := range rows {
					p.shift[1+r] = -9
				}
				cut := rng.IntN(rows)
				s.Product(p.args(0, cut, true))
				s.Product(p.args(cut, rows-cut, true))
				p.check(t, name+" in two calls", true)
				p.out.same(t, name+" in two calls", want)
			}
		}
		checkControl(t)
	})
}

// TestProductOfAnySize multiplies factors on both sides of the sizes at which a set may take another way, and compares the bits
// with those of the same factors beside exponents of 0.
func TestProductOfAnySize(t *testing.T) {
	sizes := []float32{1, 1.7, 0x1p-30, 0x1p-41, 0x1.fffffep-42, 0x1.fffffep40, 0x1p41, 0x1p-126, 0x1.8p-127, 0x1p-140, 0x1.fffffep127, 0}
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, width := range []int{8, 16, 64, 72, 104, 200} {
			for factors := 1; factors <= 8; factors++ {
				for odd := range sizes {
					name := fmt.Sprintf("width=%d factors=%d size=%g", width, factors, sizes[odd])
					p := newProductCase(4, width, factors, false, func() float32 { return 1 + rng.Float32() })
					p.wide = true
					for i, m := range p.tables { // whole tables in one of four, else single elements
						for r := range m.rows {
							for j := range width {
								if (odd+i)%4 == 0 || rng.IntN(100) == 0 {
									*m.at(r, j) = sizes[odd]
								}
							}
						}
					}
					s.Product(p.args(0, 4, true))
					p.check(t, name, true)
					want := p.out.clone()
					for i, m := range p.tables {
						p.factors[i].Exps = newMatrix(m.rows, m.cols, m.stride-m.cols, func() float32 { return 0 }).ptr()
					}
					s.Product(p.args(0, 4, true))
					p.out.same(t, name+" beside exponents", want)
				}
			}
		}
		checkControl(t)
	})
}

// TestProductOfManyFactors multiplies normal numbers, which a set may take another way than others, with as many factors as let mantissas
// grow beyond any float, and some that are not normal. Rows are found by codes, all or every second. The numbers are far below
// 1, so that the others, beside them, are not so small that they count as lost.
func TestProductOfManyFactors(t *testing.T) {
	const rows = 9
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		normal := func() float32 { return float32(math.Ldexp(1.5+rng.Float64()/2, rng.IntN(40)-60)) }
		for _, width := range []int{8, 16, 32, 56, 64} {
			for _, factors := range []int{1, 2, 4, 64, 65, 400} {
				for _, stored := range []bool{false, true} {
					for _, odd := range []float32{1, 0, 0x1p-140} {
						name := fmt.Sprintf("width=%d factors=%d stored=%v odd=%g", width, factors, stored, odd)
						p := newProductCase(rows, width, factors, false, normal)
						p.wide = true
						for i := range p.factors {
							if f := &p.factors[i]; f.Codes == nil && !stored {
								f.Codes = &[]uint16{2, 0, 1, 8, 8, 5, 7, 6, 3, math.MaxUint16}[0]
							}
						}
						for _, m := range p.tables { // in every second vector of a row
							for r := range m.rows {
								for j := range width {
									if rng.IntN(16*factors) == 0 {
										*m.at(r, j) = odd
									}
								}
							}
						}
						s.Product(p.args(0, rows, true))
						p.check(t, name, true)
						for r := range rows {
							for j, got := range p.out.row(r) {
								if m, _ := p.exact(r, j); m == 0 && got != 0 {
									t.Fatalf("%s: row %d element %d = %v, want 0", name, r, j, got)
								}
							}
						}
					}
				}
			}
		}
		checkControl(t)
	})
}

// offsetBy returns the address of element i of p, nil where p is.
func offsetBy(p *float32, i int) *float32 {
	if p == nil {
		return nil
	}
	return at(p, i)
}

// clearRow makes a product row 0: the last factor without codes, or all rows
// of the first one, is 0 there.
func (p *productCase) clearRow(r int) {
	for i, f := range p.factors {
		if f.Codes == nil && f.WideCodes == nil {
			clear(p.tables[i].row(r))
			return
		}
	}
	xs, _ := p.factors[0].row(r, p.width)
	clear(xs)
}

// TestProductOfNothing checks that a product of no factors is 1.
func TestProductOfNothing(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		p := newProductCase(3, 16, 0, false, func() float32 { return 5 })
		s.Product(p.args(0, 3, true))
		p.check(t, "fit", true)
		if p.shift[1] != 0 || *p.out.at(0, 0) != 1 {
			t.Errorf("shift %d, element %v; want 0 and 1", p.shift[1], *p.out.at(0, 0))
		}
	})
}

// TestProductOfNoElements checks that rows without elements are left alone.
func TestProductOfNoElements(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		for factors := range 6 {
			p := newProductCase(3, 0, factors, false, func() float32 { return 1 })
			for _, p.wide = range []bool{false, true} {
				s.Product(p.args(0, 3, true))
				p.out.check(t, fmt.Sprintf("%d factors", factors))
				p.scratch.check(t, fmt.Sprintf("%d factors: scratch", factors))
			}
		}
	})
}

// TestProductEdges checks the ends of the exponent range of plain products.
func TestProductEdges(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		for _, width := range []int{16, 48, 64, 128, 256} {
			for _, tc := range []struct {
				value float32
				shift int32
				out   float32
			}{
				{0x1p-126, -126, 1}, {0x1.8p-126, -126, 1.5}, {0x1p-127, ZeroRow, 0}, {0, ZeroRow, 0},
				{0x1p126, 126, 1}, {0x1.fp127, 127, 0x1.fp0}, {1, 0, 1},
			} {
				p := newProductCase(4, width, 1, false, func() float32 { return 0 })
				for r := range p.tables[0].rows {
					*p.tables[0].at(r, width/2) = tc.value
				}
				for _, fit := range []bool{true, false} {
					s.Product(p.args(0, 4, fit))
					if got := *p.out.at(2, width/2); p.shift[3] != tc.shift || got != tc.out {
						t.Errorf("width %d, value %g, fit %v: shift %d, out %v; want %d, %v", width, tc.value, fit, p.shift[3], got, tc.shift, tc.out)
					}
				}
			}
		}
	})
}
