package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/pce-engine/pce/dataset"
)

// framing cuts a file into records and says which of them are rows: those that append
// writes, byte by byte, for some row.
type framing interface {
	// facts says what decompressing needs to know, in a few bytes.
	facts() []byte
	// head is what the file begins with, which is not a record.
	head() []byte
	// columns are the variables of the columns, in the file's order.
	columns() []int32
	// marks is how many ways there are to write a missing cell.
	marks() int
	// next returns the length of the first record of buf with its end, and of the end; 0
	// if buf has no whole record.
	next(buf []byte) (length, end int)
	// parse reads a record without its end, and reports whether it is a row. codes and
	// marks are those of a row of missing cells.
	parse(record []byte, codes []int32, marks []byte) bool
	// append writes a row without its end.
	append(dst []byte, codes []int32, marks []byte) []byte
	// ending is what ends a row.
	ending() string
	// problem says why a record is not a row.
	problem(record []byte) string
}

// The first byte of the facts.
const (
	factLines = 1 + iota
	factFixed
	factChars
)

// newFraming finds out how a file that begins with start is written. Whole says that
// this is all of it.
func newFraming(s *dataset.Schema, start []byte, whole bool) (framing, error) {
	switch {
	case s.Unit == dataset.Char:
		return newChars(s)
	case s.Unit != "":
		return nil, badModel("its rows are %ss, and the spaces between them are not coded; train a model of characters", s.Unit)
	case bytes.HasPrefix(start, []byte("PAR1")):
		return nil, badRows("a Parquet file; write it as CSV")
	}
	if open := arrayOf(start); open != nil {
		return newFixed(s, start, open)
	}
	return newLines(s, start, whole), nil
}

// readFraming reads facts.
func readFraming(s *dataset.Schema, facts []byte) (framing, error) {
	unknown := badFile("it is written in a way that is not known; decompress it with a later pce")
	if len(facts) == 0 {
		return nil, unknown
	}
	switch rest := facts[1:]; facts[0] {
	case factLines:
		return readLines(s, rest)
	case factFixed:
		if len(rest) >= 2 && slices.Contains([]byte{1, 2, 4, 8}, rest[0]) && rest[1] <= 1 && s.Unit == "" {
			return fixedOf(s, int(rest[0]), rest[1] == 1, rest[2:]), nil
		}
	case factChars:
		if len(rest) == 0 && s.Unit == dataset.Char {
			return newChars(s)
		}
	}
	return nil, unknown
}

// identity lists all columns.
func identity(s *dataset.Schema) []int32 {
	out := make([]int32, len(s.Columns))
	for v := range out {
		out[v] = int32(v)
	}
	return out
}

func appendNumbers(dst []byte, numbers []int32) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(numbers)))
	for _, n := range numbers {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

// chars is the framing of a text whose rows are windows of characters.
type chars struct {
	schema *dataset.Schema
	code   map[string]int32
}

func newChars(s *dataset.Schema) (*chars, error) {
	c := &chars{s, make(map[string]int32)}
	for v := range s.Columns {
		if labels := s.Columns[v].Labels; labels == nil || !slices.Equal(labels, s.Columns[0].Labels) {
			return nil, badModel("its rows are text, and its columns do not have one list of characters")
		}
	}
	for code, l := range s.Columns[0].Labels {
		if utf8.RuneCountInString(l) == 1 && utf8.ValidString(l) {
			c.code[l] = int32(code)
		}
	}
	return c, nil
}

func (c *chars) facts() []byte    { return []byte{factChars} }
func (c *chars) head() []byte     { return nil }
func (c *chars) columns() []int32 { return identity(c.schema) }
func (c *chars) marks() int       { return 0 }
func (c *chars) ending() string   { return "" }

func (c *chars) next(buf []byte) (length, end int) {
	n := 0
	for range c.schema.Columns {
		if !utf8.FullRune(buf[n:]) {
			return 0, 0
		}
		_, size := utf8.DecodeRune(buf[n:])
		n += size
	}
	return n, 0
}

func (c *chars) parse(record []byte, codes []int32, _ []byte) bool {
	for v := range codes {
		_, size := utf8.DecodeRune(record)
		code, ok := c.code[string(record[:size])]
		if !ok {
			return false
		}
		codes[v], record = code, record[size:]
	}
	return len(record) == 0
}

func (c *chars) append(dst []byte, codes []int32, _ []byte) []byte {
	for v, code := range codes {
		dst = append(dst, c.schema.Columns[v].Labels[code]...)
	}
	return dst
}

func (c *chars) problem(record []byte) string {
	if utf8.RuneCount(record) < len(c.schema.Columns) {
		return fmt.Sprintf("the text has fewer than the %d characters of a row", len(c.schema.Columns))
	}
	return "it has characters that the model does not tell apart"
}
