package dataset

import (
	"context"
	"io"
	"math"
	"slices"
	"strings"
)

// recordReader is the Reader of a file of records.
type recordReader struct {
	recs Records
	enc  *encoder
	row  []Value
	to   []int       // by column of the file: column of the schema, -1 for none
	keep bool        // texts are kept
	soft *softReader // nil: cells are values

	numbers numberRecords // recs where its rows are numbers; nil: they may be anything
	limits  []float64     // by column of the file: of numbers; see plain
}

// numberRecords are records whose rows are numbers alone.
type numberRecords interface {
	nextNumbers() ([]float64, error) // the next row, until the next call
	values(row []Value) error        // which is what Next would have given for it
}

// openRecords opens a file whose rows must follow a schema.
func openRecords(ctx context.Context, f file, s *Schema, opts *Options) (Reader, error) {
	under := *opts
	under.Schema = s
	recs, err := f.open(ctx, &under)
	if err != nil {
		return nil, err
	}
	to, err := match(f.path, recs, s, opts)
	if err != nil {
		recs.Close()
		return nil, err
	}
	r := &recordReader{recs: recs, enc: newEncoder(s, opts.NoMissing), row: make([]Value, recs.Columns()), to: to, keep: opts.KeepText}
	if opts.Soft {
		r.soft = newSoftReader(r.enc)
	}
	if numbers, ok := recs.(numberRecords); ok && r.soft == nil && !r.keep {
		r.numbers, r.limits = numbers, r.enc.limits(to)
	}
	return r, nil
}

// Limits of columns that are not categories; see limits.
const (
	anyNumber = -1 // is stored as it is
	otherwise = -2 // is for cell: labels, units, codes that are not narrow
	noColumn  = -3
	anyCount  = -4 // is stored as it is if it is a count
	positive  = -5 // is stored as it is if it is above 0
)

// limits returns what plain takes of the columns of a file: a number of categories, or one of those above.
func (e *encoder) limits(to []int) []float64 {
	limits, wide := make([]float64, len(to)), e.schema.WideCodes()
	for i, col := range to {
		if limits[i] = noColumn; col < 0 {
			continue
		}
		switch c := &e.schema.Columns[col]; {
		case e.labels[col].texts != nil || c.Scale != 0 || wide && c.Kind == Discrete:
			limits[i] = otherwise
		case c.Counts:
			limits[i] = anyCount
		case c.Positive:
			limits[i] = positive
		case c.Kind == Continuous:
			limits[i] = anyNumber
		default:
			limits[i] = float64(c.Categories)
		}
	}
	return limits
}

// plain writes a row of numbers to row n of b if each is a code of its column, or a number that is stored as it is, and
// reports whether it did; encode has the words for what else there is.
func (r *recordReader) plain(b *Batch, n int, row []float64) bool {
	for i, x := range row {
		limit := r.limits[i]
		switch code := int(x); {
		case limit >= 0 && x >= 0 && x < limit && float64(code) == x:
			b.Columns[r.to[i]].Codes.Narrow[n] = uint16(code)
		case limit == anyNumber && math.Abs(x) <= math.MaxFloat32, limit == anyCount && isCount(x) && x <= math.MaxFloat32,
			limit == positive && float32(x) > 0 && x <= math.MaxFloat32:
			b.Columns[r.to[i]].Values[n] = float32(x)
		case limit == noColumn && x-x == 0:
		default:
			return false
		}
	}
	return true
}

// next reads the next row to row n of b.
func (r *recordReader) next(b *Batch, n int) error {
	var err error
	if r.numbers == nil {
		err = r.recs.Next(r.row)
	} else if row, nextErr := r.numbers.nextNumbers(); nextErr != nil {
		err = nextErr
	} else if r.plain(b, n, row) {
		return nil
	} else {
		err = r.numbers.values(r.row)
	}
	if err != nil {
		return err
	}
	return r.encode(b, n)
}

// WithBlanks returns the names of a header as the schema has them: tables in text do not keep the blanks around their cells with which
// names of columns may begin or end. What is left of two different names stays as it is, and so does what is beside the whole name.
func WithBlanks(names []string, s *Schema) []string {
	whole := map[string]string{} // by what is left without the blanks
	for _, c := range s.Columns {
		name := strings.Trim(c.Name, " \t")
		if other, ok := whole[name]; ok && other != c.Name {
			whole[name] = name
		} else {
			whole[name] = c.Name
		}
	}
	kept := make(map[string]bool, len(names))
	for _, name := range names {
		kept[name] = true
	}
	out := slices.Clone(names)
	for i, name := range names {
		if is, ok := whole[name]; ok && !kept[is] {
			out[i] = is
		}
	}
	return out
}

