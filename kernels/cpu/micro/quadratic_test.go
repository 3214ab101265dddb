package micro

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// quadraticCase has the arguments of a call and the terms that they come from.
type quadraticCase struct {
	QuadraticArgs
	out, own *matrix
	exp      []int32
	g, off   []float64
	terms    [][NumTerms]float64
}

// newQuadraticCase draws densities of which some lie far apart, rows far away, offsets
// that leave the range of exponents, and units that only fill.
func newQuadraticCase(rng *rand.Rand, rows, width int, own bool) *quadraticCase {
	c := &quadraticCase{exp: make([]int32, rows), g: make([]float64, rows), off: make([]float64, rows)}
	fill := func() float32 { return 7 }
	c.out, c.own = newMatrix(rows, width, 3, fill), newMatrix(rows, width, 3, fill)
	list := Terms(width)
	for j := range width {
		sigma := math.Exp(3 * rng.NormFloat64())
		t := [NumTerms]float64{rng.NormFloat64() - math.Log2(sigma), rng.NormFloat64(), 0.7 / (sigma * sigma), 3 * rng.NormFloat64()}
		if rng.IntN(9) == 0 {
			t[TermCurve] = 0
		}
		if width > 1 && rng.IntN(9) == 0 {
			t = [NumTerms]float64{TermAdd: absent}
		}
		c.terms = append(c.terms, t)
		SetTerms(list, j, t[TermAdd], t[TermSlope], t[TermCurve], t[TermCentre])
	}
	if width > 0 {
		c.terms[0] = [NumTerms]float64{1, 0, 0.5, 2}
		SetTerms(list, 0, 1, 0, 0.5, 2)
	}
	for r := range rows {
		c.g[r] = 10 * rng.NormFloat64()
		switch rng.IntN(12) {
		case 0:
			c.g[r] *= 1e9
		case 1:
			c.g[r] *= 1e37
		case 2:
			c.off[r] = Lost + 40*rng.NormFloat64()
		case 3:
			c.off[r] = Most + 40*rng.NormFloat64()
		case 4:
			c.off[r] = 1e3 * rng.NormFloat64()
		}
	}
	c.QuadraticArgs = QuadraticArgs{Rows: rows, Width: width, Terms: first(list), Logs: first(make([]float64, len(list)/NumTerms)),
		G: first(c.g), Off: first(c.off), Out: c.out.ptr(), OutRow: c.out.stride, Exp: first(c.exp)}
	if own {
		c.Own = c.own.ptr()
	}
	return c
}

func first[T any](list []T) *T {
	if len(list) == 0 {
		return new(T)
	}
	return &list[0]
}

// again returns the same call with results of its own.
func (c *quadraticCase) again() *quadraticCase {
	d := *c
	d.out, d.own, d.exp = c.out.clone(), c.own.clone(), slices.Clone(c.exp)
	d.Out, d.Exp = d.out.ptr(), first(d.exp)
	if c.Own != nil {
		d.Own = d.own.ptr()
	}
	return &d
}

// TestQuadratic compares each set with the definition, bit by bit, and with logs and
// powers of package math.
func TestQuadratic(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, width := range []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 31, 48, 63, 65} {
			for _, rows := range []int{0, 1, 2, 40} {
				for _, own := range []bool{false, true} {
					name := fmt.Sprintf("rows=%d width=%d own=%v", rows, width, own)
					c := newQuadraticCase(rng, rows, width, own)
					want := c.again()
					s.Quadratic(&c.QuadraticArgs)
					generic.Quadratic(&want.QuadraticArgs)
					c.out.same(t, name, want.out)
					c.own.same(t, name+" own", want.own)
					if !slices.Equal(c.exp, want.exp) {
						t.Fatalf("%s: exponents %v, want %v", name, c.exp, want.exp)
					}
					c.checkValues(t, name)
				}
			}
		}
	})
}

// checkValues compares results with what package math gives.
func (c *quadraticCase) checkValues(t *testing.T, name string) {
	t.Helper()
	logs := make([]float64, c.Width)
	for r := range c.Rows {
		for j, term := range c.terms {
			d := c.g[r] - term[TermCentre]
			logs[j] = term[TermAdd] + term[TermSlope]*c.g[r] - term[TermCurve]*d*d
		}
		top := slices.Max(logs)
		e := math.Ceil(top + c.off[r])
		loss := 0x1p-50*(math.Abs(top)+math.Abs(c.off[r])) + 1e-12 // of the logs, absolutely
		if got := float64(c.exp[r]); got != min(max(e, Lost), Most) && math.Abs(e-top-c.off[r]) > loss && math.Abs(e-1-top-c.off[r]) > loss {
			t.Fatalf("%s: row %d has exponent %v, want %v", name, r, got, e)
		}
		if e > Lost && e < Most {
			e = float64(c.exp[r]) // next to a whole number, the one of either side
		}
		most := float32(0)
		for j, l := range logs {
			m := *c.out.at(r, j)
			rel := l + c.off[r] - e
			if e <= Lost {
				rel = l - top
			}
			far := 0.0
			if c.Own != nil {
				far = float64(*c.own.at(r, j))
			}
			if far == 0 {
				most = max(most, m)
			}
			switch {
			case m == 0:
				if least := map[bool]float64{false: leastBare, true: leastOwn}[c.Own != nil]; rel > least+1+loss {
					t.Fatalf("%s: row %d, unit %d is 0, want 2^%v", name, r, j, rel)
				}
			case far != math.Trunc(far) || far > 0 || far > leastPlain && far < 0:
				t.Fatalf("%s: row %d, unit %d has exponent %v", name, r, j, far)
			default:
				got := math.Log2(float64(m)) + far
				tol := loss + 0x1p-50*math.Abs(l) + 0x1.4p-24/math.Ln2
				if math.Abs(rel) < 1<<24 && !near(got, rel, tol) {
					t.Fatalf("%s: row %d, unit %d is 2^%v, want 2^%v", name, r, j, got, rel)
				}
			}
		}
		if !(most >= 0.5 && most <= 1) && loss < 1e-6 {
			t.Fatalf("%s: row %d: its largest value is %v", name, r, most)
		}
	}
}

// TestAddScaled compares the sums of each set with the definition, bit by bit.
func TestAddScaled(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		eachShape(func(name string, rows, width int) {
			f := newMatrix(rows, width, 3, spread(rng, -20, 3))
			scale, got := make([]float64, rows+1), make([]float64, width+2)
			for r := range scale {
				scale[r] = rng.NormFloat64()
			}
			for j := range got {
				got[j] = rng.NormFloat64()
			}
			scale[rows] = math.NaN() // beyond the rows: may not be used
			want := slices.Clone(got)
			s.AddScaled(&got[1], f.ptr(), f.stride, &scale[0], rows, width)
			for r := range rows {
				for j, v := range f.row(r) {
					want[1+j] += float64(float64(v) * scale[r])
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: sums are %v, want %v", name, got, want)
			}
		})
	})
}
