package dataset

import (
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Rounding says which number a text or an integer becomes.
type Rounding uint8

// The roundings. A forest that compares in float32 gets the number of the file from each but the first, which
// rounds twice where that is nearly half-way between two float32 numbers.
const (
	ToFloat64 Rounding = iota // the nearest float64
	ToFloat32                 // the nearest float32
	ToEither                  // the nearest float64 of those whose nearest float32 is that of the file
)

// NumberReader reads the rows of files as plain numbers, without the codes and scales
// of a schema: what a decision forest compares. It is for one goroutine.
type NumberReader struct {
	opts   Options
	schema *Schema
	round  Rounding
	files  []file // yet to be read
	recs   Records
	row    []Value
	to     []int  // by column of the file: column of the result, -1 for none
	twice  string // a name that two columns have
}

// OpenNumbers opens the files that path means, for rows of that many columns. names,
// nil if there are none, are the columns' names: a file with a header is matched by
// them, and a column that it lacks is missing in every row. Where two columns have one name, a header has to be the names
// in their order.
func OpenNumbers(path string, columns int, names []string, round Rounding, opts Options) (*NumberReader, error) {
	if columns < 1 || columns > MaxColumns {
		return nil, badSetting("%s: rows of %d columns; want 1 to %d", path, columns, MaxColumns)
	}
	if names != nil && len(names) != columns {
		return nil, badSetting("%s: %d names for %d columns; give each its own", path, len(names), columns)
	}
	opts.Schema = &Schema{Columns: make([]Column, columns)}
	for i := range opts.Schema.Columns {
		opts.Schema.Columns[i].Kind = Continuous
	}
	opts.Partial = true
	if err := opts.validate(); err != nil { // which takes no name twice
		return nil, err
	}
	for i, name := range names {
		opts.Schema.Columns[i].Name = name
	}
	twice, _ := opts.Schema.nameTwice()
	if strings.HasPrefix(path, builtinPrefix) {
		return nil, badSetting("%s: rows of plain numbers are read from files; write the source to one with pce data sample", path)
	}
	files, err := findFiles([]string{path}, &opts)
	if err != nil {
		return nil, err
	}
	if files[0].text {
		return nil, badSetting("%s: it is read as text, and text has no columns of numbers; name a table .csv, .tsv or .csv.gz", files[0].path)
	}
	return &NumberReader{opts: opts, schema: opts.Schema, round: round, files: files, twice: twice}, nil
}

// Read fills dst with whole rows, NaN for missing cells, and returns their number. It
// returns io.EOF, and no rows, when none are left. Without room for a row the error matches ErrSetting. A named pipe
// is read under the context of the call that opens it: give all calls the same.
func (r *NumberReader) Read(ctx context.Context, dst []float64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	columns := len(r.schema.Columns)
	if len(dst) < columns { // which is not the end of the rows
		return 0, badSetting("room for %d numbers of a row that has %d; give room for a row at least", len(dst), columns)
	}
	n := 0
	for n < len(dst)/columns {
		if r.recs == nil {
			if len(r.files) == 0 {
				break
			}
			if err := r.open(ctx); err != nil {
				return 0, ended(ctx, err)
			}
		}
		err := r.recs.Next(r.row)
		if err == io.EOF {
			if err = r.Close(); err == nil {
				continue
			}
		}
		if err == nil {
			err = r.decode(dst[n*columns : (n+1)*columns])
		}
		if err != nil {
			return 0, ended(ctx, err)
		}
		n++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// open starts the next file.
func (r *NumberReader) open(ctx context.Context) error {
	f := r.files[0]
	recs, err := f.open(ctx, &r.opts)
	if err != nil {
		return err
	}
	if head := recs.Names(); r.twice != "" && head != nil && !slices.EqualFunc(WithBlanks(head, r.schema), r.schema.Columns, func(name string, c Column) bool { return name == c.Name }) {
		recs.Close()
		return badData(f.path, "two columns of the model are named %.200q, which a header cannot tell apart; give the columns of the model in its order", r.twice)
	}
	if r.to, err = match(f.path, recs, r.schema, &r.opts); err != nil {
		recs.Close()
		return err
	}
	r.files, r.recs, r.row = r.files[1:], recs, make([]Value, recs.Columns())
	return nil
}

// decode turns the raw row into numbers.
func (r *NumberReader) decode(dst []float64) error {
	for i := range dst {
		dst[i] = math.NaN()
	}
	for i := range r.row {
		v := &r.row[i]
		if r.to[i] < 0 || v.Kind == Absent {
			continue
		}
		if problem := v.infinite(); problem != "" {
			return badData(r.recs.Where(i), "%s", problem)
		}
		if *v = v.spelled(); v.Kind != Number {
			return badData(r.recs.Where(i), "%s is not a number; write one, or leave the cell empty if it is missing", quote(v.Text))
		}
		if math.IsInf(v.Number, 0) {
			return badData(r.recs.Where(i), "%s is beyond the numbers of float64; replace it", quote(v.Text))
		}
		dst[r.to[i]] = v.Rounded(r.round)
	}
	return nil
}

// Rounded returns the number of a cell.
func (v *Value) Rounded(how Rounding) float64 {
	if how == ToFloat64 {
		return v.Number
	}
	single := v.float32()
	if how == ToEither {
		if float64(float32(v.Number)) == single {
			return v.Number
		}
		return math.Nextafter(v.Number, single) // from half-way, to the side of the file
	}
	return single
}

// float32 rounds a number once. Rounding the float64 that a text or a large integer was read as rounds
// twice, which differs where that lies half-way between two float32 numbers, or where
// these are subnormal.
func (v *Value) float32() float64 {
	const half = 1 << 28 // of the 29 bits that float64 has more
	halfway := math.Float64bits(v.Number)&(1<<29-1) == half
	switch {
	case halfway && v.Rest != 0:
		return float64(float32(math.Nextafter(v.Number, math.Copysign(math.Inf(1), v.Rest))))
	case v.Text != nil && (halfway || math.Abs(v.Number) < 0x1p-126 && v.Number != 0):
		if x, err := strconv.ParseFloat(string(v.Text), 32); err == nil {
			return x
		}
	}
	return float64(float32(v.Number))
}

// ParseNumber reads a cell of text as NumberReader reads those of files: NaN for an empty
// one and for a customary mark of a missing cell, else the number. false means that the cell is neither, or beyond the numbers of float64.
func ParseNumber(cell []byte, round Rounding) (float64, bool) {
	if len(cell) == 0 || isMissing(cell) {
		return math.NaN(), true
	}
	x, ok := parseNumber(cell)
	ok = ok && !math.IsInf(x, 0)
	if ok {
		x = (&Value{Number: x, Text: cell}).Rounded(round)
	}
	return x, ok
}

// Close closes the file that is being read. It may be called at any time, and again.
func (r *NumberReader) Close() error {
	if r.recs == nil {
		return nil
	}
	err := r.recs.Close()
	r.recs = nil
	return err
}
