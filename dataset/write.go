package dataset

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/dataset/ndarray"
)

// Writer writes batches of rows. Close writes what is left, and does not close
// what is below.
type Writer interface {
	Write(b *Batch) error
	Close() error
}

// NumberWriter writes rows of numbers, such as the results of queries. Close
// writes what is left, and does not close what is below.
type NumberWriter interface {
	Write(row []float64) error
	Close() error
}

var errNPYRows = badSetting("the rows of a .npy file must be counted before it is written; write .csv")

// NewWriter returns a writer of rows of s in the format of path's extension:
// .csv, .npy, .png for images, or .txt for text. rows is how many rows will be written;
// -1, for .csv and .txt alone: not known.
func NewWriter(w io.Writer, path string, s *Schema, rows int) (Writer, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return &csvWriter{w: bufio.NewWriter(w), schema: s}, nil
	case ".npy":
		return newNPYWriter(w, s, rows)
	case ".png":
		return newPNGWriter(w, s, rows)
	case ".txt":
		if s.Unit == "" {
			return nil, badSetting("%s: the rows are not text; write .csv", path)
		}
		return &textWriter{w: bufio.NewWriter(w), schema: s}, nil
	}
	return nil, badSetting("%s: output files end in .csv, .npy, .png for images, or .txt for text", path)
}

// NewNumberWriter returns a writer of rows of cols numbers in the format of
// path's extension, .csv or .npy. rows is how many rows will be written; -1, for .csv
// alone: not known.
func NewNumberWriter(w io.Writer, path string, rows, cols int) (NumberWriter, error) {
	n := &numberWriter{w: bufio.NewWriter(w), rows: rows, cols: cols}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".csv":
		return n, nil
	case ".npy":
		if n.npy = true; rows < 0 {
			return nil, errNPYRows
		}
		return n, ndarray.WriteNPYHeader(n.w, ndarray.DType{Kind: 'f', Size: 8}, rows, cols)
	}
	return nil, badSetting("%s: output files of numbers end in .csv or .npy", path)
}

type numberWriter struct {
	w          *bufio.Writer
	npy        bool
	rows, cols int
	written    int
	line       []byte
}

// Write writes one row. A row of another length, or more rows than were announced, is an
// error: a .npy file says its shape in front. Text has the shortest form of a number that
// reads back to the same float64.
func (n *numberWriter) Write(row []float64) error {
	if n.written == n.rows || len(row) != n.cols {
		return badSetting("row %d of %d numbers written to a file of %d x %d", n.written+1, len(row), n.rows, n.cols)
	}
	n.written++
	n.line = n.line[:0]
	for i, x := range row {
		switch {
		case n.npy:
			n.line = binary.LittleEndian.AppendUint64(n.line, math.Float64bits(x))
		case i > 0:
			n.line = append(n.line, ',')
			fallthrough
		default:
			n.line = strconv.AppendFloat(n.line, x, 'g', -1, 64)
		}
	}
	if !n.npy {
		n.line = append(n.line, '\n')
	}
	_, err := n.w.Write(n.line)
	return err
}

func (n *numberWriter) Close() error {
	if n.rows >= 0 && n.written != n.rows {
		return badSetting("%d of %d rows were written", n.written, n.rows)
	}
	return n.w.Flush()
}

// csvWriter writes rows without a header: labels where there are some, numbers
// in the shortest form that reads back, missing cells empty. A missing cell of
// a table of one column is a question mark, as blank lines are skipped.
type csvWriter struct {
	w      *bufio.Writer
	schema *Schema
	line   []byte
}

func (c *csvWriter) Write(b *Batch) error {
	for r := range b.Rows {
		c.line = c.line[:0]
		for i := range b.Columns {
			if i > 0 {
				c.line = append(c.line, ',')
			}
			if err := c.cell(&b.Columns[i], i, r); err != nil {
				return err
			}
		}
		c.line = append(c.line, '\n')
		if _, err := c.w.Write(c.line); err != nil {
			return err
		}
	}
	return nil
}

func (c *csvWriter) cell(cells *Cells, col, row int) error {
	column := &c.schema.Columns[col]
	missing := cells.IsMissing(row)
	switch {
	case cells.Text != nil && cells.Text[row] != nil:
		c.line = appendLabel(c.line, string(cells.Text[row]))
	case missing && len(c.schema.Columns) == 1:
		c.line = append(c.line, '?')
	case missing:
	case column.Kind == Continuous:
		c.line = column.appendNumber(c.line, cells.Values[row])
	case cells.Codes.At(row) >= column.Categories:
		return badSetting("code %d of %s, which has %d categories", cells.Codes.At(row), c.schema.ColumnName(col), column.Categories)
	case column.Labels == nil:
		c.line = strconv.AppendInt(c.line, int64(cells.Codes.At(row)), 10)
	default:
		c.line = appendLabel(c.line, column.Labels[cells.Codes.At(row)])
	}
	return nil
}

