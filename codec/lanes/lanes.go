package lanes

// Rows is the number of rows of a Lane.
const Rows = 8

// Lane holds a number of each of some rows.
type Lane [Rows]float64

// kernel does the loop of Up or of Down for four rows of weights and cols columns, one
// or more. stride counts weights.
type kernel func(out *Lane, w *float32, stride int, in *Lane, cols int)

// Up adds the products of a matrix and v to out, which has as many lanes as the matrix
// has rows:
//
//	for u: for c: out[u] += w[u·stride+c] · v[c]
func Up(out []Lane, w []float32, stride int, v []Lane) { up(native.up, out, w, stride, v) }

// Down adds the products of a transposed matrix and d to out, which has as many lanes as
// the matrix has columns:
//
//	for c: for u: out[c] += w[u·stride+c] · d[u]
func Down(out []Lane, w []float32, stride int, d []Lane) { down(native.down, out, w, stride, d) }

// blockRows is how many rows of weights a kernel takes.
const blockRows = 4

// end is where the weights of that many rows end.
func end(rows, stride, cols int) int { return (rows-1)*stride + cols }

func up(four kernel, out []Lane, w []float32, stride int, v []Lane) {
	if len(v) == 0 {
		return
	}
	for four != nil && len(out) >= blockRows {
		_ = w[:end(blockRows, stride, len(v))]
		four(&out[0], &w[0], stride, &v[0], len(v))
		if out = out[blockRows:]; len(out) == 0 {
			return
		}
		w = w[blockRows*stride:]
	}
	for u := range out {
		row := w[u*stride:][:len(v)]
		o := &out[u]
		s0, s1, s2, s3, s4, s5, s6, s7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
		for c := range v {
			x, y := float64(row[c]), &v[c]
			s0 += float64(x * y[0])
			s1 += float64(x * y[1])
			s2 += float64(x * y[2])
			s3 += float64(x * y[3])
			s4 += float64(x * y[4])
			s5 += float64(x * y[5])
			s6 += float64(x * y[6])
			s7 += float64(x * y[7])
		}
		*o = Lane{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

func down(four kernel, out []Lane, w []float32, stride int, d []Lane) {
	if len(out) == 0 {
		return
	}
	for four != nil && len(d) >= blockRows {
		_ = w[:end(blockRows, stride, len(out))]
		four(&out[0], &w[0], stride, &d[0], len(out))
		if d = d[blockRows:]; len(d) == 0 {
			return
		}
		w = w[blockRows*stride:]
	}
	for c := range out {
		o := &out[c]
		s0, s1, s2, s3, s4, s5, s6, s7 := o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]
		for u := range d {
			x, y := float64(w[u*stride+c]), &d[u]
			s0 += float64(x * y[0])
			s1 += float64(x * y[1])
			s2 += float64(x * y[2])
			s3 += float64(x * y[3])
			s4 += float64(x * y[4])
			s5 += float64(x * y[5])
			s6 += float64(x * y[6])
			s7 += float64(x * y[7])
		}
		*o = Lane{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

// kernels are the assembly of a processor, nil where there is none.
type kernels struct {
	up, down kernel
	dot      dotKernel
	times    timesKernel
	tops     topsKernel
	split    splitKernel
	fetch    fetchKernel
}
