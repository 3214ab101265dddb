package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
)

// A block is a batch as bytes, on its way between machines that know the
// schema:
//
//	4 bytes "PCB1", 4 bytes rows, 4 bytes columns, cells column by column,
//	4 bytes CRC-32C of all before
//
// A block with evidence about cells that are missing, "PCB2", has it between cells and CRC:
//
//	for each column with some, in ascending order: 4 bytes column + 1, 4 bytes count,
//	as many pieces of evidence in the order of their first use, 4 bytes per row: 0, or
//	1 + the place of its evidence among them
//	4 bytes 0
//
// Evidence about a discrete cell is a count of runs, 4 bytes, and for each 4 bytes first, 4
// bytes last and a float64 likelihood; about a continuous cell, two float64, low and high.
//
// Numbers are little-endian. A continuous cell is a float32. A discrete cell takes
// one byte where its column has fewer than 256 categories, two where it has fewer
// than 65,536, else four; the largest number of its width marks a missing one.
const (
	blockMagic  = "PCB1"
	softMagic   = "PCB2"
	blockHeader = 12
	blockFrame  = blockHeader + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cellBytes is what a cell of the column takes in a block.
func (c *Column) cellBytes() int {
	switch {
	case c.Kind == Continuous:
		return 4
	case c.Categories < 256:
		return 1
	case c.Categories <= MaxNarrow:
		return 2
	}
	return 4
}

// BlockRowBytes returns the bytes of a row of s in a block.
func (s *Schema) BlockRowBytes() int {
	n := 0
	for i := range s.Columns {
		n += s.Columns[i].cellBytes()
	}
	return n
}

// BlockBytes returns the bytes of a block of that many rows of s without evidence.
func (s *Schema) BlockBytes(rows int) int { return blockFrame + rows*s.BlockRowBytes() }

// BlockRows returns how many rows of s a block of that many bytes holds; 0 if
// there is no room for any.
func (s *Schema) BlockRows(bytes int) int { return max(0, bytes-blockFrame) / s.BlockRowBytes() }

// AppendBlock appends the rows of b, which are rows of s, as a block with a checksum to dst:
// BlockBytes(b.Rows) bytes, and more where cells have soft evidence. DecodeBlock makes the same
// batch of it on another machine. Kept text is not part of a block. After an error dst is as it
// was.
func AppendBlock(dst []byte, s *Schema, b *Batch) ([]byte, error) {
	if len(b.Columns) != len(s.Columns) {
		return dst, badSetting("batch has %d columns, its schema %d", len(b.Columns), len(s.Columns))
	}
	start, magic := len(dst), blockMagic
	if b.HasSoft() {
		magic = softMagic
	}
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(b.Rows))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s.Columns)))
	for i := range s.Columns {
		c, cells := &s.Columns[i], &b.Columns[i]
		if c.Kind == Continuous {
			if len(cells.Values) != b.Rows {
				return dst[:start], badSetting("%s has %d values for %d rows", s.ColumnName(i), len(cells.Values), b.Rows)
			}
			for _, v := range cells.Values {
				dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
			}
			continue
		}
		if cells.Codes.Len() != b.Rows {
			return dst[:start], badSetting("%s has %d codes for %d rows", s.ColumnName(i), cells.Codes.Len(), b.Rows)
		}
		width := c.cellBytes()
		for r := range b.Rows {
			v := cells.Codes.At(r)
			if v >= c.Categories {
				return dst[:start], fmt.Errorf("%w: %s has code %d of %d categories", ErrFormat, s.ColumnName(i), v, c.Categories)
			}
			switch width { // Missing, -1, becomes the largest number of each
			case 1:
				dst = append(dst, byte(v))
			case 2:
				dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
			default:
				dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
			}
		}
	}
	if magic == softMagic {
		var err error
		if dst, err = appendSoft(dst, s, b); err != nil {
			return dst[:start], err
		}
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli)), nil
}

// DecodeBlock fills b with the rows of a block of rows of s. What it allocates
// is at most a small multiple of the block. A block that is none, or not of s,
// gives an error that matches ErrFormat.
func DecodeBlock(s *Schema, block []byte, b *Batch) error {
	soft := len(block) >= blockFrame && string(block[:4]) == softMagic
	if len(block) < blockFrame || string(block[:4]) != blockMagic && !soft {
		return badData("block", "%d bytes are not a block of rows", len(block))
	}
	rows, columns := binary.LittleEndian.Uint32(block[4:]), binary.LittleEndian.Uint32(block[8:])
	if int(columns) != len(s.Columns) {
		return badData("block", "it has %d columns, the rows wanted have %d", columns, len(s.Columns))
	}
	if want := int64(rows)*int64(s.BlockRowBytes()) + blockFrame; want > int64(len(block)) || !soft && want < int64(len(block)) {
		return badData("block", "%d rows take %d bytes, it has %d", rows, want, len(block))
	}
	end := len(block) - 4
	if got, want := crc32.Checksum(block[:end], castagnoli), binary.LittleEndian.Uint32(block[end:]); got != want {
		return badData("block", "its checksum is %#x, its bytes give %#x; send it again", want, got)
	}
	b.shape(s, s.WideCodes(), int(rows))
	at := block[blockHeader:end]
	for i := range s.Columns {
		c, cells := &s.Columns[i], &b.Columns[i]
		width := c.cellBytes()
		for r := range b.Rows {
			var code, none uint32
			switch cell := at[r*width:]; {
			case c.Kind == Continuous:
				cells.Values[r] = math.Float32frombits(binary.LittleEndian.Uint32(cell))
				continue
			case width == 4:
				code, none = binary.LittleEndian.Uint32(cell), math.MaxUint32
			case width == 2:
				code, none = uint32(binary.LittleEndian.Uint16(cell)), math.MaxUint16
			default:
				code, none = uint32(cell[0]), math.MaxUint8
			}
			switch {
			case code == none:
				cells.Codes.Set(r, Missing)
			case code >= uint32(c.Categories):
				b.truncate(0)
				return badData("block", "%s has code %d of %d categories", s.ColumnName(i), code, c.Categories)
			default:
				cells.Codes.Set(r, int(code))
			}
		}
		at = at[b.Rows*width:]
	}
	if soft {
		if err := decodeSoft(s, at, b); err != nil {
			b.truncate(0)
			return err
		}
	}
	return nil
}
