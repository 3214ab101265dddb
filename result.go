package pce

import "github.com/pce-engine/pce/run"

// Result is what training came to. Log-likelihoods are means over rows in nats
// under the parameters that were saved, NaN where no such rows were given.
type Result = run.Result

// BitsPerDimension returns -ll in bits, divided by the number of variables. ll
// is the mean natural-log likelihood of a row.
func BitsPerDimension(ll float64, variables int) float64 {
	return run.BitsPerDimension(ll, variables)
}

// Perplexity returns e^(-ll/variables): for rows of tokens, that of a token.
func Perplexity(ll float64, variables int) float64 { return run.Perplexity(ll, variables) }
