package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math"
)

// Digest returns the SHA-256 of the rows of src: of the schema, then of the
// cells, 1024 rows at a time, column by column. Two sources have the same digest
// if they have the same rows in the same order, whatever file they come from. It
// reads src once.
func Digest(ctx context.Context, src Source) (digest [sha256.Size]byte, err error) {
	if src, err = Checked(src); err != nil {
		return digest, err
	}
	s := src.Schema()
	text, err := json.Marshal(s)
	if err != nil {
		return digest, err
	}
	h := sha256.New()
	h.Write(text) // a hash never fails
	var buf []byte
	b := &Batch{}
	for lo := 0; lo < src.Rows(); lo += chunkRows {
		if err := src.Gather(ctx, b, span(lo, min(lo+chunkRows, src.Rows()))); err != nil {
			return digest, err
		}
		for i := range s.Columns {
			buf = s.Columns[i].putCells(buf, &b.Columns[i])
			h.Write(buf)
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// putCells writes the cells of the column into dst as bytes, which do not depend
// on how they are kept in memory: a missing cell has one form. It returns the part
// of dst that it used, or a longer slice.
func (c *Column) putCells(dst []byte, cells *Cells) []byte {
	width := c.cellBytes()
	dst = room(dst, width*(cells.Codes.Len()+len(cells.Values)))
	for i, v := range cells.Values {
		if v != v {
			v = missingValue
		}
		binary.LittleEndian.PutUint32(dst[width*i:], math.Float32bits(v))
	}
	putCodes(dst, width, cells.Codes.Narrow)
	putCodes(dst, width, cells.Codes.Wide)
	return dst
}

// putCodes writes codes of width bytes. Missing, all ones in every width, stays so.
func putCodes[T uint16 | uint32](dst []byte, width int, codes []T) {
	switch width {
	case 1:
		for i, v := range codes {
			dst[i] = byte(v)
		}
	case 2:
		for i, v := range codes {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
		}
	default:
		for i, v := range codes {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		}
	}
}