// appendLabel quotes a label that would read back as something else.
func appendLabel(line []byte, label string) []byte {
	// A file that starts with the bytes 1f 8b is taken for gzip, U+FEFF there for the mark of an encoding, and a file whose
	// rows are cut evenly by semicolons or tabs for a table with these.
	if !strings.ContainsAny(label, ",;\t\"\n\r\x1f\ufeff") && strings.TrimSpace(label) == label {
		return append(line, label...)
	}
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(label, `"`, `""`)...)
	return append(line, '"')
}

func (c *csvWriter) Close() error { return c.w.Flush() }

// npyWriter writes codes as u1, u2 or u4, and numbers, or codes beside numbers, as
// f8. A category whose label is a number is written as that number.
type npyWriter struct {
	w       *bufio.Writer
	schema  *Schema
	labels  [][]float64 // by column: the numbers of its labels, nil for others
	dtype   ndarray.DType
	rows    int
	written int
	line    []byte
}

// newNPYWriter writes the header of an array that takes rows of s and returns a writer of its
// rows. The type is the smallest integer that holds all codes, or float64 where a column has
// numbers. The number of rows must be known, because the header comes first.
func newNPYWriter(w io.Writer, s *Schema, rows int) (Writer, error) {
	if rows < 0 {
		return nil, errNPYRows
	}
	n := &npyWriter{w: bufio.NewWriter(w), schema: s, labels: make([][]float64, len(s.Columns)), rows: rows, dtype: ndarray.DType{Kind: 'u', Size: 1}}
	reals := false
	for i, c := range s.Columns {
		if i > 0 && sameLabels(c.Labels, s.Columns[i-1].Labels) {
			n.labels[i] = n.labels[i-1]
		} else {
			n.labels[i] = c.LabelNumbers()
		}
		reals = reals || c.Kind == Continuous || n.labels[i] != nil
		switch {
		case c.Categories > 1<<16:
			n.dtype.Size = 4
		case c.Categories > 1<<8:
			n.dtype.Size = max(n.dtype.Size, 2)
		}
	}
	if reals {
		n.dtype = ndarray.DType{Kind: 'f', Size: 8}
	}
	shape := []int{rows, len(s.Columns)}
	if s.Image != [3]int{} {
		shape = append(shape[:1], s.Image[:]...)
		if s.Image[2] == 1 {
			shape = shape[:3]
		}
	}
	return n, ndarray.WriteNPYHeader(n.w, n.dtype, shape...)
}

// Write writes the rows of b. More rows than the header says, a code beyond its column's
// categories and a missing cell in an array of integers are errors; what was written before
// stays in the file.
func (n *npyWriter) Write(b *Batch) error {
	if n.written += b.Rows; n.written > n.rows {
		return badSetting("more than %d rows written", n.rows)
	}
	for r := range b.Rows {
		n.line = n.line[:0]
		for i := range b.Columns {
			c := &b.Columns[i]
			if column := &n.schema.Columns[i]; c.Discrete() && c.Codes.At(r) >= column.Categories {
				return badSetting("code %d of %s, which has %d categories", c.Codes.At(r), n.schema.ColumnName(i), column.Categories)
			}
			if n.dtype.Kind == 'f' {
				n.line = binary.LittleEndian.AppendUint64(n.line, math.Float64bits(n.number(i, c, r)))
				continue
			}
			switch code := c.Codes.At(r); {
			case code == Missing:
				return badSetting("a cell of %s is missing, which a .npy file of whole numbers cannot say; write .csv", n.schema.ColumnName(i))
			case n.dtype.Size == 4:
				n.line = binary.LittleEndian.AppendUint32(n.line, uint32(code))
			case n.dtype.Size == 2:
				n.line = binary.LittleEndian.AppendUint16(n.line, uint16(code))
			default:
				n.line = append(n.line, byte(code))
			}
		}
		if _, err := n.w.Write(n.line); err != nil {
			return err
		}
	}
	return nil
}

// number returns a cell of a column as a number, NaN if it is missing: what the file
// says if that is known.
func (n *npyWriter) number(col int, c *Cells, row int) float64 {
	switch {
	case c.Discrete() && c.IsMissing(row):
		return math.NaN()
	case c.Discrete() && n.labels[col] != nil:
		return n.labels[col][c.Codes.At(row)]
	case c.Discrete():
		return float64(c.Codes.At(row))
	case c.Text != nil && c.Text[row] != nil:
		if x, ok := parseNumber(c.Text[row]); ok {
			return x
		}
	}
	return n.schema.Columns[col].Number(c.Values[row])
}

func (n *npyWriter) Close() error {
	if n.written != n.rows {
		return badSetting("%d of %d rows were written", n.written, n.rows)
	}
	return n.w.Flush()
}
