package run

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
)

// BitsPerDimension returns -ll in bits, divided by the number of variables. ll
// is the mean natural-log likelihood of a row.
func BitsPerDimension(ll float64, variables int) float64 {
	return 0 - ll/(math.Ln2*float64(variables)) // 0 of rows that are certain, and not -0
}

// Perplexity returns e^(-ll/variables): for rows of tokens, that of a token.
func Perplexity(ll float64, variables int) float64 {
	return math.Exp(-ll / float64(variables))
}

// Measure is a figure that only some rows have: a nil pointer leaves it out of JSON. There a
// Measure that is infinite or unknown is null.
type Measure float64

// MarshalJSON writes a number, or null.
func (m Measure) MarshalJSON() ([]byte, error) { return json.Marshal(Finite(float64(m))) }

// Measures returns the bits per dimension of rows with a mean log-likelihood, nil where a column that the model reads
// is continuous and not one of counts: a density has other bits in another unit. It returns the perplexity of rows
// that are text, nil for others. Dimensions are the columns that the model reads.
func Measures(ll float64, s *dataset.Schema) (bpd, perplexity *Measure) {
	n, masses := s.Dimensions()
	if masses {
		bpd = new(Measure)
		*bpd = Measure(BitsPerDimension(ll, n))
	}
	if s.Unit != "" {
		perplexity = new(Measure)
		*perplexity = Measure(Perplexity(ll, n))
	}
	return bpd, perplexity
}

// Bounds beyond which a mean log-likelihood gets a warning.
const (
	// A row stands out if it is this many times as far from the mean of the others as
	// these are from 0, and as the row at the other end is from that mean.
	outlierFactor = 10
	// A row that stands out dominates the mean if it moves it by this share.
	outlierShare = 0.01
	// Probabilities of discrete rows add up to 1 but for the digits that weights and leaves of a file have: circuit.CheckParams
	// takes those that add up to 1 within 1e-3, of which a row passes a leaf and about a sum for each variable.
	roundingPerVariable = 2e-3
)

// Warnings returns what makes the mean log-likelihood of rows doubtful, a sentence
// for each doubt, which names a row, counted from 1. rows is a word for them:
// "test", "".
func Warnings(rows string, e em.Evaluation, s *dataset.Schema) []string {
	if rows != "" {
		rows += " "
	}
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	dimensions, masses := s.Dimensions()
	if bound := roundingPerVariable * float64(dimensions); masses && e.Rows > 0 && e.Highest.LL > bound {
		warn("%srow %d has log-likelihood %.6g, the mean of %d is %.6g: the probability of a discrete row is at most 1, so the model's numbers are wrong; do not use them",
			rows, e.Highest.Row+1, e.Highest.LL, e.Rows, e.Mean())
	}
	of := "rows"
	if e.Rows == 1 {
		of = "row"
	}
	switch {
	case e.Impossible > 0:
		have := "have"
		if e.Impossible == 1 {
			have = "has"
		}
		warn("the mean of %d %s%s is -Inf, since %d of them %s probability 0, the first is %srow %d: it says what no training row allows, or a number too far from theirs; look at its cells, or train with a larger pseudocount or other leaves",
			e.Rows, rows, of, e.Impossible, have, rows, e.Lowest.Row+1)
	case math.IsInf(e.Highest.LL, 1):
		warn("the mean of %d %s%s is +Inf, since %srow %d has an infinite density; look at its cells, or raise the smallest deviation of the leaves", e.Rows, rows, of, rows, e.Highest.Row+1)
	default:
		for _, row := range []em.RowLL{e.Lowest, e.Highest} {
			if without, yes := dominates(&e, row); yes {
				warn("%srow %d has log-likelihood %.6g and moves the mean of %d rows from %.6g to %.6g: look for cells that mean \"missing\" or have another unit",
					rows, row.Row+1, row.LL, e.Rows, without, e.Mean())
			}
		}
	}
	return out
}

// dominates reports whether one of the extreme rows decides on the mean, and what
// the mean is without it. The other extreme row says how far rows usually lie from
// the mean: that holds also where a few rows stand out together.
func dominates(e *em.Evaluation, row em.RowLL) (without float64, yes bool) {
	if e.Rows < 2 {
		return math.NaN(), false
	}
	without = (e.LogLikelihood - row.LL) / float64(e.Rows-1)
	other := e.Highest.LL
	if row == e.Highest {
		other = e.Lowest.LL
	}
	usual := max(1, math.Abs(without))
	distance := math.Abs(row.LL - without)
	return without, distance > outlierFactor*max(usual, math.Abs(other-without)) && distance/float64(e.Rows) > outlierShare*usual
}
