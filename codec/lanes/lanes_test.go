package lanes

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fenced returns n numbers between NaNs, which a read past either end meets and a write
// past it removes.
func fenced(rng *rand.Rand, n int) (all, inner []Lane) {
	all = make([]Lane, n+2)
	for i := range all {
		for r := range all[i] {
			if all[i][r] = rng.Float64(); i == 0 || i == n+1 {
				all[i][r] = math.NaN()
			}
		}
	}
	return all, all[1 : n+1]
}

// TestKernels compares the assembly with the loops in Go to the bit, for shapes of up to
// 19 rows and columns within wider matrices.
func TestKernels(t *testing.T) {
	if native.up == nil {
		t.Log("no assembly for this machine: only the loops in Go are checked")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for rows := range 20 {
		for cols := range 20 {
			stride := cols + rng.IntN(3)
			w := make([]float32, max(0, end(rows, stride, cols)))
			for i := range w {
				w[i] = rng.Float32()
			}
			high, v := fenced(rng, rows)
			wide, d := fenced(rng, cols)
			for _, tc := range []struct {
				name      string
				all       []Lane
				out, in   []Lane
				run       func(four kernel, out []Lane, w []float32, stride int, in []Lane)
				four      kernel
				outStride int // of the weights of one lane of out
				inStride  int
			}{
				{"Up", high, v, d, up, native.up, stride, 1},
				{"Down", wide, d, v, down, native.down, 1, stride},
			} {
				want := make([]Lane, len(tc.out))
				for o := range want {
					want[o] = tc.out[o]
					for i := range tc.in {
						for r := range want[o] {
							want[o][r] += float64(float64(w[o*tc.outStride+i*tc.inStride]) * tc.in[i][r])
						}
					}
				}
				for _, four := range []kernel{nil, tc.four} {
					before := append([]Lane(nil), tc.all...)
					tc.run(four, tc.out, w, stride, tc.in)
					for o := range want {
						if tc.out[o] != want[o] {
							t.Fatalf("%s of %d x %d: lane %d is %v, want %v", tc.name, rows, cols, o, tc.out[o], want[o])
						}
					}
					if last := tc.all[len(tc.all)-1]; !math.IsNaN(tc.all[0][0]) || !math.IsNaN(last[0]) {
						t.Fatalf("%s of %d x %d wrote outside", tc.name, rows, cols)
					}
					copy(tc.all, before)
				}
			}
		}
	}
}

// TestDot compares the assembly with the loop in Go to the bit, and this with the sums
// that the doc states.
func TestDot(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for n := range 70 {
		x, y, ones := make([]float64, n+1)[:n], make([]float64, n+1)[:n], make([]float64, n)
		var sums Lane
		for i := range n {
			x[i], y[i], ones[i] = rng.Float64(), rng.Float64(), 1
			sums[i%Rows] += float64(x[i] * y[i])
		}
		x[:n+1][n], y[:n+1][n] = math.NaN(), math.NaN()
		want := join(&sums)
		for _, kernel := range []dotKernel{nil, native.dot} {
			if got := dot(kernel, x, y); got != want {
				t.Errorf("%d numbers: %v, want %v", n, got, want)
			}
		}
		if got, want := Total(x), Dot(x, ones); got != want {
			t.Errorf("%d numbers have the total %v, want %v", n, got, want)
		}
	}
}

// TestTimes compares products and largest numbers of the assembly with those of the loops in Go
// to the bit, with zeros and subnormal numbers among them.
func TestTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 40 {
		_, x := fenced(rng, n)
		_, y := fenced(rng, n)
		for u := range n {
			x[u][u%Rows], y[u][(u+3)%Rows] = 0, 5e-324
		}
		var top, greatest Lane
		want := make([]Lane, n)
		for u := range want {
			for r := range want[u] {
				want[u][r] = x[u][r] * y[u][r]
				top[r], greatest[r] = max(top[r], want[u][r]), max(greatest[r], x[u][r])
			}
		}
		for _, kernel := range []timesKernel{nil, native.times} {
			all, out := fenced(rng, n)
			if got := times(kernel, out, x, y); got != top {
				t.Errorf("%d lanes: largest products %v, want %v", n, got, top)
			}
			same := append([]Lane(nil), x...)
			times(kernel, same, same, y)
			for u := range want {
				if out[u] != want[u] || same[u] != want[u] {
					t.Fatalf("%d lanes: products %v and, in place, %v; want %v", n, out[u], same[u], want[u])
				}
			}
			if !math.IsNaN(all[0][0]) || !math.IsNaN(all[n+1][0]) {
				t.Fatalf("%d lanes: wrote outside", n)
			}
		}
		for _, kernel := range []topsKernel{nil, native.tops} {
			if got := tops(kernel, x); got != greatest {
				t.Errorf("%d lanes: largest numbers %v, want %v", n, got, greatest)
			}
		}
	}
}

// TestSplit compares the rows of the assembly and of the loop in Go with lanes, and looks at what
// lies between the rows.
func TestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 40 {
		_, x := fenced(rng, n)
		_, factors := fenced(rng, 1)
		stride := n + rng.IntN(3)
		for _, kernel := range []splitKernel{nil, native.split} {
			out := make([]float64, Rows*stride+3)
			for i := range out {
				out[i] = -1
			}
			split(kernel, out, stride, x, &factors[0])
			for i, got := range out {
				want := -1.0
				if r, u := i/max(1, stride), i%max(1, stride); r < Rows && u < n {
					want = x[u][r] * factors[0][r]
				}
				if got != want {
					t.Fatalf("%d lanes, rows %d apart: number %d is %v, want %v", n, stride, i, got, want)
				}
			}
		}
	}
	Fetch(nil)
	Fetch(make([]float64, 1))
}
