package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/dataset"
)

// style is how a table in text is written.
type style struct {
	delimiter byte // index into delimiters
	end       byte // index into lineEnds
	quotes    byte // one of the quote constants
}

var (
	delimiters = []string{",", ";", "\t", ", ", "; ", " ", "|"}
	lineEnds   = []string{"\n", "\r\n", "\r"}
)

// Text in quotes.
const (
	quoteNeeded byte = iota // what would be read as something else
	quotePCE                // that, and what pce writes in quotes beside
	quoteTexts              // every label that is not a number
	quoteAll                // every cell
	quoteStyles
)

// customaryMarks are ways to write a missing cell, beside those of the schema.
var customaryMarks = []string{"", "?", "NA", "NaN", "nan", "N/A", "n/a", "null", "NULL", "na", "Na", "Null", "NAN"}

// lines is the framing of a table in text.
type lines struct {
	schema *dataset.Schema
	style  style
	vars   []int32 // of the columns
	first  []byte  // the line of the columns' names with its end, if there is one

	delimiter, end string
	cells          []*cellTexts // [columns]
	marked         []string     // ways to write a missing cell
}

// cellTexts are the texts of a column's codes.
type cellTexts struct {
	labels []string // nil: numbers below categories
	quote  bool     // also numbers
	count  int
	codes  map[string]int32
}

// sampleLines is how many lines of a file are tried in every style.
const sampleLines = 64

// newLines returns the framing in which most of the first lines of a table in text are rows of
// the model; whole says that start is all of it. Line ends, delimiters and ways to quote that
// occur are tried, each with the names in the first line if it has some. There is always one, as
// lines that are not rows are stored as text.
func newLines(s *dataset.Schema, start []byte, whole bool) *lines {
	quotes := []byte{quoteNeeded}
	if bytes.IndexByte(start, '"') >= 0 {
		quotes = []byte{quoteNeeded, quotePCE, quoteTexts, quoteAll}
	}
	var best *lines
	most := -1
	for _, end := range endsIn(start) {
		sample := sampleOf(start, lineEnds[end], whole)
		for _, q := range quotes {
			for d, delimiter := range delimiters {
				if d > 0 && !slices.ContainsFunc(sample, func(line []byte) bool { return bytes.Contains(line, []byte(delimiter)) }) {
					continue
				}
				l := linesOf(s, style{byte(d), end, q}, nil)
				if len(sample) > 0 {
					l.readNames(sample[0])
				}
				l.prepare()
				rows := l.rows(sample)
				if l.named() {
					rows++
				}
				if rows > most {
					best, most = l, rows
				}
			}
		}
	}
	return best
}

// endsIn returns the line ends that occur in start, as indices into lineEnds: LF if none does.
// CR LF is the first, as its bytes are the others' too.
func endsIn(start []byte) (ends []byte) {
	both := bytes.Count(start, []byte("\r\n"))
	if both > 0 {
		ends = append(ends, 1)
	}
	if bytes.Count(start, []byte("\n")) > both {
		ends = append(ends, 0)
	}
	if bytes.Count(start, []byte("\r")) > both {
		ends = append(ends, 2)
	}
	if ends == nil {
		ends = []byte{0}
	}
	return ends
}

// sampleOf cuts the first lines; the last one counts if it is whole.
func sampleOf(start []byte, end string, whole bool) [][]byte {
	var out [][]byte
	for len(out) < sampleLines && len(start) > 0 {
		line, rest, found := bytes.Cut(start, []byte(end))
		if !found && !whole {
			break
		}
		out, start = append(out, line), rest
	}
	return out
}

func (l *lines) rows(sample [][]byte) (rows int) {
	codes, marks := make([]int32, len(l.schema.Columns)), make([]byte, len(l.schema.Columns))
	for _, line := range sample {
		if l.parse(line, codes, marks) {
			rows++
		}
	}
	return rows
}

func linesOf(s *dataset.Schema, st style, vars []int32) *lines {
	if vars == nil {
		vars = identity(s)
	}
	return &lines{schema: s, style: st, vars: vars, delimiter: delimiters[st.delimiter], end: lineEnds[st.end]}
}

// readNames takes the columns from the first line of a file if it has names of the
// schema's columns, each once, and nothing else but the byte order mark that spreadsheets write.
func (l *lines) readNames(line []byte) {
	place := make(map[string]int32)
	for v := range l.schema.Columns {
		if name := l.schema.Columns[v].Name; name != "" {
			place[name] = int32(v)
		}
	}
	var vars []int32
	for rest, more := bytes.TrimPrefix(line, []byte("\ufeff")), true; more; {
		var cell []byte
		cell, rest, more = l.cut(rest)
		v, known := place[unquote(cell)]
		if !known {
			return
		}
		delete(place, unquote(cell))
		vars = append(vars, v)
	}
	l.vars, l.first = vars, []byte(string(line)+l.end)
}

