// Package parquet reads Parquet files as tables for package dataset. It is a
// package of its own because of what it imports; a program that wants it calls
//
//	dataset.Register(".parquet", parquet.Format)
//
// # Shapes and units
//
// A column is a leaf at the top of the file's schema: a number, a Boolean (0 or
// 1) or a text. Nested and repeated columns, decimals, and numbers of 96 bits
// are refused, not guessed at. A null, an empty text and the customary marks, such as NA, are missing cells.
//
// # Errors
//
// Errors match dataset.ErrFormat and count rows as lines. The decoder is a
// foreign one: where it panics on a damaged file, that becomes such an error.
//
// # Source
//
// Files are decoded by github.com/parquet-go/parquet-go, but for columns of Booleans and for those of integers of 32 bits that have pages of differences,
// some of which come out of it wrong or not at all (v0.32.0).
package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pce-engine/pce/dataset"
)

// Format is the format of .parquet files.
var Format = dataset.Format{Open: open}

const (
	maxColumns = parquet.MaxColumnIndex // the decoder numbers them in 16 bits and panics beyond
	rowsAtOnce = 64
)

// records are the rows of a file, one row group after another.
type records struct {
	path   string
	file   *os.File
	names  []string
	kinds  []kind
	groups []parquet.RowGroup // yet to be read
	chunks []format.RowGroup  // where their columns are
	now    []column           // of the group that is read
	left   int64              // its rows that are yet to come
	line   int                // rows handed out
}

// kind is how the values of a column are read.
type kind struct {
	physical parquet.Kind
	unsigned bool
	optional bool
}

func open(_ context.Context, path string, _ *dataset.Options) (recs dataset.Records, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe waits for its writer
		return nil, fmt.Errorf("%w: %s: not a regular file, and Parquet is read from its end; write the rows to a file", dataset.ErrFormat, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w; check the path", err)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	r := &records{path: path, file: f}
	if err := r.guard(func() error { return r.open(f) }); err != nil {
		return nil, err
	}
	return r, nil
}

// open reads the footer of f and the types of its columns, which must be flat and of types that
// are numbers or texts. The footer is walked first, as a damaged one could make the library
// allocate without bound.
func (r *records) open(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := checkFooter(f, info.Size()); err != nil {
		return r.bad("%v", err)
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return r.bad("%v; is this a Parquet file?", err)
	}
	columns := file.Root().Columns()
	if len(columns) == 0 || len(columns) > maxColumns {
		return r.bad("has %d columns; it takes 1 to %d", len(columns), maxColumns)
	}
	for _, c := range columns {
		k, problem := kindOf(c)
		if problem != "" {
			return r.bad("column %q %s; convert it or write the file without it", c.Name(), problem)
		}
		r.names = append(r.names, c.Name())
		r.kinds = append(r.kinds, k)
	}
	for _, g := range file.Metadata().RowGroups {
		for _, c := range g.Columns {
			// The library's decoder of LZ4 doubles its memory without end where a page is damaged.
			if codec := c.MetaData.Codec; codec == format.Lz4 || codec == format.Lz4Raw {
				return r.bad("column %q is packed with LZ4, which is not read; write the file with snappy or zstd", strings.Join(c.MetaData.PathInSchema, "."))
			}
		}
	}
	r.groups, r.chunks = file.RowGroups(), file.Metadata().RowGroups
	return nil
}

// kindOf returns how a column is read, or why it cannot be.
func kindOf(c *parquet.Column) (k kind, problem string) {
	if !c.Leaf() || c.Repeated() {
		return k, "is nested or repeated"
	}
	k.physical, k.optional = c.Type().Kind(), c.Optional()
	if t := c.Type().LogicalType(); t != nil {
		switch v := t.Value.(type) {
		case *format.DecimalType:
			return k, "is decimal"
		case *format.IntType:
			k.unsigned = !v.IsSigned
		}
	}
	switch k.physical {
	case parquet.Boolean, parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.ByteArray:
		return k, ""
	}
	return k, fmt.Sprintf("has the type %v", c.Type())
}

// guard calls the foreign decoder and turns a panic into an error.
func (r *records) guard(decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.bad("the decoder gave up (%v); the file is damaged, or has more than %d columns", p, maxColumns)
		}
	}()
	return decode()
}

