package cells

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// number are the types whose elements may be cells.
type number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64
}

// Reader turns tensors into rows of a schema.
type Reader struct {
	schema  *dataset.Schema
	check   func(column int, x float64) error // of numbers of continuous columns; nil: any will do
	labels  []columnLabels
	missing map[string]bool  // marks of missing cells, beside the customary ones
	marks   map[float64]bool // those that are numbers; nil: none
}

// columnLabels are the labels of a column; columns with the same labels share them.
type columnLabels struct {
	texts   map[string]int
	numbers map[float64]int // nil unless each label is a number
}

// NewReader prepares the labels of a schema for lookups, once for each version of a model.
// Columns that share a list of labels share the table too, so text models of many columns take
// the memory of one. check, unless nil, says what is wrong with a number of a continuous column.
func NewReader(s *dataset.Schema, check func(column int, x float64) error) *Reader {
	r := &Reader{schema: s, check: check, labels: make([]columnLabels, len(s.Columns)), missing: map[string]bool{"": true}}
	for _, mark := range dataset.BareMarks(s.Missing) {
		r.missing[mark] = true
	}
	r.marks = dataset.MarkedNumbers(s.Missing)
	for i := range s.Columns {
		c := &s.Columns[i]
		if len(c.Labels) == 0 {
			continue
		}
		if i > 0 && len(s.Columns[i-1].Labels) == len(c.Labels) && &s.Columns[i-1].Labels[0] == &c.Labels[0] {
			r.labels[i] = r.labels[i-1]
			continue
		}
		l := columnLabels{texts: c.LabelCodes()}
		if numbers := c.LabelNumbers(); numbers != nil {
			l.numbers = make(map[float64]int, len(numbers))
			for code, x := range numbers {
				l.numbers[x] = code
			}
		}
		r.labels[i] = l
	}
	return r
}

// Read writes the rows of x, [rows, columns], to b, whose cells are missing. Cells
// that observed marks with 0 stay so whatever x says; a nil observed observes all.
func (r *Reader) Read(b *dataset.Batch, x *oip.Tensor, observed []byte) error {
	var err error
	switch x.Datatype {
	case oip.Bool, oip.Uint8:
		err = fill(r, b, x.Raw, observed)
	case oip.Int8:
		err = fill(r, b, View[int8](x.Raw), observed)
	case oip.Uint16:
		err = fill(r, b, View[uint16](x.Raw), observed)
	case oip.Int16:
		err = fill(r, b, View[int16](x.Raw), observed)
	case oip.Uint32:
		err = fill(r, b, View[uint32](x.Raw), observed)
	case oip.Int32:
		err = fill(r, b, View[int32](x.Raw), observed)
	case oip.Uint64:
		err = fill(r, b, View[uint64](x.Raw), observed)
	case oip.Int64:
		err = fill(r, b, View[int64](x.Raw), observed)
	case oip.FP32:
		err = fill(r, b, View[float32](x.Raw), observed)
	case oip.Bytes:
		err = r.texts(b, x, observed)
	default:
		err = fill(r, b, Floats(x), observed)
	}
	if err != nil {
		return fmt.Errorf("%w: input %q: data: %w", oip.ErrMessage, x.Name, err)
	}
	return nil
}

// littleEndian reports whether this machine stores numbers as tensors do.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

// View returns the elements of a tensor: its own memory where the machine can read
// it in place, a copy elsewhere.
func View[T number](raw []byte) []T {
	var x T
	size := int(unsafe.Sizeof(x))
	n := len(raw) / size
	if n == 0 {
		return nil
	}
	if littleEndian && uintptr(unsafe.Pointer(&raw[0]))%uintptr(size) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&raw[0])), n)
	}
	out := make([]T, n)
	if _, err := binary.Decode(raw, binary.LittleEndian, out); err != nil {
		panic("BUG: " + err.Error()) // n whole elements are there
	}
	return out
}

