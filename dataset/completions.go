package dataset

import (
	"io"
	"path/filepath"
	"strings"
)

// Completions writes rows and what they were completed to.
type Completions interface {
	// Write writes given rows, which it may change, with the completion of each.
	Write(given, completed *Batch) error
	Close() error
}

// NewCompletions returns a writer of that many rows of s, each with one completion, in the format of path's extension. A picture
// has each row beside its completion; other files have the rows with their missing cells filled, and with what Text says in
// the others.
func NewCompletions(w io.Writer, path string, s *Schema, rows int) (Completions, error) {
	if strings.EqualFold(filepath.Ext(path), ".png") {
		return NewCompletionWriter(w, s, rows, 1)
	}
	dst, err := NewWriter(w, path, s, rows)
	return filledWriter{dst}, err
}

// CheckCompletions gives the error with which NewCompletions would refuse a picture of that many rows of s, which is too large, so that
// they need not be completed first.
func CheckCompletions(path string, s *Schema, rows int) error {
	if !strings.EqualFold(filepath.Ext(path), ".png") || rows < 1 {
		return nil
	}
	p := picture{schema: s, across: []int{2}, down: rows}
	return p.lay()
}

// filledWriter writes completed rows alone.
type filledWriter struct{ Writer }

// Write fills the missing cells of the given rows, and writes these.
func (f filledWriter) Write(given, completed *Batch) error {
	for v := range given.Columns {
		to, from := &given.Columns[v], &completed.Columns[v]
		to.Soft = SoftCells{}
		for r := range given.Rows {
			switch {
			case !to.IsMissing(r):
			case to.Discrete():
				to.Codes.Set(r, from.Codes.At(r))
			default:
				to.Values[r] = from.Values[r]
			}
		}
	}
	return f.Writer.Write(given)
}
