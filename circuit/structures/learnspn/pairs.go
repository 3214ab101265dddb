package learnspn

import (
	"math"
	"math/bits"
)

// pairCounter counts the bins of pairs of variables in a slice. Variables of few bins are
// kept as a set of rows for each bin, so that a count is the size of an intersection.
type pairCounter struct {
	s        slice
	words    int        // of a set of rows
	sets     [][]uint64 // [bins, words] of each of s.vars; nil: too many bins
	counts   [][]int    // [bins] rows of each bin
	complete []bool     // no cell is missing
}

// maxSetBins is the most bins of a variable that is kept as sets of rows.
const maxSetBins = 8

// newPairCounter prepares counting.
func newPairCounter(s slice) *pairCounter {
	p := &pairCounter{s: s, words: (len(s.rows) + 63) / 64}
	p.sets, p.counts, p.complete = make([][]uint64, len(s.vars)), make([][]int, len(s.vars)), make([]bool, len(s.vars))
	for i, v := range s.vars {
		x := &s.all[v]
		count, observed := make([]int, x.count), 0
		var sets []uint64
		if x.count <= maxSetBins {
			sets = make([]uint64, x.count*p.words)
		}
		for k, r := range s.rows {
			if c := x.bins[r]; c != missing {
				count[c]++
				observed++
				if sets != nil {
					sets[int(c)*p.words+k>>6] |= 1 << (k & 63)
				}
			}
		}
		p.sets[i], p.counts[i], p.complete[i] = sets, count, observed == len(s.rows)
	}
	return p
}

// joint fills dst [bins of i, bins of j] with how many rows have each pair of bins of the
// variables at places i and j of the slice, and returns it.
func (p *pairCounter) joint(i, j int, dst []float64) []float64 {
	a, b := &p.s.all[p.s.vars[i]], &p.s.all[p.s.vars[j]]
	dst = dst[:a.count*b.count]
	switch {
	case p.sets[i] == nil || p.sets[j] == nil:
		clear(dst)
		for _, r := range p.s.rows {
			if c, d := a.bins[r], b.bins[r]; c != missing && d != missing {
				dst[int(c)*b.count+int(d)]++
			}
		}
	case a.count == 2 && b.count == 2 && p.complete[i] && p.complete[j]:
		n := p.both(i, 1, j, 1)
		ones, others := p.counts[i][1], p.counts[j][1]
		dst[3], dst[2], dst[1] = float64(n), float64(ones-n), float64(others-n)
		dst[0] = float64(len(p.s.rows) - ones - others + n)
	default:
		for c := range a.count {
			for d := range b.count {
				dst[c*b.count+d] = float64(p.both(i, c, j, d))
			}
		}
	}
	return dst
}

// both returns how many rows have bin c of the variable at i and bin d of the one at j.
func (p *pairCounter) both(i, c, j, d int) int {
	a, b := p.sets[i][c*p.words:][:p.words], p.sets[j][d*p.words:][:p.words]
	n := 0
	for k, w := range a {
		n += bits.OnesCount64(w & b[k])
	}
	return n
}

// information returns the mutual information, in nats, of a joint table [rows, cols] of
// weights, its total weight, and the degrees of freedom of rows and columns that occur.
func information(joint []float64, rows, cols int) (nats, total float64, freedom int) {
	column := make([]float64, cols)
	sum, usedRows, usedCols := 0.0, 0, 0
	for i := range rows {
		row := 0.0
		for j, x := range joint[i*cols:][:cols] {
			if x > 0 {
				row += x
				column[j] += x
				sum += x * math.Log(x)
			}
		}
		if row > 0 {
			total += row
			sum -= row * math.Log(row)
			usedRows++
		}
	}
	if total == 0 {
		return 0, 0, 0
	}
	for _, x := range column {
		if x > 0 {
			sum -= x * math.Log(x)
			usedCols++
		}
	}
	return max(0, sum/total+math.Log(total)), total, (usedRows - 1) * (usedCols - 1)
}
