package engine_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestLogNormalAmongGaussians wants numbers that are not positive to have the density of the Gaussian alone, whichever leaf
// comes first: as observed cells, in quantiles, completions and training.
func TestLogNormalAmongGaussians(t *testing.T) {
	normal, logs := part{circuit.Gaussian{}, []float64{-3, 1}}, part{circuit.LogNormal{}, []float64{1, 0.5}}
	bit := part{circuit.Bernoulli{}, []float64{0.5, 0.5}}
	for _, parts := range [][][]part{{{normal, bit}, {logs, bit}}, {{logs, bit}, {normal, bit}}} {
		first := parts[0][0].leaf.Name()
		g, params := mixture([]float64{0.5, 0.5}, parts)
		m := buildWith(t, g, params, engine.Options{Rows: 64, Queries: true, Train: true})
		rows := [][]float64{{-3.5, 0}, {0, 1}, {2, missing}, {missing, missing}}
		ll := m.logLikelihood(t, m.batch(rows))
		m.compare(t, rows, ll)
		if want := math.Log(0.25) + normal.leaf.LogProb(normal.params, -3.5); !near(ll[0], want, 1e-5) {
			t.Errorf("%s first: log-likelihood %v of -3.5, want %v", first, ll[0], want)
		}
		full, _, _ := m.complete(t, rows, engine.MPEOptions{Candidates: 4, Beam: 2, Sweeps: 5})
		if x := full[3][0]; !near(x, -3, 0.05) {
			t.Errorf("%s first: completed with %v, want -3", first, x)
		}
		median := make([]float64, 1) // of the Gaussian, which nearly all of is below the other
		if err := m.eng.Quantiles(t.Context(), m.batch(rows[3:]), []int{0}, []float64{0.25}, median); err != nil || !near(median[0], -3, 1e-5) {
			t.Errorf("%s first: quantile %v, want -3: %v", first, median, err)
		}
		// A step leaves the log-normal the number 2 alone, and its deviation at the floor.
		for _, err := range []error{
			m.eng.Step(t.Context(), m.batch(rows), 0, len(rows), tensor.Rule{Step: 1}, ll), m.eng.LogLikelihood(t.Context(), m.batch(rows[2:3]), ll[:1]),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if want := math.Log(0.5 / (2 * 0.01 * math.Sqrt(2*math.Pi))); !near(ll[0], want, 0.5) {
			t.Errorf("%s first: log-likelihood %v of 2 after a step of training, want some %v", first, ll[0], want)
		}
	}
}