func (r *records) bad(text string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", dataset.ErrFormat, r.path, fmt.Sprintf(text, args...))
}

// Names returns the names of the columns.
func (r *records) Names() []string { return r.names }

// Columns returns the number of columns.
func (r *records) Columns() int { return len(r.names) }

// Where counts rows as lines.
func (r *records) Where(col int) string { return fmt.Sprintf("%s:%d:%d", r.path, r.line, col+1) }

// Next decodes the next row, or returns io.EOF. Nulls, NaN, empty texts and customary marks are missing cells; a value of
// another type than its column's is an error that names file, row and column.
func (r *records) Next(row []dataset.Value) error {
	for r.left == 0 {
		if err := r.guard(r.nextGroup); err != nil {
			return err
		}
	}
	r.left--
	r.line++
	for i := range r.now {
		c := &r.now[i]
		if len(c.ready) == 0 {
			if err := r.guard(c.fill); err != nil {
				if !errors.Is(err, dataset.ErrFormat) {
					err = r.bad("row %d, column %q: %v; the file may be damaged", r.line, r.names[i], err)
				}
				return err
			}
		}
		v := c.ready[0]
		c.ready = c.ready[1:]
		row[i] = dataset.Value{Kind: dataset.Number}
		switch k := r.kinds[i]; {
		case v.IsNull():
			row[i] = dataset.Value{}
			continue
		case v.Kind() != k.physical:
			return r.bad("row %d, column %q holds a %v; the file is damaged", r.line, r.names[i], v.Kind())
		case k.physical == parquet.ByteArray && dataset.IsMark(v.ByteArray()):
			row[i] = dataset.Value{Text: append([]byte{}, v.ByteArray()...)} // missing, as in other tables, unless the schema has it as a category
			continue
		case k.physical == parquet.ByteArray:
			row[i] = dataset.Value{Kind: dataset.String, Text: v.ByteArray()}
			continue
		case k.physical == parquet.Boolean:
			if v.Boolean() {
				row[i].Number = 1
			}
		case k.physical == parquet.Int32 && k.unsigned:
			row[i].Number = float64(v.Uint32())
		case k.physical == parquet.Int32:
			row[i].Number = float64(v.Int32())
		case k.physical == parquet.Int64 && k.unsigned:
			row[i] = dataset.Integer(v.Uint64())
		case k.physical == parquet.Int64:
			row[i] = dataset.Integer(v.Int64())
		case k.physical == parquet.Float:
			row[i].Number = float64(v.Float())
		case k.physical == parquet.Double:
			row[i].Number = v.Double()
		}
		if x := row[i].Number; x != x {
			row[i] = dataset.Value{}
		}
	}
	return nil
}

// nextGroup begins the next row group, which may be without rows, as writers make of an empty batch: it has no pages then.
func (r *records) nextGroup() error {
	r.closeGroup()
	if len(r.groups) == 0 {
		return io.EOF
	}
	group, chunks := r.groups[0], &r.chunks[0]
	r.groups, r.chunks = r.groups[1:], r.chunks[1:]
	if chunks.NumRows == 0 {
		return nil
	}
	columns := group.ColumnChunks()
	if n := len(chunks.Columns); n != len(r.names) || n != len(columns) {
		return r.bad("a row group has %d columns of %d; the file is damaged", n, len(r.names))
	}
	r.now = make([]column, len(r.names))
	for i := range r.now {
		chunk := &chunks.Columns[i].MetaData
		if chunk.NumValues != chunks.NumRows {
			return r.bad("after row %d: %d rows, of which column %q has %d; the file is damaged", r.line, chunks.NumRows, r.names[i], chunk.NumValues)
		}
		if r.now[i].own = ofChunk(r.file, chunk, r.kinds[i].optional); r.now[i].own == nil {
			r.now[i].pages = columns[i].Pages()
		}
	}
	r.left = chunks.NumRows
	return nil
}

func (r *records) closeGroup() {
	for i := range r.now {
		r.now[i].close()
	}
	r.now = nil
}

// Close closes the file.
func (r *records) Close() error {
	r.closeGroup()
	return r.file.Close()
}
