package layers

import "math/rand/v2"

// MaxSoft is the most rows of evidence of a table.
const MaxSoft = 1 << 16

// SoftGroups returns, by column, the first of the columns whose rows of evidence it shares,
// because inputs of theirs share a table: itself where it shares none.
func (p *Program) SoftGroups() []int32 {
	group := make([]int32, len(p.Columns))
	for c := range group {
		group[c] = int32(c)
	}
	first := func(c int32) int32 {
		for group[c] != c {
			c = group[c]
		}
		return c
	}
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.Codes > 0 {
			a, b := first(in.Column), first(p.Inputs[in.Owner].Column)
			group[max(a, b)] = min(a, b)
		}
	}
	for c := range group {
		group[c] = first(int32(c))
	}
	return group
}

// Watched returns the inputs whose units the host may be told: those without a table, then
// those of columns with rows of evidence.
func (p *Program) Watched() []int32 {
	inputs := p.Functions()
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.Codes > 0 && p.Columns[in.Column].Soft > 0 {
			inputs = append(inputs, int32(i))
		}
	}
	return inputs
}

// Beside is the family of the inputs of columns that are Column.Beside. Its one code is not
// used.
type Beside struct{}

// Name returns "evidence".
func (Beside) Name() string { return "evidence" }

// NumParams returns 1.
func (Beside) NumParams() int { return 1 }

// NumStats returns 1.
func (Beside) NumStats() int { return 1 }

// Codes returns 1.
func (Beside) Codes() int { return 1 }

// ParamsAreTable returns true: there is nothing but the table.
func (Beside) ParamsAreTable() bool { return true }

// Check returns nil.
func (Beside) Check(float64) error { return nil }

// LogProb returns 0.
func (Beside) LogProb([]float64, float64) float64 { return 0 }

// Mode returns 0.
func (Beside) Mode([]float64) float64 { return 0 }

// Moments returns zeros.
func (Beside) Moments([]float64) (mean, variance float64) { return 0, 0 }

// Stats writes 1.
func (Beside) Stats(_ float64, t []float64) { t[0] = 1 }

// MStep leaves the parameter as it is.
func (Beside) MStep(_, _ []float64, _, _, _ float64) {}

// Sample returns 0.
func (Beside) Sample([]float64, *rand.Rand) float64 { return 0 }

// Constants returns none.
func (Beside) Constants() []float64 { return nil }
