package cluster

import (
	"slices"
	"testing"
)

func TestRuns(t *testing.T) {
	for _, tc := range []struct {
		list []int
		want runs
	}{
		{nil, nil}, {[]int{3}, runs{3, 4}}, {[]int{5, 3, 4}, runs{3, 6}}, {[]int{9, 0, 1}, runs{0, 2, 9, 10}},
	} {
		got := runsOf(tc.list)
		if !slices.Equal(got, tc.want) || got.count() != len(tc.list) || !got.valid(10) {
			t.Errorf("runsOf(%v) = %v, want %v", tc.list, got, tc.want)
		}
		slices.Sort(tc.list)
		if !slices.Equal(got.all(), tc.list) {
			t.Errorf("%v lists %v", got, got.all())
		}
	}
	for _, bad := range []runs{{1}, {2, 2}, {3, 1}, {0, 2, 2, 3}, {0, 2, 1, 3}, {-1, 2}, {0, 11}} {
		if bad.valid(10) {
			t.Errorf("%v passes", bad)
		}
	}
}
