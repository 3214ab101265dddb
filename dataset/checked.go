package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// maxSourceRows bounds the rows of a source that a program makes itself: an epoch's order takes 8 bytes for each.
const maxSourceRows = math.MaxInt32

// checkedSource is a source of the caller's whose batches are looked at: a wrong one would end the program far from its
// cause, and fewer rows than asked for would be trained on in silence.
type checkedSource struct {
	Source
	rows int // when it was opened: a run has as many from its beginning to its end
}

// Checked returns a source that gives the rows that it is asked for or an error: tables do, and what others give is looked at. An error that
// matches ErrSetting says that a source is missing, or one with a schema and a number of rows that can be read.
func Checked(src Source) (Source, error) {
	switch s := src.(type) {
	case *checkedSource:
		return src, nil
	case *Table:
		if s != nil {
			return src, nil
		}
		src = nil
	}
	if src == nil || src.Schema() == nil {
		return nil, badSetting("rows without a source, or of a source without a schema; give both")
	}
	rows := src.Rows()
	if rows < 0 || rows > maxSourceRows {
		return nil, badSetting("a source of %d rows; want 0 to %d", rows, maxSourceRows)
	}
	return &checkedSource{src, rows}, nil
}

// Rows returns the number of rows when the source was opened.
func (c *checkedSource) Rows() int { return c.rows }

// Gather fills b and looks at it.
func (c *checkedSource) Gather(ctx context.Context, b *Batch, rows []int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Source.Gather(ctx, b, rows); err != nil {
		return err
	}
	if b.Rows != len(rows) {
		return fmt.Errorf("%w: the source gave %d rows where %d were asked for; its Gather has to give all", ErrFormat, b.Rows, len(rows))
	}
	s := c.Schema()
	if err := b.Check(s); err != nil {
		return err
	}
	for v := range b.Columns {
		if discrete := s.Columns[v].Kind == Discrete; b.Rows > 0 && discrete != b.Columns[v].Discrete() {
			return fmt.Errorf("%w: the source gave codes where its schema has values, or the reverse, in %s", ErrFormat, s.ColumnName(v))
		}
		if i := slices.IndexFunc(b.Columns[v].Values[:min(b.Rows, len(b.Columns[v].Values))], func(x float32) bool { return math.IsInf(float64(x), 0) }); i >= 0 {
			return fmt.Errorf("%w: the source gave %v in row %d, counted from 0, of %s; give a number, or NaN for a missing cell",
				ErrFormat, b.Columns[v].Values[i], rows[i], s.ColumnName(v))
		}
	}
	b.truncate(len(rows)) // to the rows, where a longer batch is used for them
	return nil
}
