package layers_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// TestTabulateChain tabulates some units of a row, with parameters at both ends, and leaves the others alone.
func TestTabulateChain(t *testing.T) {
	const codes, width, lo, hi = 6, 6, 1, 5
	f := circuit.Binomial{Trials: codes - 1}
	params := []float32{0.5, 0.25, 1, 0, 1, 0.5}
	table, exps := make([]float32, codes*width), make([]float32, codes*width)
	for i := range table {
		table[i], exps[i] = -3, -4
	}
	layers.Tabulate(f, params, width, lo, hi, table, exps)
	for c := range codes {
		for u, p := range params {
			m, e := float64(table[c*width+u]), float64(exps[c*width+u])
			if u < lo || u >= hi {
				if m != -3 || e != -4 {
					t.Errorf("unit %d at %d was overwritten with %v and %v", u, c, m, e)
				}
				continue
			}
			want := math.Exp(f.LogProb([]float64{float64(p)}, float64(c)))
			if got := m * math.Exp2(e); !(math.Abs(got-want) <= 1e-6*want) {
				t.Errorf("p = %v: code %d has %v, want %v", p, c, got, want)
			}
		}
	}
}

// TestTabulateTail: the probabilities of the last codes of many trials that nearly always fail are 0 in a table, whose exponents are at least -2^28.
func TestTabulateTail(t *testing.T) {
	f := circuit.Binomial{Trials: 3_000_000}
	table, exps := make([]float32, f.Codes()), make([]float32, f.Codes())
	layers.Tabulate(f, []float32{0x1p-126}, 1, 0, 1, table, exps)
	for c := range table {
		if e := exps[c]; !(e >= -1<<28) || (table[c] == 0) != (f.LogProb([]float64{0x1p-126}, float64(c)) < -(1<<28)*math.Ln2) {
			t.Fatalf("code %d has %v·2^%v", c, table[c], e)
		}
	}
}

// TestTabulateFar tabulates many trials that nearly always succeed: code 0 has a probability below 2^-2^28, which is 0 in tables, and the
// last ones are likely all the same.
func TestTabulateFar(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: tables of 12 million codes")
	}
	const width, lo, hi = 4, 1, 3
	f := circuit.Binomial{Trials: 12_000_000}
	params := []float32{0.5, 1 - 0x1p-24, 1 - 0x1p-23, 0.5}
	table, exps := make([]float32, f.Codes()*width), make([]float32, f.Codes()*width)
	layers.Tabulate(f, params, width, lo, hi, table, exps)
	for u := lo; u < hi; u++ {
		p, mass := []float64{float64(params[u])}, 0.0
		for c := range f.Codes() {
			m, e := float64(table[c*width+u]), float64(exps[c*width+u])
			mass += math.Ldexp(m, int(max(e, -1100)))
			if back := f.Trials - c; back > 50 && c%1_000_000 != 0 {
				continue
			}
			want := f.LogProb(p, float64(c))
			if want < -(1<<28)*math.Ln2 {
				if m != 0 || e != 0 {
					t.Errorf("p = %v: code %d has %v·2^%v", p, c, m, e)
				}
				continue
			}
			if got := math.Log(m) + e*math.Ln2; !(math.Abs(got-want) <= 1e-6+1e-12*math.Abs(want)) {
				t.Errorf("p = %v: code %d has the log %v, want %v", p, c, got, want)
			}
		}
		if !(math.Abs(mass-1) <= 1e-6) {
			t.Errorf("p = %v: all codes have the mass %v", p, mass)
		}
	}
}

// TestSplitLog wants m from 1 to 2 and whole exponents, with the log that is given, near ones, far ones and none.
func TestSplitLog(t *testing.T) {
	for _, log := range []float64{0, -1e-17, -0.3, -math.Ln2, -700.5, -1e4, -1e7, 0.3, 5, 709.7} {
		m, e := layers.SplitLog(log)
		if !(m >= 1 && m <= 2) || e != math.Trunc(e) || !(math.Abs(math.Log(m)+e*math.Ln2-log) <= 1e-15*max(1, -log)) {
			t.Errorf("SplitLog(%v) = %v, %v", log, m, e)
		}
	}
	m, e := layers.SplitLog(-1e8) // below -2^24, where not all exponents are a float32
	if e != float64(float32(e)) || !(math.Abs(math.Log(m)+e*math.Ln2+1e8) <= 1e-7) {
		t.Errorf("SplitLog(-1e8) = %v, %v", m, e)
	}
	for _, log := range []float64{-2e8, math.Inf(-1), math.NaN()} {
		if m, e := layers.SplitLog(log); m != 0 || e != 0 {
			t.Errorf("SplitLog(%v) = %v, %v, want zeros", log, m, e)
		}
	}
}
