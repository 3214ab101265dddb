package forest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels/sliced"
)

// ErrLower means that a forest has no module of the kind that was asked for.
var ErrLower = errors.New("compile/forest: cannot be lowered")

// span is a half-open interval of cells, [from, to).
type span struct{ from, to bound }

// bound is an end of an interval. Without a number the interval includes every number on that
// side, infinities too.
type bound struct {
	at  float64
	set bool
}

func end(x float64) bound { return bound{x, true} }

// Lower makes a sliced.Module of a forest that has passed Check. Sums alone are
// supported, of trees, with at most sliced.MaxCuts cut points for a feature.
func Lower(f *forest.Forest) (*sliced.Module, error) {
	if f.Linear != nil || f.Combine != forest.Sum || f.Features < 1 {
		return nil, fmt.Errorf("%w: only sums of trees are sliced", ErrLower)
	}
	l := &lowering{
		f: f, m: &sliced.Module{Features: f.Features, Outputs: f.Outputs, Single: f.Sum == forest.Float32, Trees: make([]sliced.Tree, len(f.Trees))},
		masks: map[string]int32{},
	}
	l.findTests()
	if err := l.columns(); err != nil {
		return nil, err
	}
	made := make([]int32, len(l.tests)) // the mask of each test
	for i, at := range l.tests {
		t := &f.Trees[at.tree]
		made[i] = l.makeMask(t, &t.Nodes[at.node])
	}
	for _, p := range l.parts {
		for k, test := range p.masks {
			p.masks[k] = made[test]
		}
	}
	return l.m, parallel.Each(len(f.Trees), func() func(int) error {
		w := &treeLowering{lowering: l}
		return func(i int) error {
			l.m.Trees[i] = w.tree(i)
			return nil
		}
	})
}

// lowering is the state of Lower.
type lowering struct {
	f      *forest.Forest
	m      *sliced.Module
	column map[int32]int32  // of a feature
	masks  map[string]int32 // by column and ends
	key    []byte
	ends   []uint16 // of the mask that is made
	room   []uint16 // for ends of masks
	passed []span   // see passing

	parts []testPart // runs of trees
	tests []testNode // in the order in which nodes ask them first
}

// spans returns the intervals whose bounds are cut points because of a node: those of
// the cells that pass its test and, where zeros count as missing, that of zeros. They are
// overwritten by the next call.
func (l *lowering) spans(t *forest.Tree, n *forest.Node) []span {
	s := l.passing(t, n)
	if n.ZeroMissing {
		s = append(s, l.zeros())
	}
	return s
}

// zeros is the interval of cells that count as missing where a node says so.
func (l *lowering) zeros() span {
	return span{end(l.least(-forest.ZeroWithin)), end(l.above(forest.ZeroWithin))}
}

// least returns the least cell that is not below x, above the least one above x, in
// the precision in which cells are compared.
func (l *lowering) least(x float64) float64 {
	if l.f.Input == forest.Float64 || math.IsNaN(x) {
		return x
	}
	y := float32(x)
	if float64(y) < x {
		y = math.Nextafter32(y, float32(math.Inf(1)))
	}
	return float64(y)
}

func (l *lowering) above(x float64) float64 {
	y := l.least(x)
	switch {
	case y != x:
		return y
	case l.f.Input == forest.Float64:
		return math.Nextafter(x, math.Inf(1))
	}
	return float64(math.Nextafter32(float32(x), float32(math.Inf(1))))
}

// passing returns the intervals of the cells for which the test holds, ascending and
// apart. They are overwritten by the next call.
func (l *lowering) passing(t *forest.Tree, n *forest.Node) []span {
	l.passed = l.pass(l.passed[:0], t, n)
	return l.passed
}

// pass appends to out, which is empty, what passing returns.
func (l *lowering) pass(out []span, t *forest.Tree, n *forest.Node) []span {
	below := func(x float64) []span { return append(out, span{to: end(x)}) }
	from := func(x float64) []span { return append(out, span{from: end(x)}) }
	x := n.Threshold
	if math.IsNaN(x) && !n.Test.Categorical() { // no comparison with NaN holds, but that it is not equal
		if n.Test == forest.NotEqual {
			return append(out, span{})
		}
		return out
	}
	top := math.IsInf(x, 1) // no cell is above it
	switch n.Test {
	case forest.Less:
		return below(l.least(x))
	case forest.GreaterEqual:
		return from(l.least(x))
	case forest.LessEqual:
		if top {
			return append(out, span{})
		}
		return below(l.above(x))
	case forest.Greater:
		if top {
			return out
		}
		return from(l.above(x))
	case forest.Equal:
		return l.points(out, x)
	case forest.NotEqual:
		return complement(l.points(out, x))
	}
	list := t.Categories[n.First:n.Last]
	if n.Test == forest.InExact {
		return l.points(out, list...)
	}
	for _, c := range list {
		if c != math.Trunc(c) || math.IsInf(c, 0) {
			continue // no integer part is equal to it
		}
		lo, hi := l.least(c), l.least(c+1)
		switch {
		case math.Abs(c) >= 1<<53: // from there on all cells are whole, and c+1 may not be a number
			hi = l.above(c)
		case n.Test == forest.InTruncated && c == 0:
			lo = l.above(-1)
		case n.Test == forest.InTruncated && c < 0:
			lo, hi = l.above(c-1), l.above(c)
		}
		if lo < hi {
			out = join(out, lo, hi)
		}
	}
	return out
}

