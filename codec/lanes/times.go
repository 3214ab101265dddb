package lanes

import "math"

// Times writes the products of two vectors of equal length, which are not negative, to out,
// which may be one of them, and returns the largest product of each row:
//
//	for u: out[u] = x[u] · y[u]
func Times(out, x, y []Lane) Lane { return times(native.times, out, x, y) }

// Tops returns the largest number of each row of x, whose numbers are not negative; zeros of
// no lanes.
func Tops(x []Lane) Lane { return tops(native.tops, x) }

// timesKernel does the loop of Times for that many lanes, 1 or more, and topsKernel that of Tops.
type (
	timesKernel func(tops, out, x, y *Lane, lanes int)
	topsKernel  func(tops, x *Lane, lanes int)
)

func times(kernel timesKernel, out, x, y []Lane) (top Lane) {
	if kernel != nil && len(out) > 0 {
		_, _ = x[len(out)-1], y[len(out)-1]
		kernel(&top, &out[0], &x[0], &y[0], len(out))
		return top
	}
	x, y = x[:len(out)], y[:len(out)]
	for u := range out {
		o, a, b := &out[u], &x[u], &y[u]
		for r := range o {
			o[r] = a[r] * b[r]
		}
	}
	return tops(nil, out)
}

// tops compares numbers as their bits do, as they are not negative: that takes no branch.
func tops(kernel topsKernel, x []Lane) (top Lane) {
	if kernel != nil && len(x) > 0 {
		kernel(&top, &x[0], len(x))
		return top
	}
	var t0, t1, t2, t3, t4, t5, t6, t7 uint64
	for u := range x {
		a := &x[u]
		t0 = max(t0, math.Float64bits(a[0]))
		t1 = max(t1, math.Float64bits(a[1]))
		t2 = max(t2, math.Float64bits(a[2]))
		t3 = max(t3, math.Float64bits(a[3]))
		t4 = max(t4, math.Float64bits(a[4]))
		t5 = max(t5, math.Float64bits(a[5]))
		t6 = max(t6, math.Float64bits(a[6]))
		t7 = max(t7, math.Float64bits(a[7]))
	}
	for r, bits := range [Rows]uint64{t0, t1, t2, t3, t4, t5, t6, t7} {
		top[r] = math.Float64frombits(bits)
	}
	return top
}
