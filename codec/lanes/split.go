package lanes

// Split gives each row its numbers times a factor, one after another:
//
//	for r: for u: out[r·stride+u] = x[u][r] · f[r]
func Split(out []float64, stride int, x []Lane, f *Lane) { split(native.split, out, stride, x, f) }

// splitKernel does the loop of Split for that many blocks of four units, 1 or more.
type splitKernel func(out *float64, stride int, x, f *Lane, blocks int)

func split(kernel splitKernel, out []float64, stride int, x []Lane, f *Lane) {
	if len(x) == 0 {
		return
	}
	_ = out[end(Rows, stride, len(x))-1]
	if blocks := len(x) / 4; kernel != nil && blocks > 0 {
		kernel(&out[0], stride, &x[0], f, blocks)
		if x = x[4*blocks:]; len(x) == 0 {
			return
		}
		out = out[4*blocks:]
	}
	for u := range x {
		for r, y := range x[u] {
			out[r*stride+u] = y * f[r]
		}
	}
}
