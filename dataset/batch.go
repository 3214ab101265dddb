package dataset

import "context"

// ColumnKind says how the cells of a column are stored.
type ColumnKind uint8

// The kinds of columns.
const (
	Discrete   ColumnKind = iota // codes 0..Categories-1
	Continuous                   // float32 values, see Column.Scale
)

// Column describes one variable: how its cells are stored and what they mean.
type Column struct {
	Name       string
	Kind       ColumnKind
	Categories int      // Discrete: number of codes
	Labels     []string // Discrete: what each code means; nil: the code itself
	// Offset and Scale, of a Continuous column, say what is stored: a float32 v
	// means Offset + Scale·v. Inference takes the median and what is the
	// standard deviation of normal numbers with the same interquartile range; where
	// half of the numbers are equal, mean and standard deviation; and a Scale of 1
	// for a column without spread. A Scale of 0 means that numbers are stored as
	// they are.
	Offset, Scale float64
	// Edges, of a Continuous column, are those of the bins whose number a histogram
	// leaf reads for a number: ascending, the last one within the last bin. Outside
	// is the density beyond them. nil: leaves read numbers.
	Edges   []float64
	Outside float64
	// Place is the column's in the file that it was inferred from, counted
	// from 1; 0 if it is not known. It is not stored.
	Place int
	// Counts says that a Continuous column takes whole numbers from 0 alone. It follows from
	// the leaves and is not stored.
	Counts bool
	// Positive says that a Continuous column takes numbers above 0 alone, as they are stored. It follows
	// from the leaves and is not stored.
	Positive bool
	// Unread says that the model says nothing of the column. It follows from the circuit and is not stored.
	Unread bool
}

// Schema describes the columns of a source, in the order of a row. The schema of a model reads
// rows as its training rows were read.
type Schema struct {
	Columns []Column
	Image   [3]int // height, width, channels; zeros when rows are not images
	Unit    Unit   // what a cell is when rows are windows of text; else ""
	// Missing are texts that mark a missing cell beside the customary ones.
	Missing []string
}

// Cells are the cells of one column of a batch; Codes or Values is set,
// as the column's kind says. Both have Batch.Rows entries.
type Cells struct {
	Codes  Codes
	Values []float32
	// Text, if it is not nil, has what the file says for each observed cell, and
	// nil for the others. Writers copy it.
	Text [][]byte
	// Soft is what is known of missing cells, if anything.
	Soft SoftCells
}

// Batch is a block of rows, column-major. All its codes have the width that its
// schema asks for. It belongs to the caller, who may use it again for the next read.
type Batch struct {
	Rows    int
	Columns []Cells
}

// NewBatch returns a batch of missing cells with room for rows rows.
func NewBatch(s *Schema, rows int) *Batch {
	b := &Batch{Columns: make([]Cells, len(s.Columns))}
	b.Resize(s, rows)
	return b
}

// Source is a table of known length whose rows can be asked for in any order.
// It is safe for concurrent use.
type Source interface {
	Schema() *Schema
	Rows() int
	// Gather fills b with the given rows, in order.
	Gather(ctx context.Context, b *Batch, rows []int) error
}

// Reader yields rows once, from the first to the last, in bounded memory. Read
// fills b with at most max rows and returns io.EOF when none are left.
type Reader interface {
	Schema() *Schema
	Read(ctx context.Context, b *Batch, max int) error
	Close() error
}
