package tensor

// Rule says how parameters move: θ ← (1-Step)·θ + Step·θ_new, where θ_new comes
// from the flows plus Pseudocount spread over the weights of a unit. If Anemone is
// set, it is that rule instead.
type Rule struct {
	Step        float64
	Pseudocount float64
	Anemone     *Anemone
}

// exactSteps are those below which Rounded changes a step.
const exactSteps = 0x1p-8

// Rounded returns the rule with a small step rounded such that float32 holds 1-Step, as devices take it: else a unit loses
// another share of its mass than it gets, step by step, and that is the more the smaller steps are.
func (r Rule) Rounded() Rule {
	if r.Step < exactSteps {
		r.Step = 1 - float64(float32(1-r.Step))
	}
	return r
}

// Anemone is the rule of that name. With averages A ← Momentum·A +
// (1-Momentum)·flows, and F = A divided by their weight, the parameters of a
// unit that is visited V times in a row without evidence become
//
//	G = (Step/Rows)·F + (1-Step)·V·θ
//	θ ← (G + Pseudocount/n) / (ΣG + Pseudocount)
//
// with n the number of its parameters. Impossible rows have no flows, and count
// neither as rows nor in the weight.
type Anemone struct {
	Momentum float64 // share of the averages that stays, below 1
	// Weight is the sum of the shares that flows have in the averages so far; 0
	// starts them afresh.
	Weight     float64
	Rows       int // of the flows
	Impossible int // of Rows
}

// Next returns the weight of the averages after the update: as if each step had Rows rows, of which the flows are of those that are
// possible.
func (a *Anemone) Next() float64 {
	share := 1.0
	if a.Impossible > 0 {
		share = float64(a.Rows-a.Impossible) / float64(a.Rows)
	}
	return a.Momentum*a.Weight + (1-a.Momentum)*share
}

// Scale returns what the averages after an update by step are multiplied by, 0 where no row so far was possible.
func (a *Anemone) Scale(step float64) float64 {
	next := a.Next()
	if !(next > 0) {
		return 0
	}
	return step / (float64(a.Rows) * next)
}
