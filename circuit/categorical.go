package circuit

// Categorical is any distribution over the codes 0..Categories-1. Its
// parameters are the probabilities of the codes.
type Categorical struct {
	massLeaf
	Categories int
}

// Name returns "categorical".
func (Categorical) Name() string { return "categorical" }

// NumParams returns the number of categories.
func (l Categorical) NumParams() int { return l.Categories }

// NumStats returns the number of categories.
func (l Categorical) NumStats() int { return l.Categories }

// Codes returns the number of categories.
func (l Categorical) Codes() int { return l.Categories }

// CheckSettings wants 1 to MaxCodes categories.
func (l Categorical) CheckSettings() error {
	return checkCodes(l.Name(), "categories", l.Categories, 1)
}

// Check wants a code, a whole number from 0 to Categories-1.
func (l Categorical) Check(x float64) error { return checkCode(l.Name(), x, l.Categories) }

// CheckParams wants probabilities that sum to 1 within 1e-3, as files of other programs round
// them.
func (l Categorical) CheckParams(p []float64) error { return checkMasses(l.Name(), p, l.Categories) }
