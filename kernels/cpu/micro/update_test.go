package micro

import (
	"fmt"
	"math"
	"testing"
)

// expect returns the new weight in float64 from the float32 count f.
func expect(old, f, keep, gain, prior, floor float32) float64 {
	if old == 0 {
		return 0
	}
	return max(float64(old)*float64(keep)+float64(f)*float64(gain)+float64(prior), float64(floor))
}

// TestUpdatePanel checks weights, zeros, the floor and the sums.
func TestUpdatePanel(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for _, w := range panelWidths {
			for rows := range 18 {
				for _, plain := range []bool{false, true} {
					name := fmt.Sprintf("w=%d rows=%d plain=%v", w, rows, plain)
					x, g := newMatrix(rows, w, 0, spread(rng, -20, -1)), newMatrix(rows, w, 0, spread(rng, -20, 6))
					row := func() *matrix { return newMatrix(1, rows, 0, uniform(rng)) }
					keep, gain, prior, sum := row(), row(), row(), row()
					was, sums := x.clone(), sum.clone()
					a := UpdateArgs{Rows: rows, W: w, T: x.ptr(), G: g.ptr(), Keep: keep.ptr(), Gain: gain.ptr(),
						Prior: prior.ptr(), Sum: sum.ptr(), Grid: 0x1p-4, Floor: 0x1p-2, Plain: plain}
					s.UpdatePanel(&a)
					for r := range rows {
						total := float64(*sums.at(0, r))
						for j, got := range x.row(r) {
							old, f := *was.at(r, j), *g.at(r, j)
							if !plain {
								f = float32(old * f)
							}
							want := expect(old, onGrid(f, a.Grid), *keep.at(0, r), *gain.at(0, r), *prior.at(0, r), a.Floor)
							total += float64(got)
							if !near(float64(got), want, 4*0x1p-24*want) || old == 0 && got != 0 || old != 0 && got < a.Floor {
								t.Fatalf("%s: t[%d][%d] = %v, want %v", name, r, j, got, want)
							}
						}
						if got := float64(*sum.at(0, r)); !near(got, total, float64(w)*0x1p-24*total) {
							t.Fatalf("%s: sum[%d] = %v, want %v", name, r, got, total)
						}
					}
					x.check(t, name)
					sum.check(t, name)
				}
			}
		}
		checkControl(t)
	})
}

// TestUpdateTable checks weights, zeros, cleared counts and sums, and that two
// calls give the same bits.
func TestUpdateTable(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		eachShape(func(name string, rows, width int) {
			x, count := newMatrix(rows, width, 5, spread(rng, -20, -1)), newMatrix(rows, width, 5, spread(rng, -20, 6))
			row := func() *matrix { return newMatrix(1, width, 0, uniform(rng)) }
			keep, gain, prior, sum := row(), row(), row(), row()
			was, f, sums := x.clone(), count.clone(), sum.clone()
			call := func(x, count, sum *matrix, from, n int) {
				s.UpdateTable(&TableArgs{Rows: n, Width: width, T: at(x.ptr(), from*x.stride), Count: at(count.ptr(), from*x.stride), Row: x.stride,
					Keep: keep.ptr(), Gain: gain.ptr(), Prior: prior.ptr(), Sum: sum.ptr(), Grid: 0x1p-4, Floor: 0x1p-2})
			}
			call(x, count, sum, 0, rows)
			for j := range width {
				total := float64(*sums.at(0, j))
				for r := range rows {
					old, got := *was.at(r, j), *x.at(r, j)
					want := expect(old, onGrid(*f.at(r, j), 0x1p-4), *keep.at(0, j), *gain.at(0, j), *prior.at(0, j), 0x1p-2)
					total += float64(got)
					if !near(float64(got), want, 4*0x1p-24*want) || old == 0 && got != 0 || *count.at(r, j) != 0 {
						t.Fatalf("%s: t[%d][%d] = %v, want %v; count %v", name, r, j, got, want, *count.at(r, j))
					}
				}
				if got := float64(*sum.at(0, j)); !near(got, total, float64(rows+1)*0x1p-24*total) {
					t.Fatalf("%s: sum[%d] = %v, want %v", name, j, got, total)
				}
			}
			x.check(t, name)
			count.check(t, name)
			sum.check(t, name)
			if rows > 1 {
				call(was, f, sums, 0, 1)
				call(was, f, sums, 1, rows-1)
				was.same(t, name+" in two calls", x)
				sums.same(t, name+" sums in two calls", sum)
			}
		})
		checkControl(t)
	})
}

// TestQuantize checks that integers on the grid give back the very counts that
// an update uses: with keep 0, gain 1 and no prior the new weight is the count.
func TestQuantize(t *testing.T) {
	const unit = 0x1p-40
	every(t, func(t *testing.T, s *Set) {
		rng := seeded()
		for n := range 70 {
			for _, ones := range []bool{false, true} {
				name := fmt.Sprintf("n=%d ones=%v", n, ones)
				hi := 3
				if n > 20 {
					hi = 21 // quotients up to 2^62
				}
				x, y := newMatrix(1, n, 0, spread(rng, -50, hi)), newMatrix(1, n, 0, spread(rng, -12, -1))
				acc := make([]int64, n+2)
				acc[0], acc[n+1] = 5, 6
				var yp *float32
				if !ones {
					yp = y.ptr()
				}
				s.Quantize(&acc[1], x.ptr(), yp, n, unit)
				if acc[0] != 5 || acc[n+1] != 6 {
					t.Fatalf("%s: neighbours were written", name)
				}
				for i := range n {
					w, f := float32(1), *x.at(0, i)
					if !ones {
						w = *y.at(0, i)
						f *= w
					}
					if w == 0 {
						continue // an update leaves weights of 0
					}
					var keep, prior, sum float32
					gain := float32(1)
					s.UpdatePanel(&UpdateArgs{Rows: 1, W: 1, T: &w, G: x.at(0, i), Keep: &keep, Gain: &gain, Prior: &prior,
						Sum: &sum, Grid: unit * 0x1p23})
					back := float32(acc[1+i]) * unit
					if want := onGrid(f, unit*0x1p23); back != want || w != want {
						t.Fatalf("%s: %v becomes %d, that is %v, and %v in the update; want %v", name, f, acc[1+i], back, w, want)
					}
				}
				before := acc[n]
				s.Quantize(&acc[1], x.ptr(), yp, n, unit)
				if n > 0 && acc[n] != 2*before {
					t.Fatalf("%s: Quantize does not add: %d, then %d", name, before, acc[n])
				}
			}
		}
	})
}

// TestOnGrid checks the definition of rounding against float64.
func TestOnGrid(t *testing.T) {
	rng := seeded()
	for range 1000 {
		f := float32(math.Ldexp(rng.Float64(), -rng.IntN(40)))
		want := float32(math.RoundToEven(float64(f)*0x1p40) * 0x1p-40)
		if got := onGrid(f, 0x1p-17); got != want {
			t.Fatalf("onGrid(%v) = %v, want %v", f, got, want)
		}
	}
}
