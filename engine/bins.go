package engine

import (
	"math"
	"sort"

	"github.com/pce-engine/pce/kernels/tensor"
)

// Bins are the bins of a histogram over values: leaves read the number of a
// value's bin, and draws are spread evenly over a bin. A log density is that of the
// number less the log of the bin's width.
//
//	Edges    [bins + 1]  ascending, as values are stored; the last bin has both of its edges
//	LogWidth [bins]      in the units that log-likelihoods are of
type Bins struct {
	Edges      []float32
	LogWidth   []float64
	LogOutside float64 // log density of a value outside all bins, for every leaf
}

// binsOf returns the bins of a variable, nil if it has none.
func (e *Engine) binsOf(variable int32) *Bins {
	if e.bins == nil {
		return nil
	}
	return e.bins[variable]
}

// read writes the bins of values as codes from place at on, missing for values outside, and adds to
// excess what the log density of the code has more than that of the value.
func (b *Bins) read(values []float32, missing int32, codes *codes, at int, excess []float64) {
	last := len(b.LogWidth) - 1
	for i, v := range values {
		code := sort.Search(len(b.Edges), func(k int) bool { return b.Edges[k] > v }) - 1
		if v == b.Edges[last+1] {
			code = last
		}
		switch {
		case v != v:
			codes.set(at+i, missing)
		case code < 0 || code > last:
			codes.set(at+i, missing)
			excess[i] -= b.LogOutside
		default:
			codes.set(at+i, int32(code))
			excess[i] += b.LogWidth[code]
		}
	}
}

// draw fills missing values from the codes that were drawn for them, from place at
// on; codes beyond the bins are those of impossible rows. source tells the draws of a variable from
// those of others.
func (b *Bins) draw(values []float32, codes *codes, at int, draws tensor.Draws, source int32) {
	for i, v := range values {
		code := int(codes.at(at + i))
		if v == v || code >= len(b.LogWidth) {
			continue
		}
		lo, hi := float64(b.Edges[code]), float64(b.Edges[code+1])
		x := float32(lo + draws.Row(i).Uniform(source)*(hi-lo))
		if float64(x) >= hi { // rounding must not lead into the next bin
			x = math.Nextafter32(float32(hi), float32(lo))
		}
		values[i] = x
	}
}
