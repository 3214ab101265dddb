package boxes

import (
	"encoding/binary"
	"math"

	"github.com/pce-engine/pce/forest"
)

// Domain says what the missing cell of a feature may be.
type Domain struct {
	// Numbers, if it is not nil, lists all that it may be. With nil it may be any number, each
	// single one with probability 0, but for those whose tests are all below or above one.
	Numbers []float64
}

// Set is a set of values of a feature. Sets of a Finder are numbered from 1; two with the same
// number are equal.
type Set struct {
	Feature int
	// Low and High bound the numbers x of a feature with any number: Low <= x < High. They may
	// be infinite, and an infinite High is included.
	Low, High float64
	// In lists indices of Domain.Numbers, as runs that ascend and have others between them: of ascending
	// numbers those that pass a comparison are one run.
	In []Run
}

// Run is a run of indices.
type Run struct{ First, Last int32 }

// mostRuns is a variable for the tests. It bounds the runs of all sets, which take up to 50 bytes each with the evidence that is made of them.
var mostRuns = 1 << 24

// add appends an index above those that in has.
func add(in []Run, i int32) []Run {
	if n := len(in); n > 0 && in[n-1].Last == i-1 {
		in[n-1].Last = i
		return in
	}
	return append(in, Run{i, i})
}

// full is the set of all values of a feature, and empty that of none. Neither has a number.
const (
	full  int32 = 0
	empty int32 = -1
)

// sets numbers the sets of all features, and remembers their intersections.
type sets struct {
	list   []Set
	number map[string]int32
	both   map[uint64]int32
	runs   int // of all sets
	key    []byte
}

// of returns the number of a set.
func (s *sets) of(x Set, size int) int32 {
	switch {
	case size < 0 && !(x.Low < x.High) || size >= 0 && len(x.In) == 0:
		return empty
	case size < 0 && math.IsInf(x.Low, -1) && math.IsInf(x.High, 1) || size > 0 && x.In[0] == Run{0, int32(size) - 1}:
		return full
	}
	k := binary.LittleEndian.AppendUint32(s.key[:0], uint32(x.Feature))
	k = binary.LittleEndian.AppendUint64(k, math.Float64bits(x.Low+0)) // one zero
	k = binary.LittleEndian.AppendUint64(k, math.Float64bits(x.High+0))
	for _, run := range x.In {
		k = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(k, uint32(run.First)), uint32(run.Last))
	}
	s.key = k
	if n, ok := s.number[string(k)]; ok {
		return n
	}
	s.list, s.runs = append(s.list, x), s.runs+len(x.In)
	n := int32(len(s.list))
	s.number[string(k)] = n
	return n
}

// intersect returns the intersection of two sets of a feature.
func (s *sets) intersect(a, b int32, size int) int32 {
	switch {
	case a == empty || b == empty:
		return empty
	case a == full || a == b:
		return b
	case b == full:
		return a
	}
	k := uint64(min(a, b))<<32 | uint64(max(a, b))
	if n, ok := s.both[k]; ok {
		return n
	}
	x, y := s.list[a-1], s.list[b-1]
	z := Set{Feature: x.Feature, Low: max(x.Low, y.Low), High: min(x.High, y.High)}
	for p, q := x.In, y.In; len(p) > 0 && len(q) > 0; {
		if run := (Run{max(p[0].First, q[0].First), min(p[0].Last, q[0].Last)}); run.First <= run.Last {
			z.In = append(z.In, run)
		}
		if p[0].Last < q[0].Last {
			p = p[1:]
		} else {
			q = q[1:]
		}
	}
	n := s.of(z, size)
	s.both[k] = n
	return n
}

// passing returns the sets of the values that take the way to n.Yes and of those that take the
// one to n.No, where the feature's domain is d. It reports false for a test that says of single
// numbers of a domain of any number whether they pass.
func (s *sets) passing(t *forest.Tree, n *forest.Node, d Domain, input forest.Precision) (yes, no int32, ok bool) {
	feature := int(n.Feature)
	if d.Numbers != nil {
		in, out := Set{Feature: feature}, Set{Feature: feature}
		for i, x := range d.Numbers {
			if input == forest.Float32 {
				x = float64(float32(x))
			}
			if t.Passes(n, x) {
				in.In = add(in.In, int32(i))
			} else {
				out.In = add(out.In, int32(i))
			}
		}
		return s.of(in, len(d.Numbers)), s.of(out, len(d.Numbers)), true
	}
	cut, below := n.Threshold, true
	switch n.Test {
	case forest.Less:
	case forest.LessEqual:
		cut = math.Nextafter(cut, math.Inf(1))
	case forest.GreaterEqual:
		below = false
	case forest.Greater:
		cut, below = math.Nextafter(cut, math.Inf(1)), false
	default:
		return 0, 0, false
	}
	if n.ZeroMissing {
		return 0, 0, false
	}
	if math.IsNaN(cut) { // no number passes a comparison with NaN
		return empty, full, true
	}
	low := s.of(Set{Feature: feature, Low: math.Inf(-1), High: cut}, -1)
	high := s.of(Set{Feature: feature, Low: cut, High: math.Inf(1)}, -1)
	if below {
		return low, high, true
	}
	return high, low, true
}