// Floats returns the elements of a numeric tensor as float64, which all of them fit but the
// largest 64-bit integers. FP64 is a view of the tensor's own bytes.
func Floats(t *oip.Tensor) []float64 {
	switch t.Datatype {
	case oip.FP64:
		return View[float64](t.Raw)
	case oip.FP32:
		return widen(View[float32](t.Raw))
	case oip.Bool, oip.Uint8:
		return widen(t.Raw)
	case oip.Int8:
		return widen(View[int8](t.Raw))
	case oip.Uint16:
		return widen(View[uint16](t.Raw))
	case oip.Int16:
		return widen(View[int16](t.Raw))
	case oip.Uint32:
		return widen(View[uint32](t.Raw))
	case oip.Int32:
		return widen(View[int32](t.Raw))
	case oip.Uint64:
		return widen(View[uint64](t.Raw))
	case oip.Int64:
		return widen(View[int64](t.Raw))
	}
	halves := View[uint16](t.Raw)
	out := make([]float64, len(halves))
	for i, h := range halves {
		if t.Datatype == oip.FP16 {
			out[i] = oip.HalfFloat(h)
		} else {
			out[i] = oip.BFloat(h)
		}
	}
	return out
}

// singles rounds integers to float32 once; as float64 they would be rounded before.
func singles[T int64 | uint64](x []T) []float64 {
	out := make([]float64, len(x))
	for i, n := range x {
		v := dataset.Integer(n)
		out[i] = v.Rounded(dataset.ToFloat32)
	}
	return out
}

func widen[T number](x []T) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// strip is how many rows are turned into columns at a time: their cells stay in the
// cache while one column after another takes its own.
const strip = 64

