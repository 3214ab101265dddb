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
