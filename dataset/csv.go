package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/dataset/fields"
)

// csvRecords are the rows of a .csv, .tsv or .data file.
type csvRecords struct {
	path    string
	file    io.Closer
	scan    *fields.Scanner
	missing []string
	commas  bool // cells are separated by commas
	codes   bool // .data: whole numbers only

	// first is the first row, parsed when the file is opened, and head its texts.
	// It is handed out as data unless it is the header; while undecided it is
	// held back.
	first     []Value
	head      []string
	firstLine int
	names     []string
	pending   bool // first is yet to be handed out
	undecided bool

	line int // of the row read last
}

// openCSV opens a file of cells in text. The name decides on the default delimiter and whether
// cells are codes without a header (.data); the first 64 KiB decide on encoding, line ends and
// the delimiter in use. The first row is read at once, because whether it is a header may
// depend on it.
func openCSV(ctx context.Context, path string, opts *Options) (Records, error) {
	text, f, err := openPlain(ctx, path, opts)
	if err != nil {
		return nil, err
	}
	c := &csvRecords{path: path, file: f, missing: opts.Missing, pending: true}
	if opts.Schema != nil {
		c.missing = slices.Concat(opts.Missing, opts.Schema.Missing)
	}
	c.missing = BareMarks(c.missing)
	delimiter, header := byte(','), opts.Header
	switch filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz")) {
	case ".tsv":
		delimiter = '\t'
	case ".data":
		c.codes, header = true, HeaderNo
	}
	start, err := text.Peek(sniffBytes)
	named, length := separator(start)
	dialect := dialectOf(start[length:], err != nil, delimiter)
	if length > 0 {
		dialect.Delimiter = named
	}
	c.commas = dialect.Delimiter == ','
	c.scan = fields.NewScanner(text, dialect)
	if length > 0 { // the line is passed over, and counted
		if _, err := c.scan.Next(); err != nil {
			f.Close()
			return nil, c.wrap(err)
		}
	}
	if err := c.readFirst(header, opts); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// readFirst reads the first row of a file, when it is opened, and decides if it is a header,
// where it can: by what the options say, by whether a schema's names are in it, or by a type
// that is set for one of its texts. A row with a number is data. A row of texts alone, without
// any of these, stays undecided until the types of the rows below it are known. An empty file
// is an error.
func (c *csvRecords) readFirst(header Header, opts *Options) error {
	cells, err := c.scan.Next()
	if err == io.EOF {
		return badData(c.path, "is empty; give a file with at least one row")
	}
	if err != nil {
		return c.wrap(err)
	}
	c.first, c.firstLine = make([]Value, len(cells)), c.scan.Line()
	c.head = make([]string, len(cells))
	for i, cell := range cells {
		c.first[i] = c.parse(bytes.Clone(cell))
		c.head[i] = string(cell)
	}
	c.line = c.firstLine
	switch {
	case header == HeaderNo:
	case header == HeaderYes:
		c.decide(true)
	case opts.Schema != nil:
		c.decide(c.isHeaderFor(opts))
	case !c.isTexts():
	case c.namesType(opts):
		c.decide(true)
	default:
		c.pending, c.undecided = false, true
	}
	// Under the schema of training rows the file was read before, and this was said.
	if (header == "" || header == HeaderAuto) && c.names == nil && (opts.Schema == nil || opts.Partial) {
		switch {
		case c.numbersColumns():
			opts.warn(c.path, "the first row counts the columns, as tables without names are written by some programs, and is read as a row; if it names the columns, set data.header to yes")
		case c.countsYears():
			opts.warn(c.path, "the first row counts years, from %s to %s, and is read as a row; if it names the columns, set data.header to yes", c.head[0], c.head[len(c.head)-1])
		}
	}
	return nil
}

// numbersColumns reports whether the first row counts the columns, from 0 or from 1. A row of few cells may do so by chance.
func (c *csvRecords) numbersColumns() bool {
	for _, from := range []int{0, 1} {
		at := from - 1
		if len(c.head) > 3 && !slices.ContainsFunc(c.head, func(name string) bool { at++; return name != strconv.Itoa(at) }) {
			return true
		}
	}
	return false
}

