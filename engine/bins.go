package engine

import (
	"math"
	"sort"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
)

// bins are the bins of a histogram over values: leaves read the number of a
// value's bin, and draws are spread evenly over a bin. A log density is that of the
// number less the log of the bin's width.
//
//	edges    [bins + 1]  ascending, as values are stored; the last bin has both of its edges
//	exact    [bins + 1]  the edges before they were rounded, which the ends of a range are held to
//	logWidth [bins]      in the units that log-likelihoods are of
//	taken                natural log that densities of bins are divided by: 0 unless float64 has no room for the largest
type bins struct {
	edges      []float32
	exact      []float64
	logWidth   []float64
	taken      float64
	logOutside float64 // log density of a value outside all bins, for every leaf
}

// binsOf returns the bins of columns with edges, in the units in which cells are stored, nil if
// there are none. It is called once for an engine; bins have their widths in the column's own
// units, since densities are of those.
func binsOf(s *dataset.Schema) []*bins {
	const room = 700 // float64 has densities up to e^709
	var all []*bins
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.Edges == nil {
			continue
		}
		if all == nil {
			all = make([]*bins, len(s.Columns))
		}
		b := &bins{logOutside: naturalLog(c.Outside)}
		for k, e := range c.Edges {
			b.edges, b.exact = append(b.edges, c.Standard(e)), append(b.exact, standard(c, e))
			if k > 0 {
				log := naturalLog(e - c.Edges[k-1])
				b.logWidth, b.taken = append(b.logWidth, log), max(b.taken, -log)
			}
		}
		if b.taken <= room {
			b.taken = 0
		}
		all[i] = b
	}
	return all
}

// density is that of a value in a bin whose probability is 1, less what is taken.
func (b *bins) density(code int) float64 { return math.Exp(-b.logWidth[code] - b.taken) }

// binsOf returns the bins of a variable, nil if it has none.
func (e *Engine) binsOf(variable int32) *bins {
	if e.bins == nil {
		return nil
	}
	return e.bins[variable]
}

// read writes the bins of values as codes from place at on, missing for values outside, and adds to
// excess what the log density of the code has more than that of the value.
func (b *bins) read(values []float32, missing int32, codes *codes, at int, excess []float64) {
	for i, v := range values {
		switch code := b.code(v); {
		case v != v:
			codes.set(at+i, missing)
		case code < 0:
			codes.set(at+i, missing)
			excess[i] -= b.logOutside
		default:
			codes.set(at+i, int32(code))
			excess[i] += b.logWidth[code]
		}
	}
}

// code returns the bin of a value, -1 if it lies outside all.
func (b *bins) code(v float32) int {
	last := len(b.logWidth) - 1
	code := sort.Search(len(b.edges), func(k int) bool { return b.edges[k] > v }) - 1
	switch {
	case v == b.edges[last+1]:
		return last
	case code > last:
		return -1
	}
	return code
}

// moments returns mean and variance of the values of a bin, as they are stored.
func (b *bins) moments(code int) (mean, variance float64) {
	lo, hi := float64(b.edges[code]), float64(b.edges[code+1])
	return (lo + hi) / 2, (hi - lo) * (hi - lo) / 12
}

// draw fills missing values from the codes that were drawn for them, from place at
// on; codes beyond the bins are those of impossible rows. source tells the draws of a variable from
// those of others.
func (b *bins) draw(values []float32, codes *codes, at int, draws tensor.Draws, source int32) {
	for i, v := range values {
		code := int(codes.at(at + i))
		if v == v || code >= len(b.logWidth) {
			continue
		}
		lo, hi := float64(b.edges[code]), float64(b.edges[code+1])
		x := float32(lo + draws.Row(i).Uniform(source)*(hi-lo))
		if float64(x) >= hi { // rounding must not lead into the next bin
			x = math.Nextafter32(float32(hi), float32(lo))
		}
		values[i] = x
	}
}
