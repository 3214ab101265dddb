package polyhedron

import (
	"encoding/binary"
	"slices"
)

// MaxRows bounds the rows of a system, also while variables are eliminated.
const MaxRows = 4096

// Set is the set of integer points at which all rows of Zero are 0 and all rows of
// Positive are at least 0. The zero value with Vars set holds all points.
type Set struct {
	Vars     int
	Zero     []Row
	Positive []Row
}

// Clone returns a copy that shares no rows with s.
func (s *Set) Clone() *Set {
	c := &Set{Vars: s.Vars}
	for _, r := range s.Zero {
		c.Zero = append(c.Zero, slices.Clone(r))
	}
	for _, r := range s.Positive {
		c.Positive = append(c.Positive, slices.Clone(r))
	}
	return c
}

// Contains reports whether x is in s.
func (s *Set) Contains(x []int64) bool {
	for _, r := range s.Zero {
		if r.sign(x) != 0 {
			return false
		}
	}
	for _, r := range s.Positive {
		if r.sign(x) < 0 {
			return false
		}
	}
	return true
}

// tidy normalises the rows, drops what holds everywhere and what another row
// implies by itself, and reports whether a row holds nowhere.
func (s *Set) tidy() (empty bool) {
	zero := s.Zero[:0]
	for _, r := range s.Zero {
		switch normalise(r, true) {
		case never:
			return true
		case open:
			zero = append(zero, r)
		}
	}
	s.Zero = zero
	least := make(map[string]int, len(s.Positive)) // coefficients to the row with the least constant
	kept := s.Positive[:0]
	var key []byte
	for _, r := range s.Positive {
		switch normalise(r, false) {
		case never:
			return true
		case true1:
			continue
		}
		key = key[:0]
		for _, c := range r[:s.Vars] {
			key = binary.AppendVarint(key, c)
		}
		if k, ok := least[string(key)]; ok {
			if r[s.Vars] < kept[k][s.Vars] {
				kept[k] = r
			}
			continue
		}
		least[string(key)] = len(kept)
		kept = append(kept, r)
	}
	s.Positive = kept
	return false
}
