package cluster

import (
	"fmt"
	"slices"
)

// runs is a set of shards as ascending, separate ranges: lo, hi, lo, hi, ...
type runs []int

// runsOf makes a set of a list of different shards, in any order.
func runsOf(shards []int) runs {
	sorted := slices.Sorted(slices.Values(shards))
	var r runs
	for _, s := range sorted {
		if n := len(r); n > 0 && r[n-1] == s {
			r[n-1]++
			continue
		}
		r = append(r, s, s+1)
	}
	return r
}

// count returns the number of shards.
func (r runs) count() int {
	n := 0
	for i := 0; i+1 < len(r); i += 2 {
		n += r[i+1] - r[i]
	}
	return n
}

// all lists the shards.
func (r runs) all() []int {
	out := make([]int, 0, r.count())
	for i := 0; i+1 < len(r); i += 2 {
		for s := r[i]; s < r[i+1]; s++ {
			out = append(out, s)
		}
	}
	return out
}

// valid reports whether r is well formed with all shards below n.
func (r runs) valid(n int) bool {
	if len(r)%2 != 0 {
		return false
	}
	last := -1
	for i := 0; i < len(r); i += 2 {
		if r[i] <= last || r[i+1] <= r[i] || r[i+1] > n {
			return false
		}
		last = r[i+1]
	}
	return true
}

// check refuses a set that is empty, has more than most shards, or some beyond
// the first n.
func (r runs) check(n, most int) error {
	if !r.valid(n) {
		return fmt.Errorf("shards %.100s, want ascending ranges in 0..%d", fmt.Sprint([]int(r)), n-1)
	}
	if count := r.count(); count < 1 || count > most {
		return fmt.Errorf("%d shards, want 1..%d", count, most)
	}
	return nil
}
