package lanes

import "math/bits"

// memory is what a set does with places in memory.
type memory struct {
	locate       func(address *Wide, from, last, size uint64, m uint32, at *Narrow) uint32
	locateShared func(address *Narrow, off, last, size, m uint32, at *Narrow) uint32
	spread       func(d *Narrow, v, m uint32)
	gather       func(d *Narrow, data *byte, at *Narrow, m uint32)
	known        func(known *byte, at *Narrow, words int, m uint32) bool
	note         func(shadow *uint64, at *Narrow, words int, m uint32, warp, bits, forbidden uint64, reads bool) uint32
}

// Shape is what places have in common that the lanes of a mask access.
type Shape uint32

// The shapes.
const (
	Astray Shape = iota // some are out of bounds or misaligned, or nothing is known
	Same                // all are one
	Row                 // all lanes run, and each place follows the one before
	Apart               // none of these
)

// Locate sets at to the distances of addresses from an address, and says what they
// have in common in the lanes of m. Places are of size bytes, a power of two, and all
// distances must be multiples of it, up to last.
func (s *Set) Locate(address *Wide, from, last, size uint64, m uint32, at *Narrow) Shape {
	if s.memory == nil {
		return Astray
	}
	return Shape(s.memory.locate(address, from, last, size, m, at))
}

// LocateShared is Locate for addresses of 32 bits, to which off is added.
func (s *Set) LocateShared(address *Narrow, off, last, size, m uint32, at *Narrow) Shape {
	if s.memory == nil {
		return Astray
	}
	return Shape(s.memory.locateShared(address, off, last, size, m, at))
}

// Spread sets the lanes of m to v.
func (s *Set) Spread(d *Narrow, v, m uint32) {
	if s.memory != nil {
		s.memory.spread(d, v, m)
		return
	}
	for ; m != 0; m &= m - 1 {
		d[bits.TrailingZeros32(m)&31] = v
	}
}

// Gather loads words for the lanes of m. Locate has seen that data has them, and that
// it has no more than 2^31 bytes.
func (s *Set) Gather(d *Narrow, data *byte, at *Narrow, m uint32) { s.memory.gather(d, data, at, m) }

// Known reports whether the bytes of a number of words are all 1 at the places of the
// lanes of m, for which holds what Gather says.
func (s *Set) Known(known *byte, at *Narrow, words int, m uint32) bool {
	return s.memory.known(known, at, words, m)
}

// Note notes accesses of a warp to a number of words of shared memory at the places
// of the lanes of m, one lane after the other. It does so where nothing can speak
// against it: where other warps have done nothing since the last barrier but read
// what this one reads, too. It returns the lanes that are left, beginning with the
// first one of which it is not sure. The emulator's shared.go says what is in a
// shadow; bits are those to set there, forbidden those that must not be set before a
// write.
func (s *Set) Note(shadow []uint64, at *Narrow, words int, m uint32, warp, bits, forbidden uint64, reads bool) uint32 {
	if s.memory == nil {
		return m
	}
	return s.memory.note(&shadow[0], at, words, m, warp, bits, forbidden, reads)
}
