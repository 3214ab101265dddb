package cluster

import (
	"slices"

	"github.com/pce-engine/pce/layers"
)

// elements of a frame.
const (
	frameFlows  = MaxFrameBytes / 8
	frameFloats = MaxFrameBytes / 4
)

// part is what one member of a term moves: owners lo to hi-1.
type part struct {
	lo, hi int
	flows  []layers.Range // in the flows, ascending
	state  []layers.Range // in the state, ascending
}

// stateLen is the number of floats of the state.
func (l Layout) stateLen() int64 { return l.Params + l.Averages }

// split divides a layout among n members, the same way wherever it is done.
func (l Layout) split(n int) []part {
	bounds := layers.SplitOwners(l.Owners, n)
	parts := make([]part, n)
	for i := range parts {
		p := &parts[i]
		p.lo, p.hi = bounds[i], bounds[i+1]
		for _, o := range l.Owners[p.lo:p.hi] {
			p.flows = append(p.flows, o.Flows...)
			p.state = append(p.state, o.Params...)
			if l.Averages > 0 {
				for _, a := range o.Averages {
					p.state = append(p.state, layers.Range{Lo: a.Lo + l.Params, Hi: a.Hi + l.Params})
				}
			}
		}
		p.flows, p.state = merged(p.flows), merged(p.state)
	}
	return parts
}

// merged sorts ranges and joins those that touch.
func merged(list []layers.Range) []layers.Range {
	slices.SortFunc(list, func(a, b layers.Range) int { return int(min(1, max(-1, a.Lo-b.Lo))) })
	var out []layers.Range
	for _, r := range list {
		if r.Hi == r.Lo {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Hi == r.Lo {
			out[n-1].Hi = r.Hi
			continue
		}
		out = append(out, r)
	}
	return out
}

func length(list []layers.Range) int64 {
	n := int64(0)
	for _, r := range list {
		n += r.Hi - r.Lo
	}
	return n
}

// pieces cuts ranges into frames of at most most elements. A piece lies at
// offset in its buffer and at place in the concatenation of the ranges.
type pieces struct {
	list []piece
	at   map[int64]int // offset → index in list
}

type piece struct {
	index            int
	offset, place, n int64
}

func cut(list []layers.Range, most int64) pieces {
	p := pieces{at: map[int64]int{}}
	place := int64(0)
	for _, r := range list {
		for at := r.Lo; at < r.Hi; at += most {
			n := min(most, r.Hi-at)
			p.at[at] = len(p.list)
			p.list = append(p.list, piece{len(p.list), at, place, n})
			place += n
		}
	}
	return p
}

// arrivals notes which pieces have come from a sender.
type arrivals struct {
	pieces pieces
	have   []bool
	left   int // to come
	added  int // whose contents have been used
}

func expect(p pieces) arrivals {
	return arrivals{pieces: p, have: make([]bool, len(p.list)), left: len(p.list)}
}

// take returns the piece that a frame holds; ok is false for one that has come
// before or is none.
func (a *arrivals) take(offset, n int64) (piece, bool) {
	i, ok := a.pieces.at[offset]
	if !ok || a.have[i] || a.pieces.list[i].n != n {
		return piece{}, false
	}
	a.have[i] = true
	a.left--
	return a.pieces.list[i], true
}