// countsYears reports whether the first row has years at equal distances, as the names of columns may be. Two numbers may be a row.
func (c *csvRecords) countsYears() bool {
	const least, most = 1000, 2999
	if len(c.first) < 3 {
		return false
	}
	step := c.first[1].Number - c.first[0].Number
	for i, v := range c.first {
		if v.Kind != Number || v.Number != math.Trunc(v.Number) || v.Number < least || v.Number > most ||
			i > 0 && v.Number-c.first[i-1].Number != step {
			return false
		}
	}
	return step != 0
}

// decide settles whether the first row is a header.
func (c *csvRecords) decide(header bool) bool {
	c.undecided = false
	if header {
		c.pending = false
		c.names = c.head
	}
	c.line = c.firstLine
	return header
}

// isTexts reports whether the first row has texts, no numbers.
func (c *csvRecords) isTexts() bool {
	texts := false
	for _, v := range c.first {
		if v.Kind == Number {
			return false
		}
		texts = texts || v.Kind == String
	}
	return texts
}

// namesType reports whether Options.Types has an entry for a name in the first
// row.
func (c *csvRecords) namesType(opts *Options) bool {
	for i, v := range c.first {
		if _, ok := opts.Types[c.head[i]]; ok && v.Kind == String {
			return true
		}
	}
	return false
}

// isHeaderFor reports whether the first row is a header of a file whose rows
// follow a schema: it has the schema's names, or some of them and nothing else
// and too few cells for a row, or texts that cannot be data, as where their
// number is not that of the variables. A row of texts is
// never skipped where it could be meant as data, nor one of ranges, sets or likelihoods.
func (c *csvRecords) isHeaderFor(opts *Options) bool {
	s := opts.Schema
	names := WithBlanks(c.head, s)
	head := make(map[string]bool, len(names))
	for _, name := range names {
		head[name] = true
	}
	found, named, labels := 0, 0, false
	for i := range s.Columns {
		col := &s.Columns[i]
		labels = labels || col.Labels != nil
		if col.Name == "" {
			continue
		}
		named++
		if head[col.Name] {
			found++
		}
	}
	if len(c.head) == len(s.Columns) && !slices.ContainsFunc(c.first, func(v Value) bool { return v.Kind == String }) {
		header := isNumberedHeader(names, s)
		if !header && found == len(s.Columns) && len(head) == found && found > 2 { // of one or two columns it may well be a row
			opts.warn(c.path, "the first row has the names of all columns in another order, and is read as a row, since they are numbers; if it names the columns, set data.header to yes")
		}
		return header
	}
	if named > 0 && found == named || found == len(c.head) && found < len(s.Columns) {
		return true
	}
	if !c.isTexts() || slices.ContainsFunc(c.first, func(v Value) bool { return looksSoft(v.Text) }) {
		return false
	}
	kept := 0
	for _, t := range opts.typesOf(c.head, len(c.head)) {
		if t == nil || !t.Skip {
			kept++
		}
	}
	if named > 0 && kept != len(s.Columns) { // no row of the schema, whatever the texts are
		return true
	}
	if len(c.first) == len(s.Columns) {
		e, fits := newEncoder(s, false), true
		for i := range c.first {
			if _, _, problem := e.cell(i, &c.first[i]); problem != "" {
				fits = false
			}
		}
		if fits {
			return false
		}
	}
	return named > 0 && (found > 0 || !labels) || named == 0 && !labels
}

// isNumberedHeader reports whether a first row of numbers, one for each column, is the
// names of the schema's columns, which are numbers then, in order. Any other such row is
// data: of columns named 0 and 1, the row 1,0 is.
func isNumberedHeader(names []string, s *Schema) bool {
	return slices.EqualFunc(names, s.Columns, func(name string, col Column) bool { return name != "" && name == col.Name })
}

// parse says what a cell holds. The value keeps cell as its text, also that of a
// customary mark, which is a label where the schema has it as one.
func (c *csvRecords) parse(cell []byte) Value {
	if len(cell) == 0 || slices.ContainsFunc(c.missing, func(m string) bool { return string(cell) == m }) {
		return Value{}
	}
	if isMissing(cell) {
		return Value{Text: cell}
	}
	if x, ok := parseNumber(cell); ok {
		return Value{Kind: Number, Number: x, Text: cell}
	}
	return Value{Kind: String, Text: cell}
}

