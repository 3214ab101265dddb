package parquet

import (
	"encoding/binary"
	"fmt"
)

// differences are integers of 32 bits in DELTA_BINARY_PACKED: a first number, then blocks of differences to the number before, less the
// least of the block, in parts that have a width each. Sums are modulo 2^32, so that widths beyond 32 bits are read by their lower bits.
type differences struct {
	rest   []byte // from the next part or block on
	count  uint64 // numbers that are yet to come
	part   uint64 // numbers of a part
	parts  uint64 // of a block
	widths []byte // in bits, of the parts of the block that are yet to come
	least  int32  // difference of the block
	last   int32
	began  bool
	left   uint64 // numbers of the part that are yet to come
	packed []byte // the part
	width  uint64
	at     uint64 // bit of the next number of the part
}

func newDifferences(data []byte) (*differences, error) {
	d := &differences{rest: data}
	var header [3]uint64 // size of a block, its parts, numbers of the page
	for i := range header {
		x, n := binary.Uvarint(d.rest)
		if n <= 0 {
			return nil, errCut
		}
		header[i], d.rest = x, d.rest[n:]
	}
	first, n := binary.Varint(d.rest)
	if n <= 0 {
		return nil, errCut
	}
	d.rest, d.last, d.parts, d.count = d.rest[n:], int32(first), header[1], header[2]
	if d.parts == 0 || d.parts > header[0] || header[0] > 1<<20 {
		return nil, fmt.Errorf("blocks of %d differences in %d parts", header[0], d.parts)
	}
	d.part = header[0] / d.parts
	return d, nil
}

func (d *differences) next() (int32, error) {
	if d.count == 0 {
		return 0, errCut
	}
	d.count--
	if !d.began {
		d.began = true
		return d.last, nil
	}
	if d.left == 0 {
		if err := d.nextPart(); err != nil {
			return 0, err
		}
	}
	d.left--
	var window [8]byte // zeros behind the end: some writers leave the rest of the last part out
	if at := d.at / 8; at < uint64(len(d.packed)) {
		copy(window[:], d.packed[at:])
	}
	x := binary.LittleEndian.Uint64(window[:]) >> (d.at % 8) & (1<<min(d.width, 32) - 1)
	d.at += d.width
	d.last += d.least + int32(uint32(x))
	return d.last, nil
}

// nextPart begins the next part, of the next block if this one has no other.
func (d *differences) nextPart() error {
	if len(d.widths) == 0 {
		least, n := binary.Varint(d.rest)
		if n <= 0 || uint64(len(d.rest)-n) < d.parts {
			return errCut
		}
		d.least, d.widths, d.rest = int32(least), d.rest[n:][:d.parts], d.rest[uint64(n)+d.parts:]
	}
	d.width, d.widths, d.left, d.at = uint64(d.widths[0]), d.widths[1:], d.part, 0
	if d.width > 64 {
		return fmt.Errorf("differences of %d bits", d.width)
	}
	size := min(d.width*d.part/8, uint64(len(d.rest)))
	d.packed, d.rest = d.rest[:size], d.rest[size:]
	return nil
}
