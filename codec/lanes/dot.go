package lanes

// Dot adds the products of two vectors of equal length in eight sums, x[8i+k]·y[8i+k] in
// sum k, and these in pairs.
//
// With no product negative, each rounded sum grows with every y: if no element of y is
// above that of z, Dot(x, y) is not above Dot(x, z).
func Dot(x, y []float64) float64 { return dot(native.dot, x, y) }

// dotKernel adds the products of two vectors of that many lanes, 1 or more, in eight sums.
type dotKernel func(sums, x, y *Lane, lanes int)

func dot(kernel dotKernel, x, y []float64) float64 {
	var sums Lane
	if kernel != nil && len(x) >= Rows {
		n := len(x) / Rows
		kernel(&sums, (*Lane)(x), (*Lane)(y[:n*Rows]), n)
		x, y = x[n*Rows:], y[n*Rows:]
	} else {
		var s0, s1, s2, s3, s4, s5, s6, s7 float64
		for len(x) >= Rows {
			a, b := (*Lane)(x), (*Lane)(y)
			s0 += float64(a[0] * b[0])
			s1 += float64(a[1] * b[1])
			s2 += float64(a[2] * b[2])
			s3 += float64(a[3] * b[3])
			s4 += float64(a[4] * b[4])
			s5 += float64(a[5] * b[5])
			s6 += float64(a[6] * b[6])
			s7 += float64(a[7] * b[7])
			x, y = x[Rows:], y[Rows:]
		}
		sums = Lane{s0, s1, s2, s3, s4, s5, s6, s7}
	}
	for i := range x {
		sums[i] += float64(x[i] * y[i])
	}
	return join(&sums)
}

// Total is Dot of x and ones.
func Total(x []float64) float64 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float64
	for ; len(x) >= Rows; x = x[Rows:] {
		a := (*Lane)(x)
		s0, s1, s2, s3 = s0+a[0], s1+a[1], s2+a[2], s3+a[3]
		s4, s5, s6, s7 = s4+a[4], s5+a[5], s6+a[6], s7+a[7]
	}
	sums := Lane{s0, s1, s2, s3, s4, s5, s6, s7}
	for i := range x {
		sums[i] += x[i]
	}
	return join(&sums)
}

func join(s *Lane) float64 {
	return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
}