// IsMark reports whether a text marks a missing cell in files of all kinds, unless a schema has it as a label: it is empty or
// one of the customary marks.
func IsMark(text []byte) bool { return len(text) == 0 || isMissing(text) }

// isMissing reports whether a cell, which is not empty, is one of the customary
// marks: ?, or NA, N/A, null or nan in any case.
func isMissing(cell []byte) bool {
	if len(cell) == 1 {
		return cell[0] == '?'
	}
	if len(cell) > 4 || cell[0]|32 != 'n' {
		return false
	}
	return slices.ContainsFunc(customaryMarks, func(m []byte) bool { return bytes.EqualFold(cell, m) })
}

var customaryMarks = [][]byte{[]byte("na"), []byte("nan"), []byte("n/a"), []byte("null")}

// parseNumber reads a decimal number; false means that the cell is text. Whole numbers of up
// to 15 digits take the short way. Names of numbers, such as Inf and NaN, hexadecimals and
// underscores are text, although strconv would read them. A number beyond float64 comes back
// as an infinity, which the encoder refuses with the cell's place.
func parseNumber(cell []byte) (float64, bool) {
	n, digits := 0, 0
	for _, b := range cell {
		if b -= '0'; b > 9 || digits == 15 {
			break
		}
		n = n*10 + int(b)
		digits++
	}
	if digits == len(cell) {
		return float64(n), digits > 0
	}
	for _, b := range cell {
		if (b < '0' || b > '9') && b != '.' && b != '-' && b != '+' && b != 'e' && b != 'E' {
			return 0, false
		}
	}
	x, err := strconv.ParseFloat(string(cell), 64)
	if err != nil && math.IsInf(x, 0) { // a number, but too large for the encoder
		return x, true
	}
	return x, err == nil
}

func (c *csvRecords) Names() []string { return c.names }

func (c *csvRecords) Columns() int { return len(c.first) }

// Next reads the next row into row, which has a Value per column, or returns io.EOF. The first
// row was read when the file was opened. A row of another length, or text that is not a
// record, gives an error with line and column.
func (c *csvRecords) Next(row []Value) error {
	if c.pending {
		c.pending = false
		c.line = c.firstLine
		copy(row, c.first)
		return c.checkCodes(row)
	}
	cells, err := c.scan.Next()
	if err == io.EOF {
		return err
	}
	if err != nil {
		return c.wrap(err)
	}
	c.line = c.scan.Line()
	if len(cells) != len(row) {
		return badData(c.Where(min(len(cells), len(row))), "row has %d cells, the first row has %d; add or remove cells, or quote those that hold the delimiter", len(cells), len(row))
	}
	for i, cell := range cells {
		row[i] = c.parse(cell)
	}
	return c.checkCodes(row)
}

// checkCodes reports a cell of a .data file that is not a whole number.
func (c *csvRecords) checkCodes(row []Value) error {
	if !c.codes {
		return nil
	}
	for i := range row {
		v := &row[i]
		if v.Kind == String || v.Kind == Number && (v.Number < 0 || v.Number >= MaxCategories || v.Number != math.Trunc(v.Number)) {
			return badData(c.Where(i), "%s is not a whole number from 0 to %d, as .data files hold; name other files .csv", quote(v.Text), MaxCategories-1)
		}
		v.Text = nil
	}
	return nil
}

func (c *csvRecords) Where(col int) string {
	return fmt.Sprintf("%s:%d:%d", c.path, c.line, col+1)
}

func (c *csvRecords) wrap(err error) error {
	var e *fields.Error
	if errors.As(err, &e) {
		return badData(fmt.Sprintf("%s:%d:%d", c.path, e.Line, e.Cell), "%s", e.Problem)
	}
	return badData(c.path, "after line %d: %v; the file may be damaged", c.scan.Line(), err)
}

func (c *csvRecords) Close() error { return c.file.Close() }
