package micro

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"unsafe"
)

var panelWidths = []int{1, 2, 4, 8, 16, 32}

// panelCase is one call of Panel in fences.
type panelCase struct {
	a, b, c, e, min *matrix
	arow, acol      int
	rows, k, w      int
	add             bool
	join            func(x, y float64) float64 // of products
}

func (p *panelCase) args(from, rows int) *PanelArgs {
	x := &PanelArgs{Rows: rows, K: p.k, W: p.w, A: at(p.a.ptr(), from*p.arow), ARow: p.arow, ACol: p.acol,
		B: p.b.ptr(), BRow: p.b.stride, C: at(p.c.ptr(), from*p.c.stride), CRow: p.c.stride, Add: p.add}
	if p.e != nil {
		x.E, x.ERow = at(p.e.ptr(), from*p.e.stride), p.e.stride
	}
	if p.min != nil {
		x.Min = p.min.ptr()
	}
	return x
}

// TestPanel compares Panel and MaxPanel with float64 sums and maxima at all tile edges, with rows of A
// along and across its storage and with every end.
func TestPanel(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 8
	}
	every(t, func(t *testing.T, s *Set) {
		for _, w := range panelWidths {
			for rows := 0; rows < 41; rows += step {
				for _, k := range []int{0, 1, 5, 64} {
					testPanel(t, s.Panel, plus, rows, k, w)
					testPanel(t, s.MaxPanel, math.Max, rows, k, w)
				}
			}
			for k := 0; k < 71; k += step {
				testPanel(t, s.Panel, plus, 13, k, w)
				testPanel(t, s.MaxPanel, math.Max, 13, k, w)
			}
		}
		checkControl(t)
	})
}

// TestPanelStream wants the bits of other panels from panels that may be written past the
// caches, on and beside the borders of cache lines.
func TestPanelStream(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, w := range panelWidths {
			for _, rows := range []int{0, 1, 7, 12, 25} {
				for _, gap := range []int{0, 1, 8, 16, 48} {
					for _, shift := range []int{0, 1, 4, 8} {
						a, b := newMatrix(rows, 5, 0, uniform(rng)), newMatrix(5, w, 0, uniform(rng))
						c := make([]float32, rows*(w+gap)+64)
						for len(c) > 0 && uintptr(unsafe.Pointer(&c[0]))%64 != 0 {
							c = c[1:]
						}
						args := PanelArgs{Rows: rows, K: 5, W: w, A: a.ptr(), ARow: a.stride, ACol: 1, B: b.ptr(), BRow: b.stride, C: &c[shift], CRow: w + gap}
						s.Panel(&args)
						want := slices.Clone(c)
						for i := range c {
							c[i] = 3
						}
						args.Stream = true
						s.Panel(&args)
						for r := range rows {
							for j := range w {
								if i := shift + r*(w+gap) + j; c[i] != want[i] {
									t.Fatalf("w=%d rows=%d gap=%d shift=%d: c[%d][%d] = %v, want %v", w, rows, gap, shift, r, j, c[i], want[i])
								}
							}
							for j := w; j < w+gap; j++ {
								if i := shift + r*(w+gap) + j; c[i] != 3 {
									t.Fatalf("w=%d rows=%d gap=%d shift=%d: wrote between rows, at %d", w, rows, gap, shift, j)
								}
							}
						}
						args.Stream, args.Add = true, true
						s.Panel(&args)
						for r := range rows {
							if i := shift + r*(w+gap); c[i] != 2*want[i] {
								t.Fatalf("w=%d rows=%d gap=%d shift=%d: added to %v, want twice %v", w, rows, gap, shift, c[i], want[i])
							}
						}
					}
				}
			}
		}
		checkControl(t)
	})
}

func plus(x, y float64) float64 { return x + y }

