package micro

import "unsafe"

// generic is the definition of every kernel in plain Go: it runs anywhere and
// is what the other sets are tested against.
var generic = &Set{
	Name:           "generic",
	Panel:          genericPanel,
	MaxPanel:       genericMaxPanel,
	Turn:           genericTurn,
	Product:        genericProduct,
	AddExponents:   genericAddExponents,
	ScaleRows:      genericScaleRows,
	Ratio:          genericRatio,
	AddRows:        genericAddRows,
	ColumnSums:     genericColumnSums,
	ScatterAdd:     genericScatterAdd[uint16],
	ScatterAddWide: genericScatterAdd[uint32],
	UpdatePanel:    genericUpdatePanel,
	ScalePanel:     genericScalePanel,
	UpdateTable:    genericUpdateTable,
	Quantize:       genericQuantize,
	Quadratic:      genericQuadratic,
	AddScaled:      genericAddScaled,
	Single:         genericSingle,
}

// at returns the address of element i of the array that starts at p.
func at[T any](p *T, i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}

// row returns the n elements that start at element i of the array at p.
func row[T any](p *T, i, n int) []T { return unsafe.Slice(at(p, i), n) }

func genericPanel(a *PanelArgs) {
	for r := range a.Rows {
		var sum [32]float32
		c := sum[:a.W]
		x := at(a.A, r*a.ARow)
		j := 0
		for ; j+8 <= a.W; j += 8 {
			dot8((*[8]float32)(c[j:]), x, a.ACol, at(a.B, j), a.BRow, a.K)
		}
		for ; j < a.W; j++ {
			c[j] = dot(x, a.ACol, at(a.B, j), a.BRow, a.K)
		}
		if a.Add {
			for j, v := range row(a.C, r*a.CRow, a.W) {
				c[j] += v
			}
		}
		a.end(c, r)
	}
}

func genericMaxPanel(a *PanelArgs) {
	for r := range a.Rows {
		var most [32]float32
		c := most[:a.W]
		for k := range a.K {
			x := *at(a.A, r*a.ARow+k*a.ACol)
			for j, v := range row(a.B, k*a.BRow, a.W) {
				if y := x * v; y > c[j] {
					c[j] = y
				}
			}
		}
		if a.Add {
			for j, v := range row(a.C, r*a.CRow, a.W) {
				c[j] = max(c[j], v)
			}
		}
		a.end(c, r)
	}
}

// end does what follows the sums or maxima of row r.
func (a *PanelArgs) end(c []float32, r int) {
	if a.E != nil {
		for j, v := range row(a.E, r*a.ERow, a.W) {
			c[j] *= v
		}
	}
	if a.Min != nil {
		lowest := unsafe.Slice(a.Min, a.W)
		for j, v := range c {
			lowest[j] = min(lowest[j], v)
		}
	}
	copy(row(a.C, r*a.CRow, a.W), c)
}

// dot8 writes Σ_k x[k*xs] * b[k*bs+j] to c[j] for eight columns.
func dot8(c *[8]float32, x *float32, xs int, b *float32, bs, k int) {
	var c0, c1, c2, c3, c4, c5, c6, c7 float32
	for i := range k {
		v := *at(x, i*xs)
		w := (*[8]float32)(unsafe.Pointer(at(b, i*bs)))
		c0 += v * w[0]
		c1 += v * w[1]
		c2 += v * w[2]
		c3 += v * w[3]
		c4 += v * w[4]
		c5 += v * w[5]
		c6 += v * w[6]
		c7 += v * w[7]
	}
	*c = [8]float32{c0, c1, c2, c3, c4, c5, c6, c7}
}

// dot returns Σ_k x[k*xs] * b[k*bs].
func dot(x *float32, xs int, b *float32, bs, k int) float32 {
	var c float32
	for i := range k {
		c += *at(x, i*xs) * *at(b, i*bs)
	}
	return c
}

// Transpose turns panels over columns into panels over rows: src is
// [J/W][I][W], dst becomes [I/W][J][W]; dst[i/W][j][i%W] = src[j/W][i][j%W].
func (s *Set) Transpose(dst, src *float32, i, j, w int) {
	for jp := 0; jp < j; jp += w {
		for r := 0; r < i; r += w {
			s.Turn(at(dst, r*j+jp*w), w, at(src, jp*i+r*w), w, w, w)
		}
	}
}

func genericTurn(dst *float32, dstRow int, src *float32, srcRow, rows, cols int) {
	for r := range rows {
		d := at(dst, r)
		for c, v := range row(src, r*srcRow, cols) {
			*at(d, c*dstRow) = v
		}
	}
}
