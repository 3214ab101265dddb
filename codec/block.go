package codec

// A file is cut into blocks, each of which is coded on its own: what is in memory is
// bounded, and damage is found where it is.
const (
	blockCells    = 1 << 20 // most cells of a block that has more than one row
	blockRecords  = 1 << 16 // most records
	blockLiterals = 1 << 20 // most bytes of literal records but for the last one
	recordBytes   = 1 << 22 // most bytes of a record; what is longer is cut
)

// block is a run of records: rows of the model, and literals, which are bytes that the
// framing does not write for any row.
type block struct {
	literal  []bool   // [records]
	literals [][]byte // those that are
	codes    []int32  // [rows][variables]; absent for a cell that is missing
	marks    []byte   // [rows][variables]: how a missing cell is written
	open     bool     // the last record lacks its end
	rows     int

	bytes int // of literals
}

func (b *block) reset() {
	*b = block{literal: b.literal[:0], literals: b.literals[:0], codes: b.codes[:0], marks: b.marks[:0]}
}

func (b *block) full(width int) bool {
	return len(b.literal) == blockRecords || (b.rows+1)*width > blockCells && b.rows > 0 || b.bytes >= blockLiterals
}

// grow adds a row of missing cells and returns its codes and marks.
func (b *block) grow(width int) ([]int32, []byte) {
	n := b.rows * width
	b.rows++
	for range width {
		b.codes = append(b.codes, absent)
		b.marks = append(b.marks, 0)
	}
	return b.codes[n:], b.marks[n:]
}

// dropLast takes back the row that was added last.
func (b *block) dropLast(width int) {
	b.rows--
	b.codes, b.marks = b.codes[:b.rows*width], b.marks[:b.rows*width]
}

// coder is an encoder or a decoder.
type coder interface {
	bitCoder
	cellCoder
}

// block codes a block of that many records of a file with the given columns. Decoding
// fills in an empty one.
func (s *state) block(c coder, b *block, records int, columns []int32, marks int) error {
	_, decodes := c.(*decoder)
	width := len(s.m.schema.Columns)
	if err := b.codeRecords(c, records, width, decodes); err != nil {
		return err
	}
	b.open = flag(c, b.open)
	if err := b.codeMissing(c, columns, width, marks); err != nil {
		return err
	}
	for from := 0; from < b.rows; from += groupRows {
		rows := min(groupRows, b.rows-from)
		s.group(c, b.codes[from*width:(from+rows)*width], rows)
	}
	return nil
}

// codeRecords codes which records are literal, each given whether the one before was, and the
// bytes of those that are. When it decodes, it fills the block, and refuses one that would grow
// beyond the limits of a block before it takes the memory.
func (b *block) codeRecords(c coder, records, width int, decodes bool) error {
	var kinds [2]counts
	var text texts
	before := 0
	for i, lit := 0, 0; i < records; i++ {
		if !decodes && b.literal[i] {
			before = c.bit(&kinds[before], 1)
		} else {
			before = c.bit(&kinds[before], 0)
		}
		if decodes {
			b.literal = append(b.literal, before == 1)
		}
		if before == 0 {
			if !decodes {
				continue
			}
			if b.rows > 0 && (b.rows+1)*width > blockCells {
				return badFile("a block has more than %d cells", blockCells)
			}
			b.grow(width)
			continue
		}
		if !decodes {
			text.code(c, nil, b.literals[lit], recordBytes)
			lit++
			continue
		}
		if b.bytes >= blockLiterals {
			return badFile("a block has more than %d bytes of text", blockLiterals)
		}
		out, ok := text.code(c, nil, nil, recordBytes)
		if !ok {
			return badFile("a block has a text of more than %d bytes", recordBytes)
		}
		b.literals, b.bytes = append(b.literals, out), b.bytes+len(out)
	}
	return nil
}

// codeMissing codes which cells of the file's columns are missing, and how each of
// them is written: the columns that have some, then cell by cell.
func (b *block) codeMissing(c coder, columns []int32, width, marks int) error {
	_, decodes := c.(*decoder)
	some := false
	has := make([]bool, len(columns))
	for k, v := range columns {
		for r := range b.rows {
			if at := r*width + int(v); decodes {
				b.codes[at] = 0
			} else if b.codes[at] == absent {
				has[k], some = true, true
				break
			}
		}
	}
	if some = flag(c, some); !some {
		return nil
	}
	var same counts
	mark := make([]counts, 256)
	last := byte(0)
	for k, v := range columns {
		if has[k] = flag(c, has[k]); !has[k] {
			continue
		}
		var missing [2]counts // given the row before
		before := 0
		for r := range b.rows {
			at := r*width + int(v)
			bit := 0
			if b.codes[at] == absent {
				bit = 1
			}
			if before = c.bit(&missing[before], bit); before == 0 {
				continue
			}
			other := 0
			if b.marks[at] != last {
				other = 1
			}
			if c.bit(&same, other) == 1 {
				last = byte(tree(c, mark, 8, uint32(b.marks[at])))
			}
			if int(last) >= marks {
				return badFile("a missing cell is written in a way that is not known")
			}
			b.codes[at], b.marks[at] = absent, last
		}
	}
	return nil
}
