// Package fields cuts delimited text (CSV and its kin) into records of cells.
//
// # Shapes and units
//
// Lines and cells are counted from 1. Cells are bytes without their quotes and
// without the blanks around them.
//
// # Errors
//
// Errors about the text are of type *Error and say line, cell and what to do.
//
// # Source
//
// RFC 4180, with four freedoms: the delimiter is the caller's choice, lines may
// end in LF or in CR, a byte order mark is skipped, and so are blank lines.
package fields

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Limits on one record.
const (
	MaxRecordBytes = 64 << 20
	MaxCells       = 1 << 20
)

// Error says why a text is not a record.
type Error struct {
	Line, Cell int
	Problem    string
	Unclosed   bool // the text ends within quotes, which more of it may close
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Cell, e.Problem) }

// Dialect is how records are written.
type Dialect struct {
	Delimiter byte // between cells
	CR        bool // lines end in CR, not in LF or CR LF
}

// Scanner reads records one after another in bounded memory.
type Scanner struct {
	r         *bufio.Reader
	delimiter byte
	end, odd  byte     // the byte that ends a line, and the one that must not
	blanks    string   // that are cut off cells: the delimiter is none of them
	line      int      // first line of the record read last
	lines     int      // lines read so far
	long      []byte   // a line that does not fit r's buffer
	record    []byte   // first line of a record with quotes
	bytes     int      // of the lines that follow it
	cells     [][]byte // of the record read last
}

// NewScanner returns a scanner of r, which is written in the dialect d.
func NewScanner(r io.Reader, d Dialect) *Scanner {
	s := &Scanner{r: bufio.NewReaderSize(r, 1<<16), delimiter: d.Delimiter, end: '\n', odd: '\r', blanks: " \t"}
	if d.CR {
		s.end, s.odd = '\r', '\n'
	}
	if d.Delimiter == '\t' {
		s.blanks = " "
	}
	return s
}

// Line returns the line on which the record read last began.
func (s *Scanner) Line() int { return s.line }

// Next returns the cells of the next record, or io.EOF. They are valid until
// the next call.
func (s *Scanner) Next() ([][]byte, error) {
	for {
		line, err := s.readLine()
		if err != nil {
			return nil, err
		}
		s.line = s.lines
		if len(bytes.Trim(line, s.blanks)) == 0 {
			continue
		}
		s.cells = s.cells[:0]
		if bytes.IndexByte(line, '"') >= 0 {
			err = s.splitQuoted(line)
		} else {
			err = s.split(line)
		}
		return s.cells, err
	}
}

// readLine returns the next line without its end and, at the start of the file, without a byte
// order mark. The bytes are valid until the next call. A line of more than MaxRecordBytes is an
// error, so that a file which is not text does not fill the memory.
func (s *Scanner) readLine() ([]byte, error) {
	line, err := s.r.ReadSlice(s.end)
	if err == bufio.ErrBufferFull {
		s.long = s.long[:0]
		for err == bufio.ErrBufferFull {
			if len(s.long)+len(line) > MaxRecordBytes {
				return nil, &Error{Line: s.lines + 1, Cell: 1, Problem: fmt.Sprintf("line is longer than %d MiB; is this a text file?", MaxRecordBytes>>20)}
			}
			s.long = append(s.long, line...)
			line, err = s.r.ReadSlice(s.end)
		}
		s.long = append(s.long, line...)
		line = s.long
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	if s.lines == 0 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	s.lines++
	if n := len(line); n > 0 && line[n-1] == s.end {
		line = line[:n-1]
	}
	return bytes.TrimRight(line, "\r"), nil // some programs write CR CR LF
}

func (s *Scanner) add(cell []byte) error {
	if len(s.cells) == MaxCells {
		return s.errorf("more than %d cells in a row; is this the right delimiter?", MaxCells)
	}
	s.cells = append(s.cells, cell)
	return nil
}

// addPlain adds a cell without quotes.
func (s *Scanner) addPlain(cell []byte) error {
	if bytes.IndexByte(cell, s.odd) >= 0 {
		return s.errorf("line ends are written in several ways (CR and LF); write all of them as LF")
	}
	return s.add(bytes.Trim(cell, s.blanks))
}

func (s *Scanner) errorf(format string, args ...any) *Error {
	return &Error{Line: s.line, Cell: len(s.cells) + 1, Problem: fmt.Sprintf(format, args...)}
}

// split cuts a line without quotes.
func (s *Scanner) split(line []byte) error {
	for {
		i := bytes.IndexByte(line, s.delimiter)
		if i < 0 {
			return s.addPlain(line)
		}
		if err := s.addPlain(line[:i]); err != nil {
			return err
		}
		line = line[i+1:]
	}
}

// splitQuoted cuts a record with quotes, reading on where a quote spans lines.
// Unquoted cells are copied to record, like the others.
func (s *Scanner) splitQuoted(line []byte) error {
	s.record, s.bytes = append(s.record[:0], line...), 0
	rest := s.record
	for {
		cell := bytes.TrimLeft(rest, s.blanks)
		if len(cell) == 0 || cell[0] != '"' {
			i := bytes.IndexByte(rest, s.delimiter)
			if i < 0 {
				return s.addPlain(rest)
			}
			if err := s.addPlain(rest[:i]); err != nil {
				return err
			}
			rest = rest[i+1:]
			continue
		}
		text, after, err := s.unquote(cell[1:])
		if err != nil {
			return err
		}
		after = bytes.TrimLeft(after, s.blanks)
		if len(after) > 0 && after[0] != s.delimiter {
			return s.errorf("text after a closing quote; write a quote within quotes twice")
		}
		if err := s.add(text); err != nil {
			return err
		}
		if len(after) == 0 {
			return nil
		}
		rest = after[1:]
	}
}

// unquote returns the text up to the closing quote, with "" as one, and what comes after it. in
// begins behind the opening quote; a quoted cell may continue over lines, up to MaxRecordBytes
// in all. A quote that is never closed is an error at the place where it opens.
func (s *Scanner) unquote(in []byte) (text, after []byte, err error) {
	for {
		i := bytes.IndexByte(in, '"')
		if i < 0 {
			text = append(text, in...)
			line, err := s.readLine()
			if s.bytes += len(line); s.bytes > MaxRecordBytes {
				return nil, nil, s.errorf("row is longer than %d MiB; is a closing quote missing?", MaxRecordBytes>>20)
			}
			if err == io.EOF {
				open := s.errorf("a quote is opened and never closed")
				open.Unclosed = true
				return nil, nil, open
			}
			if err != nil {
				return nil, nil, err
			}
			text = append(text, '\n')
			in = bytes.Clone(line)
			continue
		}
		text = append(text, in[:i]...)
		in = in[i+1:]
		if len(in) == 0 || in[0] != '"' {
			return text, in, nil
		}
		text = append(text, '"')
		in = in[1:]
	}
}
