package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
)

// Polynomial is a polynomial of degree 2 in the numbers of a row.
type Polynomial struct {
	Constant float64
	Terms    []Term
}

// Term is a factor times one variable or the product of two, which may be the same.
type Term struct {
	Factor    float64
	Variables []int
}

// Expect writes the expectations of polynomials given the observed cells of each row of b to
// out, [rows, polynomials]. Numbers are those of Moments. An impossible row has NaN.
//
// E[Σ a·x + Σ b·x·y] = Σ a·E[x] + Σ b·(Cov[x, y] + E[x]·E[y]), whose moments come from one pass
// down, and whose covariances from those of the variables that are multiplied by each other.
func (e *Engine) Expect(ctx context.Context, b *dataset.Batch, of []Polynomial, out []float64) error {
	if len(out) < b.Rows*len(of) {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(out), b.Rows, len(of))
	}
	var crossed []int            // variables that are multiplied by others
	var later [][]partner        // of these
	index := map[int]int{}       // of a variable among them
	places := map[[2]int]int{}   // of their pairs
	at := make([][]int, len(of)) // of the pairs of terms
	n := e.prog.NumVars
	for i, p := range of {
		at[i] = make([]int, len(p.Terms))
		for term, t := range p.Terms {
			if d := len(t.Variables); d < 1 || d > 2 || slices.Min(t.Variables) < 0 || slices.Max(t.Variables) >= n {
				return fmt.Errorf("%w: a term of variables %v; want one or two of 0 to %d", dataset.ErrSetting, t.Variables, n-1)
			}
			for _, v := range t.Variables {
				if _, err := e.columnOf(v); err != nil {
					return err
				}
				if _, known := index[v]; !known && t.Variables[0] != t.Variables[len(t.Variables)-1] {
					index[v], crossed, later = len(crossed), append(crossed, v), append(later, nil)
				}
			}
			x, y := t.Variables[0], t.Variables[len(t.Variables)-1]
			if x == y {
				continue
			}
			pair := [2]int{min(index[x], index[y]), max(index[x], index[y])}
			if _, known := places[pair]; !known {
				later[pair[0]] = append(later[pair[0]], partner{pair[1], len(places)})
				places[pair] = len(places)
			}
			at[i][term] = places[pair]
		}
	}
	width := len(places)
	most := max(1, min(b.Rows, expectLen/max(1, width+2*n)))
	moments, covariances := make([]float64, most*2*n), make([]float64, most*width)
	for lo := 0; lo < b.Rows; lo += most {
		part := b.Slice(lo, min(lo+most, b.Rows))
		if err := e.Moments(ctx, part, moments); err != nil {
			return e.named(ctx, b, err)
		}
		if width > 0 {
			if err := e.covariances(ctx, part, crossed, later, width, false, covariances); err != nil {
				return err
			}
		}
		for r := range part.Rows {
			mean, variance := moments[2*r*n:][:n], moments[(2*r+1)*n:][:n]
			second := func(x, y, place int) float64 {
				if x == y {
					return variance[x] + mean[x]*mean[x]
				}
				return covariances[r*width+place] + mean[x]*mean[y]
			}
			impossible := math.IsNaN(mean[e.prog.Columns[0].Var])
			for i, p := range of {
				sum := p.Constant
				for term, t := range p.Terms {
					if x := t.Variables[0]; len(t.Variables) == 1 {
						sum += t.Factor * mean[x]
					} else {
						sum += t.Factor * second(x, t.Variables[1], at[i][term])
					}
				}
				if impossible { // a constant too
					sum = math.NaN()
				}
				out[(lo+r)*len(of)+i] = sum
			}
		}
	}
	return nil
}

// expectLen bounds the numbers that are kept for the rows of a part: 32 MiB.
const expectLen = 1 << 22
