package hand

import (
	"math"
	"testing"
)

// TestDistance compares outputs, with numbers that are NaN or infinite, and those that are not there.
func TestDistance(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		a, b any
		want float64
	}{
		{[]int64{1, 2, 3, 4}, []int64{1, 2, 3, 4}, 0}, {[]int64{1, 2, 3, 4}, []int64{1, 0, 3, 0}, 0.5}, {[]int64{1}, []int64{1, 2}, inf}, {[]int64{1}, []float64{1}, inf},
		{[]float64{4, 0, -8}, []float64{4, 0, -8}, 0}, {[]float64{4, 2}, []float64{3, 2}, 0.25}, {[]float64{1, 2}, []float64{1}, inf},
		{[]float64{nan, inf, -inf}, []float64{nan, inf, -inf}, 0}, {[]float64{nan, 1}, []float64{1, 1}, inf}, {[]float64{1}, []float64{nan}, inf}, {[]float64{inf}, []float64{1}, inf},
		{nil, []float64{1}, inf}, {nil, nil, inf},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%v and %v are %v apart, want %v", c.a, c.b, got, c.want)
		}
	}
}
