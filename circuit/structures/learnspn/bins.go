package learnspn

import (
	"cmp"
	"slices"
)

// maxBins is the most bins of a variable in a count of pairs: more codes than that, or
// numbers, are joined.
const maxBins = 16

// bin cuts a variable into bins. Few codes are their own bins; the most frequent labels have
// a bin each and the others share one; numbers, and codes that are numbers, are cut into bins
// of about equally many rows.
func (x *variable) bin() {
	if x.domain > 0 && x.domain <= maxBins {
		x.bins, x.count = x.codes, x.domain
		return
	}
	x.bins = make([]int32, x.rows())
	if x.domain > 0 && !x.ordered {
		x.binLabels()
		return
	}
	order := make([]int32, 0, len(x.bins))
	for r := range x.bins {
		if _, ok := x.at(int32(r)); ok {
			order = append(order, int32(r))
		} else {
			x.bins[r] = missing
		}
	}
	number := func(r int32) float64 { v, _ := x.at(r); return v }
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(number(a), number(b)) })
	last, quantile := int32(-1), -1
	for i, r := range order {
		if q := i * maxBins / len(order); (i == 0 || number(r) != number(order[i-1])) && q > quantile {
			last, quantile = last+1, q
		}
		x.bins[r] = last
	}
	x.count = int(last) + 1
}

// binLabels gives each of the most frequent labels a bin; ties go to the smaller code.
func (x *variable) binLabels() {
	rows, order := make([]int, x.domain), make([]int, x.domain)
	for _, c := range x.codes {
		if c != missing {
			rows[c]++
		}
	}
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[b], rows[a]) })
	rank := make([]int32, x.domain)
	for i, c := range order {
		rank[c] = int32(min(i, maxBins-1))
	}
	for r, c := range x.codes {
		x.bins[r] = missing
		if c != missing {
			x.bins[r] = rank[c]
		}
	}
	x.count = maxBins
}

func sorted(x []int) []int {
	slices.Sort(x)
	return x
}