// header returns the line of names as the style writes it.
func (l *lines) header() []byte {
	names := make([]string, len(l.vars))
	for k, v := range l.vars {
		names[k] = l.quoted(l.schema.Columns[v].Name)
	}
	return []byte(strings.Join(names, l.delimiter) + l.end)
}

// named reports whether the file begins with the line of names as the style writes it.
func (l *lines) named() bool { return l.first != nil && bytes.Equal(l.first, l.header()) }

// cut splits a line after its first cell.
func (l *lines) cut(line []byte) (cell, rest []byte, more bool) {
	at := 0
	if len(line) > 0 && line[0] == '"' {
		for at = 1; at < len(line); at++ { // to the closing quote
			if line[at] != '"' {
				continue
			}
			if at+1 == len(line) || line[at+1] != '"' {
				break
			}
			at++
		}
		at = min(at, len(line))
	}
	if i := bytes.Index(line[at:], []byte(l.delimiter)); i >= 0 {
		return line[:at+i], line[at+i+len(l.delimiter):], true
	}
	return line, nil, false
}

// quoted returns a text as the style writes it.
func (l *lines) quoted(text string) string {
	needed := strings.Contains(text, l.delimiter) || strings.ContainsAny(text, "\"\r\n")
	switch l.style.quotes {
	case quotePCE:
		needed = needed || strings.ContainsAny(text, ",;\t\x1f") || strings.TrimSpace(text) != text
	case quoteTexts:
		_, err := strconv.ParseFloat(text, 64)
		needed = needed || err != nil
	case quoteAll:
		needed = true
	}
	if !needed {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

func unquote(cell []byte) string {
	if len(cell) < 2 || cell[0] != '"' || cell[len(cell)-1] != '"' {
		return string(cell)
	}
	return strings.ReplaceAll(string(cell[1:len(cell)-1]), `""`, `"`)
}

// prepare makes the texts of all cells: the marks of missing ones, and the labels with their
// quotes. It is called once the style is settled. Columns that share labels share their texts.
func (l *lines) prepare() {
	for _, m := range slices.Concat(l.schema.Missing, customaryMarks) {
		if l.style.quotes == quoteAll {
			m = l.quoted(m)
		}
		if !slices.Contains(l.marked, m) && len(l.marked) < 255 {
			l.marked = append(l.marked, m)
		}
	}
	known := make(map[*string]*cellTexts) // by the first of the labels, which columns share
	for _, v := range l.vars {
		c := &l.schema.Columns[v]
		if c.Labels == nil {
			l.cells = append(l.cells, &cellTexts{count: c.Categories, quote: l.style.quotes == quoteAll})
			continue
		}
		t := known[&c.Labels[0]]
		if t == nil {
			t = &cellTexts{count: len(c.Labels), labels: make([]string, len(c.Labels)), codes: make(map[string]int32, len(c.Labels))}
			for code, label := range c.Labels {
				t.labels[code] = l.quoted(label)
				if _, twice := t.codes[t.labels[code]]; !twice {
					t.codes[t.labels[code]] = int32(code)
				}
			}
			known[&c.Labels[0]] = t
		}
		l.cells = append(l.cells, t)
	}
}

// code returns the code whose text a cell is, exactly as append writes it: other spellings of a
// number, such as 07, are not that code, since they would not come back.
func (t *cellTexts) code(cell []byte) (int32, bool) {
	if t.labels != nil {
		code, ok := t.codes[string(cell)]
		return code, ok
	}
	if t.quote {
		if len(cell) < 3 || cell[0] != '"' || cell[len(cell)-1] != '"' {
			return 0, false
		}
		cell = cell[1 : len(cell)-1]
	}
	if len(cell) == 0 || len(cell) > 8 || cell[0] == '0' && len(cell) > 1 {
		return 0, false
	}
	code := 0
	for _, b := range cell {
		if b < '0' || b > '9' {
			return 0, false
		}
		code = 10*code + int(b-'0')
	}
	return int32(code), code < t.count
}

func (t *cellTexts) append(dst []byte, code int32) []byte {
	switch {
	case t.labels != nil:
		return append(dst, t.labels[code]...)
	case t.quote:
		dst = strconv.AppendInt(append(dst, '"'), int64(code), 10)
		return append(dst, '"')
	}
	return strconv.AppendInt(dst, int64(code), 10)
}

// The flags of the facts.
const (
	flagNames   = 1 << iota // the first line has the names, as the style writes them
	flagFirst               // the first line has the names, and follows at the end
	flagColumns             // the variables of the columns follow
)

// facts is what the header of a file says of its lines: style, names or first line, and the
// variables of the columns where they are not all of them in order. readLines reads it.
func (l *lines) facts() []byte {
	flags := byte(0)
	switch {
	case l.named():
		flags = flagNames
	case l.first != nil:
		flags = flagFirst
	}
	inOrder := slices.Equal(l.vars, identity(l.schema))
	if !inOrder {
		flags |= flagColumns
	}
	out := []byte{factLines, l.style.delimiter<<4 | l.style.end<<2 | l.style.quotes, flags}
	if !inOrder {
		out = appendNumbers(out, l.vars)
	}
	if flags&flagFirst != 0 {
		out = append(out, l.first...)
	}
	return out
}

// readLines is the inverse of facts. It refuses what facts does not write, so that a damaged
// header is found here and not in the rows.
func readLines(s *dataset.Schema, facts []byte) (framing, error) {
	bad := badFile("what it says of its columns makes no sense")
	if len(facts) < 2 || s.Unit != "" {
		return nil, bad
	}
	st := style{facts[0] >> 4, facts[0] >> 2 & 3, facts[0] & 3}
	flags := facts[1]
	if int(st.delimiter) >= len(delimiters) || int(st.end) >= len(lineEnds) || flags >= 2*flagColumns {
		return nil, bad
	}
	var vars []int32
	if facts = facts[2:]; flags&flagColumns != 0 {
		var ok bool
		if vars, facts, ok = readColumns(facts, len(s.Columns)); !ok {
			return nil, bad
		}
	}
	l := linesOf(s, st, vars)
	switch flags &^ flagColumns {
	case flagNames:
		l.first = l.header()
	case flagFirst:
		l.first, facts = facts, nil
	case flagNames | flagFirst:
		return nil, bad
	}
	if len(facts) > 0 {
		return nil, bad
	}
	l.prepare()
	return l, nil
}

// readColumns reads what appendNumbers wrote: different variables below width.
func readColumns(b []byte, width int) (vars []int32, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n == 0 || n > uint64(width) {
		return nil, nil, false
	}
	seen := make([]bool, width)
	for range n {
		b = b[size:]
		var v uint64
		if v, size = binary.Uvarint(b); size <= 0 || v >= uint64(width) || seen[v] {
			return nil, nil, false
		}
		seen[v] = true
		vars = append(vars, int32(v))
	}
	return vars, b[size:], true
}

func (l *lines) head() []byte     { return l.first }
func (l *lines) columns() []int32 { return l.vars }
func (l *lines) marks() int       { return len(l.marked) }
func (l *lines) ending() string   { return l.end }

func (l *lines) next(buf []byte) (length, end int) {
	i := bytes.Index(buf, []byte(l.end))
	if i < 0 {
		return 0, 0
	}
	return i + len(l.end), len(l.end)
}

// parse reads a record as a row: codes, and for missing cells which mark it was. It reports
// whether append would write exactly these bytes; if not, the record is stored as text.
func (l *lines) parse(record []byte, codes []int32, marks []byte) bool {
	rest, more := record, true
	for k, v := range l.vars {
		if !more {
			return false
		}
		var cell []byte
		cell, rest, more = l.cut(rest)
		if code, ok := l.cells[k].code(cell); ok {
			codes[v] = code
			continue
		}
		mark := slices.IndexFunc(l.marked, func(m string) bool { return string(cell) == m })
		if mark < 0 {
			return false
		}
		codes[v], marks[v] = absent, byte(mark)
	}
	// A line without any cell is not a row of one missing cell.
	return !more && len(record) > 0
}

func (l *lines) append(dst []byte, codes []int32, marks []byte) []byte {
	for k, v := range l.vars {
		if k > 0 {
			dst = append(dst, l.delimiter...)
		}
		if code := codes[v]; code == absent {
			dst = append(dst, l.marked[marks[v]]...)
		} else {
			dst = l.cells[k].append(dst, code)
		}
	}
	return dst
}

func (l *lines) problem(record []byte) string {
	if bytes.IndexByte(record, 0) >= 0 {
		return "it has zero bytes, as tables in UTF-16 have; convert the file to UTF-8"
	}
	var cells [][]byte
	for rest, more := record, true; more; {
		var cell []byte
		cell, rest, more = l.cut(rest)
		cells = append(cells, cell)
	}
	if len(cells) != len(l.vars) {
		return fmt.Sprintf("it has %d cells, want %d", len(cells), len(l.vars))
	}
	for k, cell := range cells {
		if _, known := l.cells[k].code(cell); !known && !slices.Contains(l.marked, string(cell)) {
			return fmt.Sprintf("%.40q is not how pce writes a category of %s", cell, l.schema.ColumnName(int(l.vars[k])))
		}
	}
	return "it is empty"
}
