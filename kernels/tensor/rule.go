package tensor

// Rule says how parameters move: θ ← (1-Step)·θ + Step·θ_new, where θ_new comes
// from the flows plus Pseudocount spread over the weights of a unit. If Anemone is
// set, it is that rule instead.
type Rule struct {
	Step        float64
	Pseudocount float64
	Anemone     *Anemone
}

// Anemone is the rule of that name. With averages A ← Momentum·A +
// (1-Momentum)·flows, and F = A divided by their weight, the parameters of a
// unit that is visited V times in a row without evidence become
//
//	G = (Step/Rows)·F + (1-Step)·V·θ
//	θ ← (G + Pseudocount/n) / (ΣG + Pseudocount)
//
// with n the number of its parameters.
type Anemone struct {
	Momentum float64 // share of the averages that stays, below 1
	// Weight is the sum of the shares that flows have in the averages so far; 0
	// starts them afresh.
	Weight float64
	Rows   int // of the flows
}

// Next returns the weight of the averages after the update.
func (a *Anemone) Next() float64 { return a.Momentum*a.Weight + (1 - a.Momentum) }