// points appends the intervals of single numbers, ascending.
func (l *lowering) points(out []span, xs ...float64) []span {
	for _, x := range xs {
		lo := l.least(x)
		if lo != x {
			continue // no cell is equal to it
		}
		if math.IsInf(x, 1) {
			out = append(out, span{from: end(lo)})
			continue
		}
		out = join(out, lo, l.above(x))
	}
	return out
}

// join appends [lo, hi), which does not start before the last interval's end, except
// that it joins or overlaps it.
func join(out []span, lo, hi float64) []span {
	if k := len(out) - 1; k >= 0 && out[k].to.set && out[k].to.at >= lo {
		if out[k].to.at < hi {
			out[k].to = end(hi)
		}
		return out
	}
	return append(out, span{end(lo), end(hi)})
}

// complement returns what is outside ascending intervals.
func complement(s []span) []span {
	var out []span
	var from bound
	open := true // from is a lower bound, or none is needed
	for _, x := range s {
		if x.from.set {
			out = append(out, span{from, x.from})
		}
		from, open = x.to, x.to.set
	}
	if open {
		out = append(out, span{from: from})
	}
	return out
}

// makeMask returns the mask of a node's test, which may be that of another one already.
func (l *lowering) makeMask(t *forest.Tree, n *forest.Node) int32 {
	column := l.column[n.Feature]
	cuts := l.m.Columns[column].Cuts
	missing := uint16(len(cuts) + 1)
	// A rank passes if it is below an odd number of ends: an interval toggles both of its
	// bounds, and one without a lower bound the upper one alone.
	ends := l.ends[:0]
	toggle := func(end uint16) {
		if at, in := slices.BinarySearch(ends, end); in {
			ends = slices.Delete(ends, at, at+1)
		} else if end > 0 {
			ends = slices.Insert(ends, at, end)
		}
	}
	rank := func(b bound, none uint16) uint16 {
		if !b.set {
			return none
		}
		at, _ := slices.BinarySearch(cuts, b.at+0)
		return uint16(at + 1) // cells below the bound have ranks 0..at
	}
	spans := l.passing(t, n)
	if n.ZeroMissing {
		spans = without(spans, l.zeros())
		if n.MissingYes {
			z := l.zeros()
			toggle(rank(z.from, 0))
			toggle(rank(z.to, missing))
		}
	}
	for _, s := range spans {
		toggle(rank(s.from, 0))
		toggle(rank(s.to, missing))
	}
	if n.MissingYes {
		toggle(missing)
		toggle(missing + 1)
	}
	if len(ends) == 0 { // no rank passes: two equal ends
		ends = append(ends, 1, 1)
	}
	l.ends = ends
	l.key = binary.LittleEndian.AppendUint32(l.key[:0], uint32(column))
	for _, e := range ends {
		l.key = binary.LittleEndian.AppendUint16(l.key, e)
	}
	if at, ok := l.masks[string(l.key)]; ok {
		return at
	}
	at := int32(len(l.m.Masks))
	l.masks[string(l.key)] = at
	if len(l.room)+len(ends) > cap(l.room) {
		l.room = make([]uint16, 0, max(4096, len(ends)))
	}
	first := len(l.room)
	l.room = append(l.room, ends...)
	l.m.Masks = append(l.m.Masks, sliced.Mask{Column: column, Ends: l.room[first:len(l.room):len(l.room)]})
	return at
}

// without cuts an interval with two bounds out of ascending ones.
func without(spans []span, cut span) []span {
	var out []span
	for _, s := range spans {
		if s.to.set && s.to.at <= cut.from.at || s.from.set && s.from.at >= cut.to.at {
			out = append(out, s)
			continue
		}
		if !s.from.set || s.from.at < cut.from.at {
			out = append(out, span{s.from, cut.from})
		}
		if !s.to.set || s.to.at > cut.to.at {
			out = append(out, span{cut.to, s.to})
		}
	}
	return out
}
