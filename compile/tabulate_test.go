package compile

import (
	"fmt"
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// TestTabulate compares tables with the families' own logs: all codes, also those far
// below float32, parameters at both ends, and units around those that are asked for,
// which keep what they have.
func TestTabulate(t *testing.T) {
	const width, lo, hi = 12, 1, 11
	for _, f := range []circuit.Leaf{
		circuit.Binomial{Trials: 1}, circuit.Binomial{Trials: 63}, circuit.Binomial{Trials: 255}, circuit.Binomial{Trials: 65534},
		circuit.DiscretisedLogistic{Domain: 256, MinScale: 1e-3},
	} {
		t.Run(fmt.Sprintf("%T%+v", f, f), func(t *testing.T) {
			params := make([]float32, f.NumParams()*width)
			for u := range width {
				params[u] = []float32{0, 1, 0.5, 1e-30, 1e-45, 1 - 0x1p-24, 0x1p-24, 0.1, 0.9, 0.3, 1e-3, 7}[u]
				if f.NumParams() == 2 {
					params[u] *= 255
					params[width+u] = []float32{1, 0.1, 1e-3, 20, 300, 0.1, 1, 2, 3, 5, 1e-3, 7}[u]
				}
			}
			table, exps := make([]float32, f.Codes()*width), make([]float32, f.Codes()*width)
			for i := range table {
				table[i], exps[i] = -1, -1
			}
			layers.Tabulate(f, params, width, lo, hi, table, exps)
			p := make([]float64, f.NumParams())
			for u := range width {
				for k := range p {
					p[k] = float64(params[k*width+u])
				}
				for c := range f.Codes() {
					m, e := float64(table[c*width+u]), float64(exps[c*width+u])
					if u < lo || u >= hi {
						if m != -1 || e != -1 {
							t.Fatalf("unit %d, which was not asked for, has %v·2^%v", u, m, e)
						}
						continue
					}
					want := f.LogProb(p, float64(c))
					got := math.Log(m) + e*math.Ln2
					// A mantissa is rounded to float32; the family's own log is a sum of
					// terms of up to 10^6.
					if !(got == want || math.Abs(got-want) <= 1e-7+1e-9*float64(f.Codes()) || want < -1e8 && m == 0) {
						t.Fatalf("parameters %v, code %d: log-probability %v, want %v", p, c, got, want)
					}
				}
			}
		})
	}
}

// TestTabulateFar compares tables with the families' own logs where an exponent is below -2^24, and
// so need not be a float32: units side by side there differ by what a rounded exponent would lose.
func TestTabulateFar(t *testing.T) {
	for _, x := range []struct {
		leaf   circuit.Leaf
		params []float32 // of one unit
	}{
		{circuit.DiscretisedLogistic{Domain: 30000}, []float32{0.001, 0.0005}},
		{circuit.Binomial{Trials: 1 << 20}, []float32{1e-30}},
	} {
		n := x.leaf.Codes()
		table, exps, p := make([]float32, n), make([]float32, n), make([]float64, len(x.params))
		for k := range p {
			p[k] = float64(x.params[k])
		}
		layers.Tabulate(x.leaf, x.params, 1, 0, 1, table, exps)
		far := 0
		for c := range n {
			m, e := float64(table[c]), float64(exps[c])
			want := x.leaf.LogProb(p, float64(c))
			if got := math.Log(m) + e*math.Ln2; !(math.Abs(got-want) <= 1e-5) || e != math.Trunc(e) {
				t.Fatalf("%T, code %d: %v·2^%v is %v, want %v", x.leaf, c, m, e, got, want)
			}
			if e < -1<<24 && (m < 1 || m > 2) {
				far++
			}
		}
		if far < n/8 {
			t.Errorf("%T: %d of %d codes have an exponent that is not a float32; the test wants many", x.leaf, far, n)
		}
	}
}
