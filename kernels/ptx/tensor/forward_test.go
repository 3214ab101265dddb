package tensor_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// checkSums compares the rows of all sums that are not marked with sums in float64.
func (l *level) checkSums(t *testing.T) {
	t.Helper()
	l.checkTerms(t, func(sum, term float64) float64 { return sum + term }, l.noise())
}

// checkTerms is checkSums for what combines terms, but for a share of noise.
func (l *level) checkTerms(t *testing.T, combine func(all, term float64) float64, noise float64) {
	t.Helper()
	for id := range l.sums {
		s := &l.sums[id]
		for r := range l.rows {
			if l.bad[r] != 0 {
				continue
			}
			exp := int(l.exp[int(s.Exp)+r])
			most := 0.0
			scaled := func(element, unit int) float64 {
				x, e := l.operand(int(s.Element)+element, r, unit)
				return math.Ldexp(x, e-exp)
			}
			for e := range int(s.Elements) {
				for u := range int(l.elements[int(s.Element)+e].Width) {
					most = max(most, scaled(e, u))
				}
			}
			if !(most > 0.999999 && most < 2.000001) {
				t.Fatalf("sum %d, row %d: the largest operand is %g, want 1 to 2", id, r, most)
			}
			want := make([]float64, s.Width)
			for _, w := range l.weights[id] {
				want[w.unit] = combine(want[w.unit], float64(l.params[w.param])*scaled(w.element, w.column))
			}
			for u, x := range want {
				if got := float64(l.val[int(s.Val)+r*int(s.Width)+u]); !near(got, x, noise) {
					t.Fatalf("sum %d, row %d, unit %d: %g, want %g", id, r, u, got, x)
				}
			}
		}
	}
}

func TestForward(t *testing.T) {
	eachShape(t, func(t *testing.T, l *level) {
		l.run(t, tensor.KernelForward, upTo(len(l.groups)), l.tiles64())
		l.checkSums(t)
		for r, b := range l.bad {
			if b != 0 {
				t.Errorf("row %d is marked", r)
			}
		}
		for _, s := range l.sums {
			for i := l.rows * int(s.Width); i < l.cap*int(s.Width); i++ {
				if x := l.val[int(s.Val)+i]; x == x {
					t.Fatalf("wrote value %d behind the last row", i)
				}
			}
		}
	})
}

// spread makes the values of stored vectors and their exponents differ by many
// powers of two, or vanish, in two of three rows.
func (l *level) spread() {
	for _, e := range l.elements {
		for _, f := range l.factors[e.Factor : e.Factor+e.Count] {
			if f.Kind == tensor.TableFactor {
				continue
			}
			for r := range l.rows {
				far := []int{0, 20, 130}[r%3]
				l.exp[int(f.At)+r] += int32(l.rng.IntN(far + 1))
				for u := range int(e.Width) {
					x := &l.val[int(f.Base)+r*int(e.Width)+u]
					*x = float32(math.Ldexp(float64(*x), -l.rng.IntN(far+1)))
					if r%10 == 7 {
						*x = 0
					}
				}
			}
		}
	}
}

func TestForwardMarks(t *testing.T) {
	marked, whole := 0, 0
	eachShape(t, func(t *testing.T, l *level) {
		l.spread()
		l.run(t, tensor.KernelForward, upTo(len(l.groups)), l.tiles64())
		l.checkSums(t)
		for r := range l.rows {
			want, sure := false, true
			for id := range l.sums {
				w, s := l.mustMark(id, r)
				want, sure = want || w && s, sure && s
			}
			if got := l.bad[r] == 1; got != want && (sure || want) {
				t.Errorf("row %d: marked %v, want %v", r, got, want)
			}
			if want {
				marked++
			} else {
				whole++
			}
		}
	})
	if marked < 100 || whole < 100 {
		t.Errorf("%d rows marked and %d not; want many of both", marked, whole)
	}
}

func TestStored(t *testing.T) {
	for _, size := range []int{1, 2, 4, 16, 32} {
		for _, spread := range []bool{false, true} {
			l := newLevel(size, 70, 3)
			for i, factors := range [][2]int{{1, 0}, {1, 1}, {2, 1}, {5, 2}, {2, 0}} {
				width := (i%3*2 + 1) * size
				l.element(width, width-size/2, factors[0], factors[1])
				l.sum(width, 1, -1)
				s, v := &l.sums[i], l.vector(width, 0)
				s.Val, s.Exp, s.Width = v.Base, v.At, uint32(width)
				l.elements[i].Units = uint32(width)
			}
			if spread {
				l.spread()
			}
			l.run(t, tensor.KernelStored, upTo(len(l.sums)), l.tiles64())
			l.checkStored(t)
		}
	}
}

// checkStored compares stored products with products in float64, and the marks of rows.
func (l *level) checkStored(t *testing.T) {
	t.Helper()
	marked := make([]bool, l.rows)
	for id, s := range l.sums {
		e := int(s.Element)
		bare := l.elements[e].Count <= 3
		for r := range l.rows {
			exp := int(l.exp[int(s.Exp)+r])
			most, base := 0.0, 0
			for u := range int(s.Width) {
				var x float64
				x, base = l.operand(e, r, u)
				if bare && x < 0x1p-126 {
					x = 0
				}
				most = max(most, x)
			}
			if most == 0 || bare && exp-base < -24 {
				marked[r] = true
				continue
			}
			if x := math.Ldexp(most, base-exp); !(x > 0.999999 && x < 2.000001) {
				t.Fatalf("product %d, row %d: the largest is %g, want 1 to 2", id, r, x)
			}
			for u := range int(s.Width) {
				x, b := l.operand(e, r, u)
				want, got := math.Ldexp(x, b-exp), float64(l.val[int(s.Val)+r*int(s.Width)+u])
				if !near(got, want, 1e-6) && !(want < 0x1p-100 && got <= 0x1p-100) {
					t.Fatalf("product %d, row %d, unit %d: %g, want %g", id, r, u, got, want)
				}
			}
		}
	}
	for r, want := range marked {
		if l.bad[r] == 1 != want {
			t.Errorf("row %d: marked %v, want %v", r, !want, want)
		}
	}
}

// mustMark reports whether a row of a sum must be marked, and whether that is sure:
// no output lies next to its limit.
func (l *level) mustMark(id, row int) (marked, sure bool) {
	s := &l.sums[id]
	exp := int(l.exp[int(s.Exp)+row])
	low, most := 0, 0.0
	for e := int(s.Element); e < int(s.Element+s.Elements); e++ {
		base := 0
		for u := range int(l.elements[e].Width) {
			x, b := l.operand(e, row, u)
			if l.elements[e].Count <= 3 && x < 0x1p-126 {
				x = 0 // what bare products lose
			}
			most, base = max(most, x), b
		}
		if l.elements[e].Count <= 3 {
			low = min(low, exp-base)
		}
	}
	if most == 0 {
		return true, true
	}
	limit := float64(s.Cols) * math.Ldexp(1, -102+min(-low, 127))
	sure = true
	for u := range int(s.Units) {
		o := float64(l.val[int(s.Val)+row*int(s.Width)+u])
		marked = marked || !(o >= limit)
		sure = sure && !near(o, limit, 1e-6)
	}
	return marked, sure
}
