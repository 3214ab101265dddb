package kerneltest

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// testSoft asks about rows of which ranges, sets and likelihoods are known: codes that select
// rows of evidence in the tables.
func testSoft(t *testing.T, open Open, depth Depth) {
	t.Run("random", func(t *testing.T) {
		cases(t, depth.count(24), func(t *testing.T, c *randomCase) { checkSoft(t, open, c, c.rows[:8]) })
	})
	t.Run("structures", func(t *testing.T) {
		eachQueried(t, depth, func(t *testing.T, c *randomCase, rows [][]float64) { checkSoft(t, open, c, rows[:min(3, len(rows))]) })
	})
}

// mostChecked is the most codes of a column whose distribution is compared with the reference.
const mostChecked = 8

// checkSoft compares likelihoods and the distributions of codes with those of the reference, and
// wants completions that the evidence allows.
func checkSoft(t *testing.T, open Open, c *randomCase, rows [][]float64) {
	t.Helper()
	const tol = 1e-5
	ctx := context.Background()
	dev := open(t)
	defer dev.Close()
	co := c.options()
	co.Soft = 3 // so that launches are cut
	rng := rand.New(rand.NewPCG(81, uint64(len(c.graph.Nodes))))
	rows = gaps(rng, rows, 0.2)
	soft := reference.RandomSoft(c.graph, rng, rows, 0.6)
	schema := reference.Schema(c.graph)
	m := Build(t, dev, c.graph, c.params, co, engine.Options{Rows: 5, Queries: true, Schema: schema})
	defer m.Engine.Close()
	ev := c.evaluator(t)
	batch := func() *dataset.Batch { return reference.SoftBatch(schema, rows, soft) }

	ll := make([]float64, len(rows))
	must(t, m.Engine.LogLikelihood(ctx, batch(), ll))
	for r, row := range rows {
		want, err := ev.SoftLogLikelihood(row, soft[r])
		must(t, err)
		if want > leastFinite && !(math.Abs(ll[r]-want) <= tol*max(1, math.Abs(want))) && ll[r] != want {
			t.Errorf("row %d: log-likelihood %v, want %v", r, ll[r], want)
		}
	}

	var variables []int
	width := 0
	for v, codes := range circuit.Domains(c.graph) {
		if codes > 0 {
			variables = append(variables, v)
			width += codes
		}
	}
	p := make([]float64, len(rows)*width)
	must(t, m.Engine.Conditional(ctx, batch(), variables, p))
	for r, row := range rows {
		for _, v := range variables {
			codes := circuit.Domains(c.graph)[v]
			got := p[:codes]
			p = p[codes:]
			if !math.IsNaN(row[v]) || soft[r][v] == nil || ll[r] < leastFinite || codes > mostChecked {
				continue
			}
			want := make([]float64, codes)
			cut, others := append([]float64{}, row...), append([]*dataset.Evidence{}, soft[r]...)
			others[v] = nil
			for code := range want {
				cut[v] = float64(code)
				l, err := ev.SoftLogLikelihood(cut, others)
				must(t, err)
				want[code] = soft[r][v].Likelihood(code) * math.Exp(l-ll[r])
			}
			for code := range want {
				if !(math.Abs(got[code]-want[code]) <= 2*tol) {
					t.Errorf("row %d, variable %d: probability of %d is %v, want %v", r, v, code, got[code], want[code])
				}
			}
		}
	}

	drawn, best := batch(), batch()
	must(t, m.Engine.Sample(ctx, drawn, 3, 0))
	found, bound := make([]float64, len(rows)), make([]float64, len(rows))
	must(t, m.Engine.MPE(ctx, best, engine.MPEOptions{}, found, bound))
	for name, b := range map[string]*dataset.Batch{"drawn": drawn, "best": best} {
		for r, row := range reference.Rows(b) {
			if ll[r] < leastFinite {
				continue
			}
			likelihood := 0.0
			for v, x := range row {
				e := soft[r][v]
				switch {
				case e == nil:
				case math.IsNaN(x), e.Runs == nil && !(x >= e.Low && x <= e.High), e.Runs != nil && e.Likelihood(int(x)) == 0:
					t.Errorf("row %d, variable %d: %v was %s, evidence %+v", r, v, x, name, *e)
				case e.Runs != nil:
					likelihood += math.Log(e.Likelihood(int(x)))
				}
			}
			l, err := ev.LogLikelihood(row)
			must(t, err)
			if l += likelihood; math.IsInf(l, -1) {
				t.Errorf("row %d: what was %s is impossible: %v", r, name, row)
			} else if name == "best" && l > leastFinite && !(math.Abs(found[r]-l) <= tol*max(1, math.Abs(l)) && found[r] <= bound[r]+tol*max(1, math.Abs(l))) {
				t.Errorf("row %d: the completion has %v, reported %v with bound %v", r, l, found[r], bound[r])
			}
		}
	}
}
