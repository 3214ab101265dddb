package dataset

import (
	"encoding/binary"
	"math"
)

// appendSoft appends the evidence of a batch to a block: of each column the pieces that its
// rows use, each once.
func appendSoft(dst []byte, s *Schema, b *Batch) ([]byte, error) {
	for i := range b.Columns {
		cells := &b.Columns[i]
		if cells.Soft.Of == nil {
			continue
		}
		if len(cells.Soft.Of) != b.Rows {
			return dst, badSetting("%s has evidence for %d of %d rows", s.ColumnName(i), len(cells.Soft.Of), b.Rows)
		}
		places := make([]uint32, len(cells.Soft.List)+1) // 1 + the place in the block
		var used []*Evidence
		for _, of := range cells.Soft.Of {
			if of > 0 && places[of] == 0 {
				used = append(used, cells.Soft.List[of-1])
				places[of] = uint32(len(used))
			}
		}
		if len(used) == 0 {
			continue
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(i+1))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(used)))
		for _, e := range used {
			dst = appendEvidence(dst, &s.Columns[i], e)
		}
		for _, of := range cells.Soft.Of {
			dst = binary.LittleEndian.AppendUint32(dst, places[of])
		}
	}
	return binary.LittleEndian.AppendUint32(dst, 0), nil
}

// appendEvidence appends what is known of a cell of a column.
func appendEvidence(dst []byte, c *Column, e *Evidence) []byte {
	if c.Kind == Continuous {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.Low))
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.High))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.Runs)))
	for _, r := range e.Runs {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(r.First))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(r.Last))
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(r.Likelihood))
	}
	return dst
}

// decodeSoft reads the evidence of a block, which ends with it, to the missing cells of b. It
// takes what appendSoft writes and nothing else, and allocates no more than a small multiple of
// its bytes.
func decodeSoft(s *Schema, data []byte, b *Batch) error {
	d := softDecoder{data}
	before := 0
	for {
		column := int(d.uint32())
		if column == 0 {
			break
		}
		if column <= before || column > len(s.Columns) {
			return badData("block", "evidence about column %d after that about column %d; there are %d", column, before, len(s.Columns))
		}
		before = column
		if err := d.column(s, column-1, &b.Columns[column-1], b.Rows); err != nil {
			return err
		}
	}
	if before == 0 || d.data == nil || len(d.data) > 0 {
		return badData("block", "its evidence is cut short, or there is more behind it")
	}
	return nil
}

// softDecoder reads numbers from the front of data, which becomes nil when it is too short.
type softDecoder struct{ data []byte }

func (d *softDecoder) take(n int) []byte {
	if len(d.data) < n {
		d.data = nil
		return nil
	}
	out := d.data[:n]
	d.data = d.data[n:]
	return out
}

func (d *softDecoder) uint32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *softDecoder) float64() float64 {
	if b := d.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return math.NaN()
}

// column reads the evidence about the cells of a column: a list of different pieces, then which
// of them each row has. A block with pieces that no row uses, in another order than that of the
// rows, or beside observed cells is refused, so that equal batches have equal blocks.
func (d *softDecoder) column(s *Schema, i int, cells *Cells, rows int) error {
	c, name := &s.Columns[i], s.ColumnName(i)
	count := int(d.uint32())
	if count < 1 || count > rows {
		return badData("block", "%d pieces of evidence about %s in %d rows", count, name, rows)
	}
	list := make([]*Evidence, count)
	for k := range list {
		if list[k] = d.evidence(c); list[k] == nil {
			return badData("block", "piece %d of the evidence about %s is none", k+1, name)
		}
	}
	if len(d.data) < 4*rows {
		return badData("block", "the evidence about %s is cut short", name)
	}
	of := make([]uint32, rows)
	seen := uint32(0)
	for r := range of {
		of[r] = d.uint32()
		if of[r] > seen+1 || of[r] > uint32(count) || of[r] > 0 && !cells.IsMissing(r) {
			return badData("block", "row %d has evidence %d of %d about %s, or a value beside it", r, of[r], count, name)
		}
		seen = max(seen, of[r])
	}
	if seen != uint32(count) {
		return badData("block", "%d pieces of evidence about %s, of which %d are used", count, name, seen)
	}
	cells.Soft = SoftCells{Of: of, List: list}
	return nil
}

// evidence reads a piece of evidence about cells of a column, nil if it is not one that the
// constructors of Evidence make. The number of runs is bounded by the bytes that are left
// before memory is taken for them.
func (d *softDecoder) evidence(c *Column) *Evidence {
	e := &Evidence{}
	if c.Kind == Continuous {
		e.Low, e.High = d.float64(), d.float64()
	} else {
		n := int(d.uint32())
		if n < 1 || n > len(d.data)/16 {
			return nil
		}
		e.Runs = make([]Run, n)
		for i := range e.Runs {
			e.Runs[i] = Run{int(d.uint32()), int(d.uint32()), d.float64()}
		}
	}
	if !c.takes(e) {
		return nil
	}
	return e
}
