package em_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
)

// TestTinyPseudocount trains a column without a cell, whose leaves have no counts, with pseudocounts that float32 does not have.
func TestTinyPseudocount(t *testing.T) {
	g := structured(t)["hclt"]
	rows := clustered(g, 7, 50, 0.1)
	for _, row := range rows {
		row[0] = math.NaN()
	}
	for _, rule := range []em.Rule{em.MiniBatch, em.FullBatch, em.Anemone} {
		for _, pseudocount := range []float64{1e-39, 1e-45, 1e-300} {
			_, params := newModel(t, g, rows).run(t, cpu.Options{}, em.Options{Phases: []em.Phase{{
				Rule: rule, Epochs: 3, BatchRows: 16, StepSize: em.Schedule{{Shape: em.Constant, Length: 1, From: 0.5, To: 0.5}}, Pseudocount: pseudocount,
			}}})
			for i, x := range params {
				if math.IsNaN(float64(x)) {
					t.Fatalf("%s, pseudocount %v: parameter %d is NaN", rule, pseudocount, i)
				}
			}
		}
	}
}
