package circuit

// Bernoulli is a coin: a distribution over the codes 0 and 1. Its parameters
// are the probabilities of both, [1-p, p], so that kernels read it as a table.
type Bernoulli struct{ massLeaf }

// Name returns "bernoulli".
func (Bernoulli) Name() string { return "bernoulli" }

// NumParams returns 2.
func (Bernoulli) NumParams() int { return 2 }

// NumStats returns 2.
func (Bernoulli) NumStats() int { return 2 }

// Codes returns 2.
func (Bernoulli) Codes() int { return 2 }

// CheckSettings returns nil: the family has no settings.
func (Bernoulli) CheckSettings() error { return nil }

// Check wants 0 or 1; the error names what x is.
func (l Bernoulli) Check(x float64) error { return checkCode(l.Name(), x, 2) }

// CheckParams wants two probabilities that sum to 1 within 1e-3, as files of other programs
// round them.
func (l Bernoulli) CheckParams(p []float64) error { return checkMasses(l.Name(), p, 2) }
