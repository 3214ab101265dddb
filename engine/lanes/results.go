package lanes

// Widen writes log-likelihoods as float64.
func Widen(dst []float64, values []float32) { native.toWide(dst[:len(values)], values) }

func (k *kernels) toWide(dst []float64, values []float32) {
	if k.widen != nil && len(values) >= results {
		k.widen(&dst[0], &values[0], len(values)/results)
		if last := len(values) - results; last%results > 0 {
			k.widen(&dst[last], &values[last], 1)
		}
		return
	}
	for i, v := range values {
		dst[i] = float64(v)
	}
}

// AnyLess reports whether a log-likelihood is less than a bound, or NaN.
func AnyLess(values []float64, least float64) bool { return native.anyLess(values, least) }

func (k *kernels) anyLess(values []float64, least float64) bool {
	if k.less != nil && len(values) >= results {
		return k.less(&values[0], least, len(values)/results)|k.less(&values[len(values)-results], least, 1) != 0
	}
	for _, v := range values {
		if !(v >= least) {
			return true
		}
	}
	return false
}
