package dataset

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// ValueKind says what a raw cell holds, before it has a type.
type ValueKind uint8

// The kinds of raw cells.
const (
	Absent ValueKind = iota // a missing cell
	Number
	String
)

// Value is a raw cell of a file, before it has a type. Text is set for String,
// and for Number where the file writes numbers as text; it is valid until the
// next row is read.
type Value struct {
	Kind   ValueKind
	Number float64
	Rest   float64 // what Number lacks of a larger integer than float64 holds
	Text   []byte
}

// Integer returns the cell of an integer, whose halves float64 holds.
func Integer[T int64 | uint64](n T) Value {
	const half = 1 << 32
	high, low := float64(n/half*half), float64(n%half)
	x := high + low
	return Value{Kind: Number, Number: x, Rest: low - (x - high)}
}

// infinite says what is wrong with an infinite number of a file of numbers, "" of other cells. Texts that spell one have messages of
// their own, with the text.
func (v *Value) infinite() string {
	if v.Kind != Number || v.Text != nil || !math.IsInf(v.Number, 0) {
		return ""
	}
	return fmt.Sprintf("%v is not a finite number; replace it", v.Number)
}

// spelled returns a text that is a number as that number, and other cells as they are. Tables in text have no such texts, but
// columns of texts of Parquet may.
func (v Value) spelled() Value {
	if v.Kind == String {
		if x, ok := parseNumber(v.Text); ok {
			v.Kind, v.Number = Number, x
		}
	}
	return v
}

// Records are the raw rows of a file, read once from first to last.
type Records interface {
	// Names are the columns' names, nil if the file has none.
	Names() []string
	Columns() int
	// Next decodes the next row into row, of length Columns, or returns io.EOF. Infinite numbers are refused by who reads
	// their column, so that one may be skipped.
	Next(row []Value) error
	// Where is the place of a cell of the row read last, "file:line:column"; col
	// counts from 0.
	Where(col int) string
	Close() error
}

// Format is a kind of file, told by its extension.
type Format struct {
	Open func(ctx context.Context, path string, opts *Options) (Records, error)
	// OneDomain says that all cells come from one domain, so that discrete
	// columns share one number of categories.
	OneDomain bool
}

var formats = struct {
	sync.Mutex  // guards byExtension
	byExtension map[string]Format
}{byExtension: map[string]Format{
	".csv":  {Open: openCSV},
	".tsv":  {Open: openCSV},
	".data": {Open: openCSV, OneDomain: true},
	".npy":  {Open: openNPY, OneDomain: true},
	".idx":  {Open: openIDX, OneDomain: true},
}}

// Register adds a format for files whose name, without .gz, ends in extension,
// such as ".parquet". A later call for the same extension wins.
func Register(extension string, f Format) {
	formats.Lock()
	defer formats.Unlock()
	formats.byExtension[strings.ToLower(extension)] = f
}

func lookup(extension string) (Format, bool) {
	formats.Lock()
	defer formats.Unlock()
	f, ok := formats.byExtension[extension]
	return f, ok
}

// Extensions returns the extensions that can be read, .gz left out.
func Extensions() []string {
	formats.Lock()
	defer formats.Unlock()
	return append(slices.Sorted(maps.Keys(formats.byExtension)), ".txt")
}
