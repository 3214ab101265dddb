package run

import (
	"iter"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// Evaluation is what the rows of a model come to. Numbers that are infinite are
// null in JSON.
type Evaluation struct {
	Rows       int      `json:"rows"`
	Variables  int      `json:"variables"`
	Impossible int      `json:"impossible"` // rows of probability 0
	LL         *float64 `json:"ll"`         // mean log-likelihood of a row, in nats
	// Bits per dimension and perplexity, of rows that have them; see Measures.
	BPD        *Measure `json:"bpd,omitempty"`
	Perplexity *Measure `json:"perplexity,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
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
		LL: Finite(all.Mean()), Warnings: Warnings("", all, s),
	}
	e.BPD, e.Perplexity = Measures(all.Mean(), s)
	return e
}
