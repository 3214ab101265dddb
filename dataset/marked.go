package dataset

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// open opens a file of records in which further marks of missing cells hold, whatever its
// format. Tables in text compare the marks with what is written, before it is a number.
func (f *file) open(ctx context.Context, opts *Options) (Records, error) {
	recs, err := f.format.Open(ctx, f.path, opts)
	if err != nil {
		return nil, err
	}
	marks := opts.Missing
	if opts.Schema != nil {
		marks = slices.Concat(marks, opts.Schema.Missing)
	}
	if _, text := recs.(*csvRecords); text || len(marks) == 0 {
		return recs, nil
	}
	return &markedRecords{Records: recs, texts: marks, numbers: MarkedNumbers(marks)}, nil
}

// BareMarks returns marks of missing cells, with what is left of those that have blanks around them: cells of a table in text have none,
// unless they are in quotes.
func BareMarks(marks []string) []string {
	all := slices.Clip(marks)
	for _, mark := range marks {
		if bare := strings.Trim(mark, " \t"); bare != mark {
			all = append(all, bare)
		}
	}
	return all
}

// MarkedNumbers returns the numbers that marks of missing cells are where cells are numbers, nil if there are none.
func MarkedNumbers(marks []string) (numbers map[float64]bool) {
	for _, mark := range marks {
		x, ok := parseNumber([]byte(strings.Trim(mark, " \t")))
		if !ok {
			continue
		}
		if numbers == nil {
			numbers = map[float64]bool{}
		}
		numbers[x] = true
		// Numbers of float32 are the nearest one of a fraction. That of a large whole number is another number, which integers
		// may be, and that of a tiny one is 0.
		if y := float64(float32(x)); x != math.Trunc(x) && y != 0 {
			numbers[y] = true
		}
	}
	return numbers
}

// withMarks returns t with its marked cells missing: numbers, and labels. Where no cell can be marked it returns t.
func (t *Table) withMarks(ctx context.Context, marks []string, opts *Options) (*Table, error) {
	numbers, some := MarkedNumbers(marks), false
	r := &markedReader{Reader: NewReader(t), numbers: numbers, codes: make([]map[int]bool, len(t.schema.Columns)), noMissing: opts.NoMissing}
	for i := range t.schema.Columns {
		c := &t.schema.Columns[i]
		r.codes[i] = c.markedCodes(marks, numbers)
		some = some || len(r.codes[i]) > 0 || c.Kind == Continuous && numbers != nil
	}
	if !some {
		return t, nil
	}
	return load(ctx, r, t.rows, opts)
}

// markedCodes returns the codes of a discrete column that mean a mark.
func (c *Column) markedCodes(marks []string, numbers map[float64]bool) map[int]bool {
	codes := map[int]bool{}
	spelled := c.LabelNumbers()
	for code, label := range c.Labels {
		if slices.Contains(marks, label) || spelled != nil && numbers[spelled[code]] {
			codes[code] = true
		}
	}
	for x := range numbers {
		if c.Labels == nil && x >= 0 && x < float64(c.Categories) && x == math.Trunc(x) {
			codes[int(x)] = true
		}
	}
	return codes
}

// markedReader makes the marked cells of a table missing.
type markedReader struct {
	Reader
	numbers   map[float64]bool
	codes     []map[int]bool // by column
	noMissing bool
	rows      int // that were read before
}

func (r *markedReader) Read(ctx context.Context, b *Batch, max int) error {
	if err := r.Reader.Read(ctx, b, max); err != nil {
		return err
	}
	for i := range b.Columns {
		cells, column := &b.Columns[i], &r.Schema().Columns[i]
		for n := range b.Rows {
			if cells.Discrete() {
				if !r.codes[i][cells.Codes.At(n)] {
					continue
				}
				cells.Codes.Set(n, Missing)
			} else {
				if v := cells.Values[n]; v != v || !r.numbers[column.shortest(v)] {
					continue
				}
				cells.Values[n] = missingValue
			}
			if r.noMissing {
				return badData(fmt.Sprintf("row %d", r.rows+n+1), "cell of %s is missing; fill it or allow missing cells", r.Schema().ColumnName(i))
			}
		}
	}
	r.rows += b.Rows
	return nil
}

// markedRecords are records whose marked cells are missing: numbers, and texts.
type markedRecords struct {
	Records
	texts   []string
	numbers map[float64]bool
}

func (m *markedRecords) Next(row []Value) error {
	if err := m.Records.Next(row); err != nil {
		return err
	}
	for i := range row {
		v := &row[i]
		if v.Kind == Number && m.numbers[v.Number] || v.Kind != Number && v.Text != nil && slices.Contains(m.texts, string(v.Text)) {
			*v = Value{}
		}
	}
	return nil
}

// Image is the shape of rows that are images, zeros for other records.
func (m *markedRecords) Image() [3]int {
	if im, ok := m.Records.(interface{ Image() [3]int }); ok {
		return im.Image()
	}
	return [3]int{}
}
