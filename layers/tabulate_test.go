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
