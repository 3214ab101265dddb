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
// down, and whose covariances from Covariance for variables that are multiplied by others.
func (e *Engine) Expect(ctx context.Context, b *dataset.Batch, of []Polynomial, out []float64) error {
	if len(out) < b.Rows*len(of) {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(out), b.Rows, len(of))
	}
	var crossed []int // variables that are multiplied by others
	n := e.prog.NumVars
	for _, p := range of {
		for _, t := range p.Terms {
			if d := len(t.Variables); d < 1 || d > 2 || slices.Min(t.Variables) < 0 || slices.Max(t.Variables) >= n {
				return fmt.Errorf("%w: a term of variables %v; want one or two of 0 to %d", dataset.ErrSetting, t.Variables, n-1)
			}
			for _, v := range t.Variables {
				if _, err := e.columnOf(v); err != nil {
					return err
				}
				if t.Variables[0] != t.Variables[len(t.Variables)-1] && !slices.Contains(crossed, v) {
					crossed = append(crossed, v)
				}
			}
		}
	}
	k := len(crossed)
	most := max(1, min(b.Rows, expectLen/max(1, k*k+2*n)))
	moments, covariances := make([]float64, most*2*n), make([]float64, most*k*k)
	for lo := 0; lo < b.Rows; lo += most {
		part := b.Slice(lo, min(lo+most, b.Rows))
		if err := e.Moments(ctx, part, moments); err != nil {
			return e.named(ctx, b, err)
		}
		if k > 0 {
			if err := e.Covariance(ctx, part, crossed, covariances); err != nil {
				return err
			}
		}
		for r := range part.Rows {
			mean, variance := moments[2*r*n:][:n], moments[(2*r+1)*n:][:n]
			second := func(x, y int) float64 {
				if x == y {
					return variance[x] + mean[x]*mean[x]
				}
				return covariances[(r*k+slices.Index(crossed, x))*k+slices.Index(crossed, y)] + mean[x]*mean[y]
			}
			impossible := math.IsNaN(mean[e.prog.Columns[0].Var])
			for i, p := range of {
				sum := p.Constant
				for _, t := range p.Terms {
					if x := t.Variables[0]; len(t.Variables) == 1 {
						sum += t.Factor * mean[x]
					} else {
						sum += t.Factor * second(x, t.Variables[1])
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
