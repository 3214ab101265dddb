package engine

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// Classify writes, for every row of b, the probability of each code of a variable given
// the row's other observed cells to p, [rows, codes]. By Bayes' rule it is the row's
// likelihood with that code, normalised; the codes of a row are evaluated side by
// side. What the cell of the variable says does not count. A row whose other cells are
// impossible gives NaN.
func (e *Engine) Classify(ctx context.Context, b *dataset.Batch, variable int, p []float64) error {
	c, err := e.codedColumn(variable)
	if err != nil {
		return err
	}
	codes := int(c.Codes)
	if len(p) < b.Rows*codes || len(b.Columns) < e.prog.NumVars {
		return fmt.Errorf("%w: room for %d numbers for %d rows of %d columns; want %d numbers for each row of %d columns",
			dataset.ErrFormat, len(p), b.Rows, len(b.Columns), codes, e.prog.NumVars)
	}
	p = p[:b.Rows*codes]
	part, at := &dataset.Batch{Columns: make([]dataset.Cells, len(b.Columns))}, 0
	next := func() (*dataset.Batch, error) {
		if at == len(p) {
			return nil, io.EOF
		}
		part.Rows = min(e.rows, len(p)-at)
		for v := range b.Columns {
			spread(&part.Columns[v], &b.Columns[v], at, part.Rows, codes)
		}
		part.Columns[variable].Soft = dataset.SoftCells{} // what it says does not count
		for i := range part.Rows {
			if err := put(&part.Columns[variable], i, c.Var, float64((at+i)%codes)); err != nil {
				return nil, err
			}
		}
		at += part.Rows
		return part, nil
	}
	out := p
	if err := e.Evaluate(ctx, next, func(ll []float64) { out = out[copy(out, ll):] }); err != nil {
		return e.named(ctx, without(b, variable), err)
	}
	for lo := 0; lo < len(p); lo += codes {
		normalise(p[lo : lo+codes])
	}
	return nil
}

// without returns the rows of b without what they say in a column.
func without(b *dataset.Batch, column int) *dataset.Batch {
	columns := slices.Clone(b.Columns)
	columns[column] = missingCells(&b.Columns[column], b.Rows)
	return &dataset.Batch{Rows: b.Rows, Columns: columns}
}

// codedColumn returns the column of a variable that has codes.
func (e *Engine) codedColumn(variable int) (layers.Column, error) {
	for _, c := range e.prog.Columns {
		switch {
		case int(c.Var) != variable || c.Beside:
		case c.Codes > 0 && e.binsOf(c.Var) == nil:
			return c, nil
		default:
			return c, fmt.Errorf("%w: %s has no categories; classify by one that has", dataset.ErrSetting, e.columnName(variable))
		}
	}
	_, err := e.columnOf(variable)
	return layers.Column{}, err
}

// spread fills to with n of the cells that from has if each of them comes times times in a
// row, from cell at of these on.
func spread(to, from *dataset.Cells, at, n, times int) {
	if len(to.Values)+to.Codes.Len() != n {
		*to = missingCells(from, n)
	}
	to.Soft = dataset.SoftCells{}
	if from.Soft.Of != nil {
		to.Soft = dataset.SoftCells{Of: make([]uint32, n), List: from.Soft.List}
		for i := range n {
			to.Soft.Of[i] = from.Soft.Of[(at+i)/times]
		}
	}
	for i := range n {
		switch row := (at + i) / times; {
		case from.Codes.Wide != nil:
			to.Codes.Wide[i] = from.Codes.Wide[row]
		case from.Discrete():
			to.Codes.Narrow[i] = from.Codes.Narrow[row]
		default:
			to.Values[i] = from.Values[row]
		}
	}
}

// normalise turns log-likelihoods of one row into shares; NaN if all are impossible.
func normalise(ll []float64) {
	top := math.Inf(-1)
	for _, x := range ll {
		top = max(top, x)
	}
	sum := 0.0
	for i, x := range ll {
		ll[i] = math.Exp(x - top) // -Inf - -Inf is NaN
		sum += ll[i]
	}
	for i := range ll {
		ll[i] /= sum
	}
}
