package hand

import "math"

// Distance is the largest difference of two outputs, relative; of integers, the part that is not equal. It is infinite
// where they are of other types or lengths, or where a number of one is NaN in the other.
func Distance(a, b any) (most float64) {
	switch a := a.(type) {
	case []int64:
		b, ok := b.([]int64)
		if !ok || len(a) != len(b) {
			return math.Inf(1)
		}
		for k, x := range b {
			if x != a[k] {
				most += 1 / float64(len(a))
			}
		}
		return most
	case []float64:
		b, ok := b.([]float64)
		if !ok || len(a) != len(b) {
			return math.Inf(1)
		}
		for k, x := range b {
			if y := a[k]; x != y && (x == x || y == y) {
				d := math.Abs(x-y) / max(math.Abs(x), math.Abs(y))
				if d != d {
					d = math.Inf(1)
				}
				most = max(most, d)
			}
		}
		return most
	}
	return math.Inf(1)
}
