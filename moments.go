package pce

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/run"
)

// Covariance returns, for each row, the covariances of columns, counted from 0, given the row's
// observed cells: [column, column], with variances on the diagonal. Numbers are those of
// Moments. An observed cell has zeros, a row that is impossible NaN.
//
// It takes a row of the model for each category of all columns but one, and some dozens for a
// continuous column: as many as its range has of the smallest standard deviation of its leaves. Two
// columns over neither of whose values it can sum give an error.
func (m *Model) Covariance(ctx context.Context, rows [][]float64, columns ...int) ([][][]float64, error) {
	q := &Query{Kind: QueryCovariance, Columns: columns}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	all, err := m.answerRows(ctx, q, rows)
	if err != nil {
		return nil, err
	}
	out, n := make([][][]float64, len(rows)), len(columns)
	for r, row := range all {
		for i := range n {
			out[r] = append(out[r], row[i*n:(i+1)*n:(i+1)*n])
		}
	}
	return out, nil
}

// Quantiles returns, for each row, the quantiles of a column, counted from 0, at levels between
// 0 and 1, given the row's observed cells: the smallest number that is not exceeded with that
// probability. Numbers are those of Moments. A row that is impossible gives NaN.
func (m *Model) Quantiles(ctx context.Context, rows [][]float64, column int, levels ...float64) ([][]float64, error) {
	q := &Query{Kind: QueryQuantiles, Columns: []int{column}, Levels: levels}
	if err := q.Check(m.plan.Schema); err != nil {
		return nil, err
	}
	return m.answerRows(ctx, q, rows)
}

// NewQuantiles makes a query for the quantiles of columns, named as for NewQuery, at levels between 0 and 1.
func (m *Model) NewQuantiles(columns []string, levels ...float64) (*Query, error) {
	return run.NewQuantiles(m.plan.Schema, columns, levels)
}

// ExpectLinear returns, for each row, the expectation of a·x given the row's observed cells, where
// x are the numbers of all columns as Moments counts them. A column whose factor is 0 does not
// count. A row that is impossible gives NaN.
func (m *Model) ExpectLinear(ctx context.Context, rows [][]float64, a []float64) ([]float64, error) {
	return m.ExpectQuadratic(ctx, rows, a, nil)
}

// ExpectQuadratic returns, for each row, the expectation of a·x + xᵀBx given the row's observed
// cells, where x are the numbers of all columns as Moments counts them. Either of a and B may be
// nil. Columns that B multiplies by others cost as by Covariance; zeros cost nothing. A row that
// is impossible gives NaN.
func (m *Model) ExpectQuadratic(ctx context.Context, rows [][]float64, a []float64, B [][]float64) ([]float64, error) {
	n := m.plan.Graph.NumVars
	if a != nil && len(a) != n || B != nil && len(B) != n {
		return nil, fmt.Errorf("%w: %d linear factors and %d rows of quadratic ones; want %d, one for each column", ErrOptions, len(a), len(B), n)
	}
	var p run.Polynomial
	add := func(factor float64, columns ...int) error {
		if math.IsNaN(factor) || math.IsInf(factor, 0) {
			return fmt.Errorf("%w: the factor of columns %v is %v; want a finite number", ErrOptions, columns, factor)
		}
		if factor != 0 {
			p.Terms = append(p.Terms, run.Term{Factor: factor, Columns: columns})
		}
		return nil
	}
	for v, x := range a {
		if err := add(x, v); err != nil {
			return nil, err
		}
	}
	for v, row := range B {
		if len(row) != n {
			return nil, fmt.Errorf("%w: row %d of the quadratic factors, counted from 0, has %d; want %d", ErrOptions, v, len(row), n)
		}
		for w, x := range row {
			if err := add(x, v, w); err != nil {
				return nil, err
			}
		}
	}
	all, err := m.answerRows(ctx, &Query{Kind: QueryExpect, Of: []run.Polynomial{p}}, rows)
	out := make([]float64, 0, len(all))
	for _, row := range all {
		out = append(out, row[0])
	}
	return out, err
}

// NewExpectation makes a query for the expectations of polynomials of degree 2 in the columns,
// written as in "2*age + 0.5*age*$3 - height^2": see run.ParsePolynomial.
func (m *Model) NewExpectation(polynomials ...string) (*Query, error) {
	return run.NewExpectation(m.plan.Schema, polynomials)
}
