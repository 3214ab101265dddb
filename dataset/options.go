package dataset

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Options say how files are read. The zero value infers everything.
type Options struct {
	// Schema is what the rows must be, such as a model's; nil: the file tells.
	Schema *Schema
	Header Header
	// Missing are further marks of missing cells. The empty cell and ? always mark
	// one, and so do NA, N/A, null and nan in any case, unless the schema has them
	// as labels. Marks are kept in the schema, and hold for all that is read with it.
	Missing []string
	// NoMissing makes a missing cell an error.
	NoMissing bool
	// Partial allows files whose header lacks columns of Schema, which then are
	// missing in every row. Warn names them.
	Partial bool
	// KeepText keeps what files say in observed cells beside their codes and
	// values, so that writers copy it. Text files have none.
	KeepText bool
	// Soft reads cells as evidence where they are written as a range 30..40, 30.. or ..40, a
	// set {a|b} or likelihoods [0.2|0.8], unless that text is a category of the column. It wants
	// a Schema.
	Soft bool
	// Stdin is what the path - reads, a table in text without a second pass: it
	// wants a Schema.
	Stdin io.Reader `json:"-"`
	// Warn, unless it is nil, is told in one line what may be wrong with a file
	// that can be read all the same.
	Warn func(warning string) `json:"-"`
	// Types overrides inferred types. A key is a column's name, its number in the
	// file counted from 1 where no column has that for a name, or * for all others.
	Types map[string]Type
	// Image is the height, width and channels of a row; zeros: the file tells.
	Image [3]int
	Text  Text
	// MaxBytes bounds the memory of a table; 0 is DefaultMaxBytes.
	MaxBytes int64

	mixed []int // columns, from 0, that were found to hold numbers and texts: all are labels
}

// DefaultMaxBytes is the memory that a table takes at most unless told.
const DefaultMaxBytes = 16 << 30

// Header says whether the first row of a CSV file holds names.
type Header string

// The settings of Header; "" is HeaderAuto.
const (
	HeaderAuto Header = "auto"
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Text says how text files become rows; with a schema, the schema says it.
type Text struct {
	Unit       Unit  // "" is Char
	Length     int   // tokens of a row; 0 is 32
	Vocabulary int   // tokens that are told apart, <unk> included; 0 is 256 characters or 10,000 words
	MaxBytes   int64 // of all files together, unpacked; 0: no bound
}

// Type is the type of a column, as inference finds it or Options.Types sets it. The zero value
// is Discrete with as many categories as the file has.
type Type struct {
	Kind       ColumnKind
	Categories int  // Discrete: codes 0..Categories-1; 0: as many as the file has
	Labels     bool // Discrete: cells are texts, even if they look like numbers
	Skip       bool // the column is not a variable
	mixed      bool // inferred: texts, some of which look like numbers
}

// ParseType reads "discrete", "discrete:256", "label", "continuous" or "skip", as --set and
// flags write types. Another word is an error that matches ErrSetting.
func ParseType(s string) (Type, error) {
	switch s {
	case "discrete":
		return Type{}, nil
	case "continuous":
		return Type{Kind: Continuous}, nil
	case "label":
		return Type{Labels: true}, nil
	case "skip":
		return Type{Skip: true}, nil
	}
	if n, ok := strings.CutPrefix(s, "discrete:"); ok {
		if c, err := strconv.Atoi(n); err == nil && c >= 1 && c <= MaxCategories {
			return Type{Categories: c}, nil
		}
	}
	return Type{}, badSetting("column type %q; write discrete, discrete:N with N up to %d, label, continuous or skip", s, MaxCategories)
}

// typesOf returns the type that is set for each of some columns of a file, nil where none is.
// The names are nil where the file has none.
func (o *Options) typesOf(names []string, columns int) []*Type {
	types := make([]*Type, columns)
	for i, key := range o.keysOf(names, columns) {
		if t, ok := o.Types[key]; ok && key != "" {
			types[i] = &t
		}
	}
	for _, i := range o.mixed {
		types[i] = &Type{Labels: true, mixed: true}
	}
	return types
}

// keysOf returns the key in Types of each of some columns of a file.
func (o *Options) keysOf(names []string, columns int) []string {
	all := make([]Column, columns)
	for i := range all {
		all[i].Place = i + 1
		if names != nil {
			all[i].Name = names[i]
		}
	}
	return Keys(o.Types, all)
}

// withoutTypes reports types that are set where columns are not those of a table. Under a schema types
// only say what is left out of a table, and other rows under it may be of one.
func (o *Options) withoutTypes(path string) error {
	if o.Schema != nil || len(o.Types) == 0 {
		return nil
	}
	return badSetting("%s: types are set for columns, and only those of tables take types; leave them out", path)
}

// warn passes a warning about a file on.
func (o *Options) warn(path, format string, args ...any) {
	if o.Warn != nil {
		o.Warn(path + ": " + fmt.Sprintf(format, args...))
	}
}

// validate reports options that contradict themselves, before a file is opened. What depends on
// the file, such as names in Types, is checked when its columns are known.
func (o *Options) validate() error {
	switch o.Header {
	case "", HeaderAuto, HeaderYes, HeaderNo:
	default:
		return badSetting("header %q; write auto, yes or no", o.Header)
	}
	if o.Schema != nil {
		if err := o.Schema.Validate(); err != nil {
			return err
		}
	}
	if o.Soft && o.Schema == nil {
		return badSetting("ranges, sets and likelihoods without a schema; give the columns that they are about")
	}
	if err := o.Text.Unit.check(); err != nil {
		return err
	}
	if t := o.Text; t.Length < 0 || t.Length > MaxColumns || t.Vocabulary < 0 || t.Vocabulary == 1 || t.Vocabulary > MaxCategories || t.MaxBytes < 0 {
		return badSetting("text length %d, vocabulary %d, bytes %d; length takes 1 to %d, vocabulary 2 to %d", t.Length, t.Vocabulary, t.MaxBytes, MaxColumns, MaxCategories)
	}
	return nil
}
