package forest

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// whatNames are the names of results, by What.
var whatNames = []string{"prediction", "margin", "leaf", "class"}

// String returns the name of a kind of results, as commands and configs write it.
func (w What) String() string {
	if int(w) < len(whatNames) {
		return whatNames[w]
	}
	return "unknown"
}

// ParseWhat returns the kind of results of a name that String gives. For any other name it fails
// with an error that matches ErrRequest.
func ParseWhat(name string) (What, error) {
	if i := slices.Index(whatNames, name); i >= 0 {
		return What(i), nil
	}
	return 0, fmt.Errorf("%w: %.40q is not a kind of results (want one of %s)", ErrRequest, name, strings.Join(whatNames, ", "))
}

// Precision returns the type of predictions and raw scores in the library that trained the forest.
func (f *Forest) Precision(what What) Precision {
	if what == Margin && f.Sum == Float64 {
		return Float64
	}
	return f.Output
}

// Writer writes results as text: a line for each row, with commas between its numbers, each in
// the shortest form that reads back in the library's type, and classes by their labels. It is
// for one goroutine. Close it to write what it still holds.
type Writer struct {
	to     *bufio.Writer
	what   What
	labels []string // of classes; nil: their numbers
	bits   int      // of numbers
	line   []byte
}

// NewWriter returns a writer of results of f.
func NewWriter(w io.Writer, f *Forest, what What) *Writer {
	out := &Writer{to: bufio.NewWriterSize(w, 1<<16), what: what, bits: 64}
	if what == Class {
		out.labels = f.Labels
	}
	if f.Precision(what) == Float32 {
		out.bits = 32
	}
	return out
}

// Write writes the results of a row, which Evaluate gave: a class is one of the forest's.
func (w *Writer) Write(row []float64) error {
	w.line = w.line[:0]
	for i, x := range row {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		switch {
		case w.labels != nil:
			w.line = append(w.line, QuoteLabel(w.labels[int(x)])...)
		case w.what == Class || w.what == Leaves:
			w.line = strconv.AppendInt(w.line, int64(x), 10)
		default:
			w.line = strconv.AppendFloat(w.line, x, 'g', -1, w.bits)
		}
	}
	w.line = append(w.line, '\n')
	_, err := w.to.Write(w.line)
	return err
}

// Close writes what the writer still holds. It does not close what it writes to.
func (w *Writer) Close() error { return w.to.Flush() }

// QuoteLabel returns a label as a cell of CSV: in quotes where it would be read as something else. Readers drop blanks around a
// cell and lines without one, and take a file whose rows are cut evenly by semicolons or tabs for a table with these, one that
// begins with U+FEFF for text with the mark of an encoding, and one that begins with the bytes 1f 8b for gzip.
func QuoteLabel(s string) string {
	if s == "" || strings.ContainsAny(s, ",;\t\"\r\n\x1f\ufeff") || strings.TrimSpace(s) != s {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}
