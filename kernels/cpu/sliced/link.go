package sliced

import "github.com/pce-engine/pce/internal/elementary"

const (
	sigmoidStep  = 8   // scores at a time
	sigmoidLimit = 700 // the largest magnitude of a score that is computed so
)

// Sigmoid writes 1/(1+exp(-alpha*score)) for all scores, to the bit as elementary.Exp has it. scores and out have one length and may be the same memory.
func (l *Loops) Sigmoid(scores, out []float64, alpha float64) {
	for l.sigmoid != nil && len(scores) >= sigmoidStep {
		n := l.sigmoid(&scores[0], &out[0], len(scores)/sigmoidStep*sigmoidStep, -alpha)
		if scores, out = scores[n:], out[n:]; len(scores) >= sigmoidStep {
			sigmoidGeneric(scores[:sigmoidStep], out, alpha)
			scores, out = scores[sigmoidStep:], out[sigmoidStep:]
		}
	}
	sigmoidGeneric(scores, out, alpha)
}

func sigmoidGeneric(scores, out []float64, alpha float64) {
	for i, x := range scores {
		out[i] = 1 / (1 + elementary.Exp(-(alpha * x)))
	}
}