// match finds the schema's column of each column of a file: by name where both
// have names, else by place. Columns set to be skipped have none.
func match(path string, recs Records, s *Schema, opts *Options) ([]int, error) {
	names := recs.Names()
	to := make([]int, recs.Columns())
	kept := 0
	for i, t := range opts.typesOf(names, len(to)) {
		if t != nil && t.Skip {
			to[i] = -1
			continue
		}
		to[i] = kept
		kept++
	}
	byName := names != nil && slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Name != "" })
	if !byName {
		if kept != len(s.Columns) {
			return nil, badData(recs.Where(0), "row has %d cells for %d variables; give one cell per variable", kept, len(s.Columns))
		}
		return to, nil
	}
	place := make(map[string][]int, len(s.Columns)) // columns without a name share ""
	for i, c := range s.Columns {
		place[c.Name] = append(place[c.Name], i)
	}
	names = WithBlanks(names, s)
	for i, n := range names {
		if to[i] < 0 {
			continue
		}
		left, known := place[n]
		switch {
		case !known:
			return nil, badData(recs.Where(i), "the header has %.200q, which is not a variable of the model; remove the column or set its type to skip", n)
		case len(left) == 0:
			return nil, badData(recs.Where(i), "the header has %.200q twice; remove one of the columns", n)
		}
		to[i], place[n] = left[0], left[1:]
	}
	var absent, skipped []string
	inHeader := make(map[string]bool, len(names))
	for _, n := range names {
		inHeader[n] = true
	}
	for _, c := range s.Columns {
		if left := place[c.Name]; len(left) > 0 {
			if absent = append(absent, c.Name); inHeader[c.Name] {
				skipped = append(skipped, c.Name)
			}
			place[c.Name] = left[1:]
		}
	}
	switch {
	case absent == nil:
	case len(skipped) > 0 && (!opts.Partial || opts.NoMissing || len(absent) == len(s.Columns)):
		return nil, badData(path, "%s is set to be skipped, and a variable of the model; drop the type", listLabels(skipped))
	case !opts.Partial || opts.NoMissing || slices.Contains(absent, ""):
		return nil, badData(path, "the header lacks %s; add the columns", listLabels(absent))
	case len(absent) == len(s.Columns):
		return nil, badData(path, "the header has no variable of the model; it has %s", listLabels(absent))
	default:
		if len(skipped) > 0 {
			opts.warn(path, "the types skip %s; they are missing in every row", listLabels(skipped))
			absent = slices.DeleteFunc(absent, func(name string) bool { return slices.Contains(skipped, name) })
		}
		if len(absent) > 0 {
			opts.warn(path, "the header lacks %s; they are missing in every row", listLabels(absent))
		}
	}
	return to, nil
}

func (r *recordReader) Schema() *Schema { return r.enc.schema }

func (r *recordReader) Close() error { return r.recs.Close() }

// Read reads up to max rows into b, whose columns are those of the schema; io.EOF comes alone,
// after the last row. An error leaves b empty: no part of a batch is handed out.
func (r *recordReader) Read(ctx context.Context, b *Batch, max int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.Resize(r.enc.schema, max)
	if r.soft != nil {
		r.soft.begin()
	}
	n := 0
	for ; n < max; n++ {
		err := r.next(b, n)
		if err == io.EOF && n > 0 {
			break
		}
		if err != nil {
			b.truncate(0)
			return err
		}
	}
	b.truncate(n)
	return nil
}

// encode writes the row that was read last to row n of b, by the codes, labels and scales of
// the schema. Columns that the schema lacks are left out. A cell that the schema does not know
// is an error with its place.
func (r *recordReader) encode(b *Batch, n int) error {
	for i := range r.row {
		col := r.to[i]
		if col < 0 {
			continue
		}
		if r.soft != nil {
			e, problem := r.soft.read(col, &r.row[i])
			if problem != "" {
				return badData(r.recs.Where(i), "%s", problem)
			}
			if e != nil {
				r.soft.set(b, n, col, e)
				continue
			}
		}
		code, value, problem := r.enc.cell(col, &r.row[i])
		if problem != "" {
			return badData(r.recs.Where(i), "%s", problem)
		}
		// In a column of labels, a number without text is that of a label or its code: writers then write the label.
		if v := &r.row[i]; r.keep && (v.Kind != Absent || code != Missing) && (v.Text != nil || r.enc.labels[col].texts == nil) {
			b.Columns[col].setText(b.Rows, n, textOf(v))
		}
		if c := &b.Columns[col]; c.Discrete() {
			c.Codes.Set(n, code)
		} else {
			c.Values[n] = value
		}
	}
	return nil
}

// chain reads several readers of one schema, one after another.
type chain struct {
	schema *Schema
	open   []func() (Reader, error) // what is yet to come
	now    Reader
	any    bool   // a row was read
	names  string // of the files, for messages
	hint   string // what to do if there are no rows
}

func (c *chain) Schema() *Schema { return c.schema }

// Read reads from one file after the other, each opened when the one before it is at its end.
// A batch never spans two files. Without a single row in all files the error names them and
// says what to do.
func (c *chain) Read(ctx context.Context, b *Batch, max int) error {
	for {
		if c.now == nil {
			if len(c.open) == 0 {
				b.Resize(c.schema, 0)
				if !c.any {
					return badData(c.names, "has no rows; %s", c.hint)
				}
				return io.EOF
			}
			r, err := c.open[0]()
			if err != nil {
				return ended(ctx, err)
			}
			c.now, c.open = r, c.open[1:]
		}
		err := c.now.Read(ctx, b, max)
		if err != io.EOF {
			c.any = c.any || err == nil
			return ended(ctx, err)
		}
		if err := c.closeNow(); err != nil {
			return err
		}
	}
}

func (c *chain) Close() error {
	c.open = nil
	return c.closeNow()
}

func (c *chain) closeNow() error {
	if c.now == nil {
		return nil
	}
	r := c.now
	c.now = nil
	return r.Close()
}

func joinNames(files []file) string {
	var names []string
	for _, f := range files[:min(3, len(files))] {
		names = append(names, f.path)
	}
	s := strings.Join(names, ", ")
	if len(files) > 3 {
		s += ", ..."
	}
	return s
}