// fill writes cells in row-major order to the columns of b, whose cells are missing, in strips
// of rows. Where observed is not nil, a 0 leaves the cell missing. Codes that need no lookup
// take a fast path; all others, and all errors, go through cell.
func fill[T number](r *Reader, b *dataset.Batch, cells []T, observed []byte) error {
	columns := len(b.Columns)
	for lo := 0; lo < b.Rows; lo += strip {
		hi := min(lo+strip, b.Rows)
		for v := range b.Columns {
			c := &r.schema.Columns[v]
			if narrow := b.Columns[v].Codes.Narrow; narrow != nil && r.labels[v].numbers == nil && r.marks == nil {
				at, categories := lo*columns+v, uint(c.Categories)
				for i := range narrow[lo:hi] {
					x := cells[at]
					if code := uint(int(x)); code < categories && T(code) == x && (observed == nil || observed[at] != 0) {
						narrow[lo+i] = uint16(code)
					} else if err := r.cell(b, lo+i, v, float64(x), observed == nil || observed[at] != 0); err != nil {
						return err
					}
					at += columns
				}
				continue
			}
			for row := lo; row < hi; row++ {
				at := row*columns + v
				x := float64(cells[at])
				if err := r.cell(b, row, v, x, !r.marks[x] && (observed == nil || observed[at] != 0)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cell writes one cell of any kind: NaN and what is not observed stay missing. A number that is
// not a category, that the column's range does not hold or that check refuses is an error that names row and
// column.
func (r *Reader) cell(b *dataset.Batch, row, v int, x float64, observed bool) error {
	if !observed || x != x {
		return nil // it is missing already
	}
	c, cells := &r.schema.Columns[v], &b.Columns[v]
	if c.Kind == dataset.Continuous {
		f, ok := c.Stored(x)
		if !ok {
			return fmt.Errorf("row %d, %s: %v is beyond the range of the column; use NaN or observed for a missing cell", row, r.schema.ColumnName(v), x)
		}
		if r.check != nil {
			if err := r.check(v, x); err != nil {
				return fmt.Errorf("row %d, %s: %w", row, r.schema.ColumnName(v), err)
			}
		}
		cells.Values[row] = f
		return nil
	}
	if numbers := r.labels[v].numbers; numbers != nil {
		code, ok := numbers[x]
		if !ok {
			return fmt.Errorf("row %d, %s: %v is not a category; the model's metadata lists them", row, r.schema.ColumnName(v), x)
		}
		cells.Codes.Set(row, code)
		return nil
	}
	if !(x >= 0 && x < float64(c.Categories) && x == math.Trunc(x)) {
		return fmt.Errorf("row %d, %s: %v is not a category (want 0..%d); use observed for a missing cell", row, r.schema.ColumnName(v), x, c.Categories-1)
	}
	cells.Codes.Set(row, int(x))
	return nil
}

// texts writes cells that are text, which are what they are in a file: a label, a number, or missing where they are empty,
// one of the schema's marks or a customary one. A mark of the schema is missing also where it is a label, as that of a circuit
// which was trained with further marks; a customary one is not. A label may have blanks around it, so the text as it is comes
// first, and a number may be another spelling of a label.
func (r *Reader) texts(b *dataset.Batch, x *oip.Tensor, observed []byte) error {
	for i, text := range x.Texts() {
		if observed != nil && observed[i] == 0 {
			continue
		}
		row, v := i/len(b.Columns), i%len(b.Columns)
		labels, bare := &r.labels[v], trim(text)
		code, ok := labels.texts[string(text)]
		switch {
		case r.missing[string(text)]:
			continue
		case ok:
		case r.missing[string(bare)]:
			continue
		default:
			code, ok = labels.texts[string(bare)]
		}
		if ok {
			b.Columns[v].Codes.Set(row, code)
			continue
		}
		n, ok := r.number(text)
		if _, labelled := labels.numbers[n]; labels.texts != nil && !(ok && (n != n || labelled)) {
			return fmt.Errorf("row %d, %s: %.40q is not a category; the model's metadata lists them", row, r.schema.ColumnName(v), text)
		} else if !ok {
			return fmt.Errorf("row %d, %s: %.40q is not a number", row, r.schema.ColumnName(v), text)
		}
		if err := r.cell(b, row, v, n, true); err != nil {
			return err
		}
	}
	return nil
}

// number reads a text that is not a label: NaN where it is missing. false means that it is not a number either.
func (r *Reader) number(text []byte) (float64, bool) {
	bare := trim(text)
	if r.missing[string(text)] || r.missing[string(bare)] {
		return math.NaN(), true
	}
	return dataset.ParseNumber(bare, dataset.ToFloat64)
}

// trim cuts off the blanks around a text, as files do around cells.
func trim(text []byte) []byte { return bytes.Trim(text, " \t") }

// Numbers reads x, [rows, columns], for a query that takes numbers and not cells: NaN where
// observed, unless it is nil, has a 0. Infinities are numbers. Text is read as in files of
// numbers, and an error names row and column of a cell that is none. The result may share the
// memory of x.
func (r *Reader) Numbers(x *oip.Tensor, observed []byte, as oip.Datatype) ([]float64, error) {
	var out []float64
	if x.Datatype == oip.Bytes {
		columns, round := len(r.schema.Columns), dataset.ToFloat64
		if as == oip.FP32 {
			round = dataset.ToFloat32
		}
		for i, text := range x.Texts() {
			n, ok := math.NaN(), true
			if observed == nil || observed[i] != 0 {
				n, ok = dataset.ParseNumber(trim(text), round)
			}
			if !ok {
				return nil, fmt.Errorf("%w: input %q: data: row %d, %s: %.40q is not a number; an empty text is a missing cell",
					oip.ErrMessage, x.Name, i/columns, r.schema.ColumnName(i%columns), text)
			}
			out = append(out, n)
		}
		return out, nil
	}
	switch single := as == oip.FP32; {
	case single && x.Datatype == oip.Int64:
		out = singles(View[int64](x.Raw))
	case single && x.Datatype == oip.Uint64:
		out = singles(View[uint64](x.Raw))
	default:
		out = Floats(x)
	}
	if observed == nil {
		return out, nil
	}
	out = slices.Clone(out)
	for i, seen := range observed {
		if seen == 0 {
			out[i] = math.NaN()
		}
	}
	return out, nil
}

// Keep writes the numbers that x has in its observed cells to out, which has times rows for each of x. The columns of a
// batch may have rounded them. Labels that are text stay the numbers that out has.
func (r *Reader) Keep(out []float64, times int, x *oip.Tensor, observed []byte) {
	columns := len(r.schema.Columns)
	keep := func(i int, n float64) {
		if n != n || observed != nil && observed[i] == 0 {
			return
		}
		for k := range times {
			out[(i/columns*times+k)*columns+i%columns] = n
		}
	}
	if x.Datatype != oip.Bytes {
		for i, n := range Floats(x) {
			if !r.marks[n] {
				keep(i, n)
			}
		}
		return
	}
	for i, text := range x.Texts() {
		if r.labels[i%columns].texts == nil {
			n, _ := r.number(text) // Read took it
			keep(i, n)
		}
	}
}
