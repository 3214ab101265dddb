package engine_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// TestSoftTiny scales the likelihoods of two cells to numbers below the least normal float64: log-likelihoods and those of completions are less by
// the logarithm of that.
func TestSoftTiny(t *testing.T) {
	const scale, logScale = 1e-310, -713.8013788281542
	g := reference.Random(rand.New(rand.NewPCG(3, 5)), reference.RandomOptions{Discrete: true, MaxNodes: 20, Vars: 3, MaxCodes: 4})
	m := buildSoft(t, g, 8, engine.Options{Rows: 4, Queries: true})
	s := reference.Schema(g)
	var lls, best [2]float64
	for i, factor := range []float64{1, scale} {
		soft := make([]*dataset.Evidence, 3)
		for v := range 2 {
			likelihoods := make([]float64, s.Columns[v].Categories)
			for code := range likelihoods {
				likelihoods[code] = float64(1+code+v) * factor
			}
			var err error
			if soft[v], err = s.Columns[v].LikelihoodEvidence(likelihoods); err != nil {
				t.Fatal(err)
			}
		}
		rows, evidence := [][]float64{{missing, missing, 0}}, [][]*dataset.Evidence{soft}
		if m.checkSoft(t, rows, evidence) != 1 {
			t.Fatal("the row is impossible")
		}
		if err := m.eng.LogLikelihood(t.Context(), m.softBatch(rows, evidence), lls[i:i+1]); err != nil {
			t.Fatal(err)
		}
		if err := m.eng.MPE(t.Context(), m.softBatch(rows, evidence), engine.MPEOptions{Candidates: 8, Sweeps: 10}, best[i:i+1], make([]float64, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if got := lls[1] - lls[0]; !near(got, 2*logScale, 1e-4) {
		t.Errorf("the log-likelihood is less by %v, want %v", -got, -2*logScale)
	}
	if got := best[1] - best[0]; !near(got, 2*logScale, 1e-4) {
		t.Errorf("the completion's is less by %v, want %v", -got, -2*logScale)
	}
}