func testPanel(t *testing.T, panel func(*PanelArgs), join func(x, y float64) float64, rows, k, w int) {
	t.Helper()
	rng := seeded()
	for end := range 8 {
		p := panelCase{rows: rows, k: k, w: w, add: end&1 != 0, join: join}
		if end&1 == 0 { // rows of A along its storage
			p.a = newMatrix(rows, k, end, uniform(rng))
			p.arow, p.acol = p.a.stride, 1
		} else {
			p.a = newMatrix(k, rows, end, uniform(rng))
			p.arow, p.acol = 1, p.a.stride
		}
		p.b, p.c = newMatrix(k, w, end%3, uniform(rng)), newMatrix(rows, w, end%2*5, uniform(rng))
		if end&2 != 0 {
			p.e = newMatrix(rows, w, 3, uniform(rng))
		}
		if end&4 != 0 {
			p.min = newMatrix(1, w, 0, uniform(rng))
		}
		name := fmt.Sprintf("rows=%d k=%d w=%d end=%d", rows, k, w, end)
		was := p
		was.c = p.c.clone()
		if p.min != nil {
			was.min = p.min.clone()
		}
		panel(p.args(0, rows))
		checkPanel(t, name, &p, &was)

		// The same bits in two calls.
		again := was
		again.c = was.c.clone()
		if was.min != nil {
			again.min = was.min.clone()
		}
		if rows > 0 {
			cut := rng.IntN(rows)
			panel(again.args(0, cut))
			panel(again.args(cut, rows-cut))
			again.c.same(t, name+" in two calls", p.c)
			if again.min != nil {
				again.min.same(t, name+" minimum in two calls", p.min)
			}
		}
	}
}

func checkPanel(t *testing.T, name string, p, was *panelCase) {
	t.Helper()
	for j := range p.w {
		least := math.Inf(1)
		if p.min != nil {
			least = float64(*was.min.at(0, j))
		}
		for r := range p.rows {
			var want float64
			for k := range p.k {
				want = p.join(want, float64(*at(p.a.ptr(), r*p.arow+k*p.acol))*float64(*p.b.at(k, j)))
			}
			if p.add {
				want = p.join(want, float64(*was.c.at(r, j)))
			}
			if p.e != nil {
				want *= float64(*p.e.at(r, j))
			}
			least = min(least, want)
			// One rounding for each product and sum, all positive.
			if got := float64(*p.c.at(r, j)); !near(got, want, float64(2*p.k+3)*0x1p-24*want) {
				t.Fatalf("%s: c[%d][%d] = %v, want %v", name, r, j, got, want)
			}
		}
		if p.min != nil {
			if got := float64(*p.min.at(0, j)); !near(got, least, float64(2*p.k+3)*0x1p-24*least) {
				t.Fatalf("%s: min[%d] = %v, want %v", name, j, got, least)
			}
		}
	}
	p.c.check(t, name)
	if p.min != nil {
		p.min.check(t, name)
	}
}

// TestTurn checks matrices of all sizes around those of blocks, and what lies between and behind rows.
func TestTurn(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, rows := range []int{0, 1, 7, 8, 9, 15, 16, 17, 33, 65} {
			for _, cols := range []int{1, 3, 8, 16, 17, 40, 65} {
				src, dst := newMatrix(max(rows, 1), cols, 3, uniform(rng)), newMatrix(cols, rows, 2, uniform(rng))
				s.Turn(dst.ptr(), dst.stride, src.ptr(), src.stride, rows, cols)
				name := fmt.Sprintf("%d rows of %d", rows, cols)
				for r := range rows {
					for c := range cols {
						if got, want := *dst.at(c, r), *src.at(r, c); got != want {
							t.Fatalf("%s: element %d,%d is %v, want %v", name, r, c, got, want)
						}
					}
				}
				dst.check(t, name)
			}
		}
	})
}

// TestTranspose checks the definition element by element.
func TestTranspose(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, w := range panelWidths {
			for _, n := range [][2]int{{1, 1}, {2, 3}, {3, 1}, {4, 4}, {0, 2}} {
				i, j := n[0]*w, n[1]*w
				src, dst := newMatrix(1, i*j, 0, uniform(rng)), newMatrix(1, i*j, 0, uniform(rng))
				s.Transpose(dst.ptr(), src.ptr(), i, j, w)
				for r := range i {
					for c := range j {
						want := src.row(0)[(c/w*i+r)*w+c%w]
						if got := dst.row(0)[(r/w*j+c)*w+r%w]; got != want {
							t.Fatalf("w=%d i=%d j=%d: element %d,%d is %v, want %v", w, i, j, r, c, got, want)
						}
					}
				}
				dst.check(t, fmt.Sprintf("w=%d i=%d j=%d", w, i, j))
			}
		}
	})
}
