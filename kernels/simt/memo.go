package simt

import (
	"math"
	"math/bits"
)

// memo finds the instructions of a block by what they compute: places in the block, in an open hash table of places that
// the block itself has the keys of, which takes a fraction of a map's memory.
type memo struct {
	slots []memoSlot // a power of 2 of them, at most half of them taken
	taken int
	turn  uint32 // that of slots which are taken is one more
}

type memoSlot struct {
	turn, hash uint32
	place      int32
}

// forget frees all slots.
func (m *memo) forget() {
	m.taken = 0
	if m.turn++; m.turn == math.MaxUint32 {
		clear(m.slots)
		m.turn = 0
	}
}

// find returns the place with a hash for which same holds.
func (m *memo) find(hash uint32, same func(place int32) bool) (place int32, ok bool) {
	if m.taken == 0 {
		return 0, false
	}
	mask := uint32(len(m.slots) - 1)
	for i := hash & mask; m.used(i); i = (i + 1) & mask {
		if s := &m.slots[i]; s.hash == hash && same(s.place) {
			return s.place, true
		}
	}
	return 0, false
}

// used reports whether a slot is taken. New memory has turn 0, which nothing that is taken has.
func (m *memo) used(i uint32) bool { return m.slots[i].turn == m.turn+1 }

// add notes a place that is not there.
func (m *memo) add(hash uint32, place int32) {
	if 2*m.taken >= len(m.slots) {
		old := m.slots
		m.slots = make([]memoSlot, max(16, 2*len(old)))
		for _, s := range old {
			if s.turn == m.turn+1 {
				m.put(s)
			}
		}
	}
	m.put(memoSlot{m.turn + 1, hash, place})
	m.taken++
}

func (m *memo) put(s memoSlot) {
	mask := uint32(len(m.slots) - 1)
	i := s.hash & mask
	for m.used(i) {
		i = (i + 1) & mask
	}
	m.slots[i] = s
}

// hashOf returns a hash of what an instruction with a result of type t computes.
func hashOf(t Type, in *Instr) uint32 {
	h := uint64(in.Op)<<40 | uint64(t)<<32 | uint64(uint32(in.Ref))
	for _, word := range [...]uint64{
		uint64(uint32(in.Args[0]))<<32 | uint64(uint32(in.Args[1])), uint64(uint32(in.Args[2])), in.Imm,
	} {
		hi, lo := bits.Mul64(h^word, 0x9e3779b97f4a7c15)
		h = hi ^ lo
	}
	return uint32(h) ^ uint32(h>>32)
}

// computes reports whether an instruction with a result of type t computes what another one does that is there.
func (b *Builder) computes(t Type, in, there *Instr) bool {
	return in.Op == there.Op && in.Args == there.Args && in.Imm == there.Imm && in.Ref == there.Ref && b.m.Types[there.Out] == t
}
