package dataset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// tally is what inference counts of the observed cells of a column.
type tally struct {
	cells    int
	numbers  int  // of the cells
	set      bool // the column's type is not inferred
	bare     bool // a label is of a number without text
	fraction bool
	repeated bool // some cell is like an earlier one, as far as the sample shows
	mean     float64
	squares  float64 // sum of squared deviations from the mean
	min, max float64 // of the numbers
	distinct sample
	picks    picks

	commaAt    string // place and text of the first text that is a number but for its commas
	otherTexts bool   // there are other texts
}

// fewest is how many cells there must be in a column before it is worth a remark that
// all of them differ.
const fewest = 10

// add counts a number. The sample keeps up to most of them.
func (t *tally) add(x float64, most int) {
	t.cells++
	t.count(x)
	t.fraction = t.fraction || x != math.Trunc(x)
	t.picks.add(x, most)
	if t.distinct.add(x, most) {
		t.repeated = true
	}
}

// count is the part of add that knows mean, deviation and range.
func (t *tally) count(x float64) {
	t.numbers++
	if t.numbers == 1 {
		t.min, t.max = x, x
	}
	t.min, t.max = min(t.min, x), max(t.max, x)
	d := x - t.mean
	t.mean += d / float64(t.numbers)
	t.squares += d * (x - t.mean)
}

// deviation returns the standard deviation of the numbers, 0 of none.
func (t *tally) deviation() float64 { return math.Sqrt(t.squares / float64(max(1, t.numbers))) }

// merge adds what was counted in another file to t. Means and squares are merged by Chan's
// formula, so no sum of large squares loses digits. Distinct numbers are counted up to most; a
// number that both files have is one that is repeated.
func (t *tally) merge(u *tally, most int) {
	n := t.numbers + u.numbers
	if n > 0 {
		d := u.mean - t.mean
		t.mean += d * float64(u.numbers) / float64(n)
		t.squares += u.squares + d*d*float64(t.numbers)*float64(u.numbers)/float64(n)
	}
	switch {
	case t.numbers == 0:
		t.min, t.max = u.min, u.max
	case u.numbers > 0:
		t.min, t.max = min(t.min, u.min), max(t.max, u.max)
	}
	t.cells, t.numbers = t.cells+u.cells, n
	t.picks.merge(&u.picks, most)
	t.bare = t.bare || u.bare
	t.fraction, t.repeated = t.fraction || u.fraction, t.repeated || u.repeated
	t.commaAt, t.otherTexts = cmp.Or(t.commaAt, u.commaAt), t.otherTexts || u.otherTexts
	for _, h := range u.distinct.slots {
		if h != 0 && t.distinct.insert(h, most) {
			t.repeated = true
		}
	}
}

// checkCommas reports a column of which all texts, those of all files, are numbers but for their commas, as "1,234" in quotes is: as
// texts they would be categories, and the numbers beside them, too. Where commas do not cut cells, inference has reported the first one.
func (t *tally) checkCommas() error {
	if t.commaAt == "" || t.otherTexts || t.set {
		return nil
	}
	return fmt.Errorf("%w: %s has a comma, as all texts of its column are numbers with commas; write numbers with a decimal point and nothing between thousands, or set the column's type to label",
		ErrFormat, t.commaAt)
}

// allDiffer reports whether the cells, whole numbers or texts, are all different:
// a column of names or of numbers that identify rows.
func (t *tally) allDiffer() bool { return t.cells >= fewest && !t.repeated && !t.fraction }

// sample is a set of distinct numbers: of all numbers while these are few, then of
// those whose hash is below a limit, so that a number that comes again is met again.
type sample struct {
	slots []uint64 // open addressing, 0 for a free slot
	len   int
	shift int // hashes are below 2^(64-shift)
}

// mostSampled bounds the numbers sampled of all columns of a file together.
const mostSampled = 1 << 21

// sampledPerColumn is how many numbers a sample keeps of each of some columns.
func sampledPerColumn(columns int) int { return max(8, min(4096, mostSampled/columns)) }

// add adds a number and reports whether it was there. A full sample forgets half
// of its numbers.
func (s *sample) add(x float64, most int) bool { return s.insert(hash(x), most) }

// insert adds a hash to the set and reports whether it was there. Once the set has most hashes
// it keeps only those whose leading bits are zero, one bit more each time, so the share that
// is kept says how many different ones there were.
func (s *sample) insert(h uint64, most int) bool {
	if s.shift > 0 && h>>(64-s.shift) != 0 {
		return false
	}
	if 2*(s.len+1) > len(s.slots) {
		s.resize(max(8, 2*len(s.slots)))
	}
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case h:
			return true
		case 0:
			s.slots[i] = h
			if s.len++; s.len > most {
				s.shift++
				s.resize(len(s.slots))
			}
			return false
		}
	}
}

// resize moves the hashes below the limit to a table of n slots.
func (s *sample) resize(n int) {
	old := s.slots
	s.slots, s.len = make([]uint64, n), 0
	mask := uint64(n - 1)
	for _, h := range old {
		if h == 0 || s.shift > 0 && h>>(64-s.shift) != 0 {
			continue
		}
		i := h & mask
		for s.slots[i] != 0 {
			i = (i + 1) & mask
		}
		s.slots[i] = h
		s.len++
	}
}

// values returns the sampled numbers, ascending.
func (s *sample) values() []float64 {
	var out []float64
	for _, h := range s.slots {
		if h != 0 {
			out = append(out, unhash(h))
		}
	}
	slices.Sort(out)
	return out
}

// The hash of a number can be undone: it multiplies with an odd number, mixes the
// high bits into the low ones and multiplies again. Only a NaN has the hash 0.
const (
	hashFactor  = 0x9e3779b97f4a7c15
	hashInverse = 0xf1de83e19937733d // hashFactor·hashInverse = 1 modulo 2^64
	hashOffset  = 0x7fffffffffffffff
)

func hash(x float64) uint64 {
	h := (math.Float64bits(x+0) ^ hashOffset) * hashFactor // x+0 makes -0 and 0 the same
	h ^= h >> 32
	return h * hashFactor
}

func unhash(h uint64) float64 {
	h *= hashInverse
	h ^= h >> 32
	return math.Float64frombits(h*hashInverse ^ hashOffset)
}
