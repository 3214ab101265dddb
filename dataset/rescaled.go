package dataset

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// Rescaled returns src with the numbers of its continuous columns stored as those
// of like, column by column; src itself where they are stored like that already.
// Codes without labels are numbers too where like has a continuous column, and are stored as its numbers
// if it has a scale or bins: as they are, they would be read as stored values, or as bins.
// Codes of labels that like has at other places, as columns that share leaves have those of all, become the codes there, and so do
// numbers without labels where like has labels that are numbers, and the reverse.
// Other columns stay as they are.
func Rescaled(src Source, like *Schema) Source {
	have := src.Schema()
	own := *have
	own.Columns = nil
	var columns []int
	codes := map[int][]int{}
	for i := range min(len(have.Columns), len(like.Columns)) {
		from, to := &have.Columns[i], &like.Columns[i]
		if from.Kind == Discrete && to.Kind == Discrete && (to.Categories <= MaxNarrow || have.WideCodes()) {
			codes[i] = recoded(from, to)
		}
		same := from.Offset == to.Offset && from.Scale == to.Scale
		if from.Kind == Discrete {
			same = from.Labels != nil || to.Scale == 0 && to.Edges == nil
		}
		if codes[i] == nil && (to.Kind != Continuous || same) {
			continue
		}
		if own.Columns == nil {
			own.Columns = append(own.Columns, have.Columns...)
		}
		c := &own.Columns[i]
		c.Kind, c.Categories, c.Labels, c.Offset, c.Scale = to.Kind, to.Categories, to.Labels, to.Offset, to.Scale
		columns = append(columns, i)
	}
	if columns == nil {
		return src
	}
	return &rescaled{Source: src, schema: &own, columns: columns, codes: codes}
}

// recoded returns the codes in another column of the categories of a column, nil where codes stay as they are: these are the same, or the
// other column has labels and lacks one. It may lack a number that no row has.
func recoded(from, to *Column) []int {
	codes, all := from.CodesIn(to)
	if !all && from.Labels != nil && to.Labels != nil {
		return nil
	}
	return codes
}

// rescaled is a source whose cells are stored in another way.
type rescaled struct {
	Source
	schema  *Schema
	columns []int         // that differ
	codes   map[int][]int // of columns of labels: the code for each one of the source
}

func (r *rescaled) Schema() *Schema { return r.schema }

func (r *rescaled) Gather(ctx context.Context, b *Batch, rows []int) error {
	if err := r.Source.Gather(ctx, b, rows); err != nil {
		return err
	}
	for _, i := range r.columns {
		from, to, cells := &r.Source.Schema().Columns[i], &r.schema.Columns[i], &b.Columns[i]
		if codes := r.codes[i]; codes != nil {
			to := MissingCodes(cells.Codes.Wide != nil, b.Rows)
			for n := range b.Rows {
				code := cells.Codes.At(n)
				if code >= len(codes) {
					return fmt.Errorf("%w: %s has code %d of %d categories", ErrFormat, r.schema.ColumnName(i), code, len(codes))
				}
				if code != Missing && codes[code] == Missing {
					number := strconv.Itoa(code)
					if from.Labels != nil {
						number = from.Labels[code]
					}
					return fmt.Errorf("%w: %s has the number %s, which is not one of its categories", ErrFormat, r.schema.ColumnName(i), number)
				}
				if code != Missing {
					to.Set(n, codes[code])
				}
			}
			cells.Codes = to
			continue
		}
		if from.Kind == Discrete {
			cells.Values = make([]float32, b.Rows)
			for n := range cells.Values {
				cells.Values[n] = float32(math.NaN())
				if code := cells.Codes.At(n); code != Missing {
					cells.Values[n] = to.Standard(float64(code))
				}
			}
			cells.Codes = Codes{}
			continue
		}
		for n, v := range cells.Values {
			cells.Values[n] = to.Standard(from.shortest(v))
		}
	}
	return nil
}
