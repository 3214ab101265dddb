package dataset

import (
	"context"
	"slices"
)

// numbered returns t as a schema wants it: codes without labels are numbers in the columns that
// hold numbers there, as they are when a file is read. Where nothing differs it returns t.
func (t *Table) numbered(ctx context.Context, like *Schema, opts *Options) (*Table, error) {
	s := *t.schema
	s.Columns = slices.Clone(s.Columns)
	var columns []int
	for i := range min(len(s.Columns), len(like.Columns)) {
		if c, to := &s.Columns[i], &like.Columns[i]; c.Kind == Discrete && c.Labels == nil && to.Kind == Continuous {
			c.Kind, c.Categories, c.Offset, c.Scale = Continuous, 0, to.Offset, to.Scale
			columns = append(columns, i)
		}
	}
	if columns == nil {
		return t, nil
	}
	return load(ctx, &numberReader{Reader: NewReader(t), schema: &s, columns: columns}, t.rows, opts)
}

// numberReader reads the codes of some columns as numbers.
type numberReader struct {
	Reader
	schema  *Schema
	columns []int
	codes   Batch // as Reader read them last
}

func (r *numberReader) Schema() *Schema { return r.schema }

func (r *numberReader) Read(ctx context.Context, b *Batch, max int) error {
	if err := r.Reader.Read(ctx, &r.codes, max); err != nil {
		return err
	}
	b.Rows = r.codes.Rows
	b.Columns = append(b.Columns[:0], r.codes.Columns...)
	for _, i := range r.columns {
		c, codes := &r.schema.Columns[i], &r.codes.Columns[i].Codes
		values := make([]float32, b.Rows)
		for n := range values {
			if code := codes.At(n); code == Missing {
				values[n] = missingValue
			} else {
				values[n] = c.Standard(float64(code))
			}
		}
		b.Columns[i] = Cells{Values: values}
	}
	return nil
}
