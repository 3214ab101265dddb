package pce

import "math"

// BitsPerDimension returns -ll in bits, divided by the number of variables. ll
// is the mean natural-log likelihood of a row.
func BitsPerDimension(ll float64, variables int) float64 {
	return -ll / (math.Ln2 * float64(variables))
}

// Perplexity returns e^(-ll/variables): for rows of tokens, that of a token.
func Perplexity(ll float64, variables int) float64 {
	return math.Exp(-ll / float64(variables))
}
