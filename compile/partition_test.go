package compile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// padded is the total of counts padded to the smallest capacity that holds
// each, or the largest int where none does.
func padded(counts, caps []int) int {
	total := 0
	for _, c := range counts {
		k := slices.IndexFunc(caps, func(x int) bool { return x >= c })
		if k < 0 {
			return math.MaxInt
		}
		total += caps[k]
	}
	return total
}

func total(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// best returns the smallest padded total of n groups, by trying every choice of
// capacities among the counts.
func best(counts []int, n int) int {
	value := slices.Compact(slices.Sorted(slices.Values(counts)))
	least := math.MaxInt
	for choice := range 1 << len(value) {
		var caps []int
		for i, v := range value {
			if choice>>i&1 == 1 {
				caps = append(caps, v)
			}
		}
		if len(caps) <= n {
			least = min(least, padded(counts, caps))
		}
	}
	return least
}

// TestGroupEqualsBruteForce compares number of groups and padding with all
// groupings there are.
func TestGroupEqualsBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	used := make(map[int]int) // how often each number of groups was the answer
	for trial := range 400 {
		counts := make([]int, 1+rng.IntN(40))
		span := 1 + rng.IntN(60)
		var some []int
		for range 1 + rng.IntN(9) {
			some = append(some, rng.IntN(span+1))
		}
		for i := range counts {
			counts[i] = some[rng.IntN(len(some))]
		}
		for _, tolerance := range []float64{0, 0.1, 0.5} {
			for most := 1; most <= 8; most++ {
				want, n := 0, 0
				for n = 1; n <= most; n++ {
					if want = best(counts, n); float64(want) <= float64(total(counts))*(1+tolerance) || n == most {
						break
					}
				}
				caps := group(counts, most, tolerance)
				used[len(caps)]++
				if got := padded(counts, caps); got != want || len(caps) != min(n, len(slices.Compact(slices.Sorted(slices.Values(counts))))) {
					t.Fatalf("trial %d: counts %v, at most %d groups, tolerance %v: %v pads to %d; want %d groups and %d",
						trial, counts, most, tolerance, caps, got, n, want)
				}
				if !slices.IsSorted(caps) || len(slices.Compact(slices.Clone(caps))) != len(caps) {
					t.Fatalf("trial %d: capacities %v do not ascend", trial, caps)
				}
			}
		}
	}
	for n := 1; n <= 8; n++ {
		if used[n] == 0 {
			t.Errorf("no case had %d groups; the trials test too little", n)
		}
	}
}

func repeat(pairs ...int) (counts []int) {
	for i := 0; i < len(pairs); i += 2 {
		counts = append(counts, slices.Repeat(pairs[i:i+1], pairs[i+1])...)
	}
	return counts
}

// TestGroupRegressions has one case for each defect of Algorithm 2 as printed
// in the paper, and the borders.
func TestGroupRegressions(t *testing.T) {
	for _, tc := range []struct {
		name      string
		counts    []int
		most      int
		tolerance float64
		want      []int
	}{
		{"nothing to group", nil, 8, 0.1, nil},
		{"one group is tried", []int{7, 7, 7}, 8, 0, []int{7}},
		{"one group fits the tolerance", []int{10, 10, 10, 9}, 8, 0.1, []int{10}},
		{"the first number that fits is taken", repeat(1, 100, 2, 100, 50, 100, 51, 100), 8, 0.1, []int{2, 51}},
		{"no tolerance takes as many as there are counts", repeat(1, 100, 2, 100, 50, 100, 51, 100), 8, 0, []int{1, 2, 50, 51}},
		{"capacities are counts, not their indices", []int{400, 10, 20}, 3, 0, []int{10, 20, 400}},
		{"the backtrace follows the column of the group", repeat(1, 1000, 8, 10, 9, 10, 10, 10, 90, 10, 100, 1), 3, 0, []int{1, 10, 100}},
		{"the best of the most groups where none fits", []int{1, 10, 100, 1000}, 2, 0.1, []int{100, 1000}},
		{"the padding of the largest counts most", []int{100, 1, 1, 1, 2, 99}, 2, 0, []int{2, 100}},
		{"columns that nobody reads", []int{0, 0, 3}, 8, 0, []int{0, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := group(tc.counts, tc.most, tc.tolerance); !slices.Equal(got, tc.want) {
				t.Errorf("group(%v, %d, %v) = %v, want %v", tc.counts, tc.most, tc.tolerance, got, tc.want)
			}
		})
	}
}

// TestGroupKeepsItsInput sees that counts are not sorted in place: they belong
// to blocks in order.
func TestGroupKeepsItsInput(t *testing.T) {
	counts := []int{5, 1, 3}
	group(counts, 2, 0)
	if want := []int{5, 1, 3}; !slices.Equal(counts, want) {
		t.Errorf("group changed its input to %v", counts)
	}
}

// TestGroupManyCounts groups more distinct counts than the dynamic program takes.
func TestGroupManyCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{511, 512, 513, 514, 1000, 5000} {
		t.Run(fmt.Sprintf("distinct=%d", n), func(t *testing.T) {
			counts := rng.Perm(2 * n)[:n]
			for range n {
				counts = append(counts, counts[rng.IntN(n)])
			}
			sorted := slices.Sorted(slices.Values(counts))
			rounded := slices.Clone(sorted)
			roundUp(rounded)
			// Rounding never adds more than a part of the range, less one.
			part := (sorted[len(sorted)-1]-sorted[0])/maxDistinct + 1
			for i, c := range rounded {
				if _, real := slices.BinarySearch(sorted, c); !real || c < sorted[i] || c >= sorted[i]+part {
					t.Fatalf("%d was rounded up to %d; want a count below %d", sorted[i], c, sorted[i]+part)
				}
			}
			if d := len(slices.Compact(slices.Clone(rounded))); d > maxDistinct || d < maxDistinct/3 {
				t.Errorf("%d distinct counts remain, want at most %d and not many fewer", d, maxDistinct)
			}
			for _, most := range []int{1, 3, 8} {
				caps := group(counts, most, 0)
				// The best capacities, rounded up, are among those that were tried.
				if got, want := padded(counts, caps), fewest(sorted, most)+len(counts)*(part-1); len(caps) > most || got > want {
					t.Errorf("%d groups pad to %d, want at most %d", len(caps), got, want)
				}
			}
		})
	}
}

// fewest is the smallest padded total of n groups: a dynamic program over rows,
// with divide and conquer over the place of the last cut, which moves one way.
func fewest(sorted []int, n int) int {
	m := len(sorted)
	cost := make([]int, m+1)
	for i := 1; i <= m; i++ {
		cost[i] = i * sorted[i-1]
	}
	for range n - 1 {
		next := slices.Clone(cost)
		var solve func(lo, hi, from, to int)
		solve = func(lo, hi, from, to int) {
			if lo > hi {
				return
			}
			i, cut := (lo+hi)/2, from
			next[i] = math.MaxInt
			for j := from; j <= min(to, i); j++ { // j = i is an empty group
				if c := cost[j] + (i-j)*sorted[i-1]; c < next[i] {
					next[i], cut = c, j
				}
			}
			solve(lo, i-1, from, cut)
			solve(i+1, hi, cut, to)
		}
		solve(1, m, 0, m)
		cost = next
	}
	return cost[m]
}
