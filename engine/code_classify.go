package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
)

// Classify writes, for every row of b, the probability of each code of a variable given the row's other observed cells to
// p, [rows, codes], as Engine.Classify does. The model for the variable is made when it is first asked for; what does not
// depend on the variable is computed once for all codes.
func (c *Code) Classify(ctx context.Context, b *dataset.Batch, variable int, p []float64) error {
	switch {
	case variable < 0 || variable >= len(c.schema.Columns):
		return fmt.Errorf("%w: column %d of %d, counted from 0; classify by one that the model has", dataset.ErrSetting, variable, len(c.schema.Columns))
	case c.schema.Columns[variable].Kind != dataset.Discrete:
		return fmt.Errorf("%w: %s has no categories; classify by one that has", dataset.ErrSetting, c.schema.ColumnName(variable))
	}
	codes := c.schema.Columns[variable].Categories
	if len(p) < b.Rows*codes {
		return fmt.Errorf("%w: room for %d numbers for %d rows; want %d for each", dataset.ErrFormat, len(p), b.Rows, codes)
	}
	l, err := c.classesOf(ctx, variable)
	if err != nil {
		return err
	}
	if variable < len(b.Columns) { // what it says does not count
		b = without(b, variable)
	}
	return c.launches(l, b.Rows, func(r *room, lo, n int) error {
		r.ll = resized(r.ll, n*l.roots)
		ll := r.ll
		if err := c.answer(ctx, l, r, b, lo, n, ll); err != nil {
			return err
		}
		for i := range n {
			shares := p[(lo+i)*codes:][:codes]
			for k := range shares { // codes that no leaf has are impossible
				shares[k] = math.Inf(-1)
			}
			copy(shares, ll[i*l.roots:][:l.roots])
			normalise(shares)
		}
		return nil
	})
}

// classesOf returns the model with a root for each code of a variable.
func (c *Code) classesOf(ctx context.Context, variable int) (*loadedCode, error) {
	if l, ok := c.classes[variable]; ok {
		return l, nil
	}
	if c.of == nil {
		return nil, fmt.Errorf("%w: the model was made without its classes", dataset.ErrSetting)
	}
	m, err := c.of(variable)
	if err != nil {
		return nil, err
	}
	roots := 1
	if len(m.Module.Outputs) > 0 { // loadModel wants one
		roots = max(1, m.Module.Outputs[0].Width)
	}
	l, err := loadModel(ctx, c.dev, m, c.cell, deviceRows(c.rows, roots), c.schema)
	if err != nil {
		return nil, err
	}
	c.classes[variable] = l
	return l, nil
}
