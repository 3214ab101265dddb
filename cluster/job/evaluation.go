package job

import (
	"encoding/json"
	"io"
	"iter"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// Evaluation is what the rows of a model come to. Numbers that are infinite are
// null in JSON.
type Evaluation struct {
	Rows       int      `json:"rows"`
	Variables  int      `json:"variables"`
	Impossible int      `json:"impossible"` // rows of probability 0
	LL         *float64 `json:"ll"`         // mean log-likelihood of a row, in nats
	// Bits per dimension and perplexity, of rows that have them; see run.Measures.
	BPD        *run.Measure `json:"bpd,omitempty"`
	Perplexity *run.Measure `json:"perplexity,omitempty"`
	Warnings   []string     `json:"warnings,omitempty"`
}

// Evaluate adds log-likelihoods up as training does, so that equal rows give equal
// means.
func Evaluate(ll iter.Seq[float64], s *dataset.Schema) Evaluation {
	var tally em.Tally
	for x := range ll {
		tally.Add(x)
	}
	all := tally.Evaluation()
	e := Evaluation{
		Rows: all.Rows, Variables: len(s.Columns), Impossible: all.Impossible,
		LL: finite(all.Mean()), Warnings: run.Warnings("", all, s),
	}
	e.BPD, e.Perplexity = run.Measures(all.Mean(), s)
	return e
}

// finite returns x, nil where JSON has no number for it.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// writeJSON replaces a file by one line of JSON.
func writeJSON(path string, v any) error {
	return atomicfile.Write(path, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
}
