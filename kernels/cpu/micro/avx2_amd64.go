//go:build !noasm

package micro

// avx2 is the set for AVX2 and FMA. Widths that are not a multiple of 8 run the
// generic kernels.
var avx2 = &Set{
	Name:           "avx2",
	Panel:          avx2Panel,
	MaxPanel:       avx2MaxPanel,
	Turn:           avx2Turn,
	Product:        avx2Product,
	AddExponents:   avx2AddExponents,
	ScaleRows:      avx2ScaleRows,
	Ratio:          avx2Ratio,
	AddRows:        avx2AddRows,
	ColumnSums:     avx2ColumnSums,
	ScatterAdd:     avx2ScatterAdd,
	ScatterAddWide: avx2ScatterAddWide,
	UpdatePanel:    avx2UpdatePanel,
	ScalePanel:     avx2ScalePanel,
	UpdateTable:    avx2UpdateTable,
	Quantize:       avx2Quantize,
	Quadratic:      quadratic256,
	AddScaled:      avx2AddScaled,
	Single:         &SingleSet{Rows: 8, Forward: singleForward256, Backward: singleBackward256},
}

func avx2Panel(a *PanelArgs) {
	switch {
	case a.W < 8:
		genericPanel(a)
	case a.W == 8:
		panel8x256(a)
	default:
		a.streams()
		for j := 0; j < a.W; j += 16 {
			part := a.from(j)
			panel16x256(&part)
		}
	}
}

func avx2MaxPanel(a *PanelArgs) {
	switch {
	case a.W < 8:
		genericMaxPanel(a)
	case a.W == 8:
		maxPanel8x256(a)
	default:
		for j := 0; j < a.W; j += 16 {
			part := a.from(j)
			maxPanel16x256(&part)
		}
	}
}

// from returns the arguments of the columns from j on.
func (a *PanelArgs) from(j int) PanelArgs {
	part := *a
	part.B, part.C = at(a.B, j), at(a.C, j)
	part.E, part.Min = offset(a.E, j), offset(a.Min, j)
	return part
}

func avx2Turn(dst *float32, dstRow int, src *float32, srcRow, rows, cols int) {
	turn(dst, dstRow, src, srcRow, rows, cols, 8, transpose256)
}

func avx2Product(a *ProductArgs) {
	switch {
	case len(a.Factors) == 0 || a.Width == 0 || a.Width%8 != 0:
		genericProduct(a)
	case !a.isWide():
		product256(a)
	default:
		productWide256(a)
	}
}

func avx2AddExponents(dst, src *int32, n int) {
	whole := n &^ 7
	addExponents256(dst, src, whole)
	if whole < n {
		genericAddExponents(at(dst, whole), at(src, whole), n-whole)
	}
}

func avx2ScaleRows(x *float32, xRow int, shift *int32, rows, width int) {
	if width%8 != 0 {
		genericScaleRows(x, xRow, shift, rows, width)
		return
	}
	scaleRows256(x, xRow, shift, rows, width)
}

func avx2Ratio(s *float32, sRow int, f *float32, fRow, rows, width int) {
	if width%8 != 0 {
		genericRatio(s, sRow, f, fRow, rows, width)
		return
	}
	ratio256(s, sRow, f, fRow, rows, width)
}

func avx2AddRows(dst *float32, dstRow int, src *float32, srcRow, rows, width int) {
	if width%8 != 0 {
		genericAddRows(dst, dstRow, src, srcRow, rows, width)
		return
	}
	addRows256(dst, dstRow, src, srcRow, rows, width)
}

func avx2ColumnSums(sum *float32, f *float32, fRow, rows, width int) {
	if width%8 != 0 {
		genericColumnSums(sum, f, fRow, rows, width)
		return
	}
	columnSums256(sum, f, fRow, rows, width)
}

func avx2ScatterAdd(table *float32, tableRow int, codes *uint16, f *float32, fRow, rows, width int) {
	if width%8 != 0 {
		genericScatterAdd(table, tableRow, codes, f, fRow, rows, width)
		return
	}
	scatterAdd256(table, tableRow, codes, f, fRow, rows, width)
}

func avx2ScatterAddWide(table *float32, tableRow int, codes *uint32, f *float32, fRow, rows, width int) {
	if width%8 != 0 {
		genericScatterAdd(table, tableRow, codes, f, fRow, rows, width)
		return
	}
	scatterAddWide256(table, tableRow, codes, f, fRow, rows, width)
}

func avx2UpdatePanel(a *UpdateArgs) {
	if a.W < 8 {
		genericUpdatePanel(a)
		return
	}
	updatePanel256(a)
}

func avx2ScalePanel(x *float32, f *float32, rows, w int) {
	if w < 8 {
		genericScalePanel(x, f, rows, w)
		return
	}
	scalePanel256(x, f, rows, w)
}

func avx2UpdateTable(a *TableArgs) {
	if a.Width%8 != 0 {
		genericUpdateTable(a)
		return
	}
	updateTable256(a)
}

func avx2AddScaled(sum *float64, f *float32, fRow int, t *float64, rows, width int) {
	whole := width &^ 3
	addScaled256(sum, f, fRow, t, rows, whole)
	if whole < width && rows > 0 { // no rows: f holds no element to point at
		genericAddScaled(at(sum, whole), at(f, whole), fRow, t, rows, width-whole)
	}
}

func avx2Quantize(acc *int64, x, y *float32, n int, grid float32) {
	for n > 0 {
		done := quantize256(acc, x, y, n, 1/float64(grid))
		// Large quotients and the last elements, up to four at a time.
		few := min(n-done, 4)
		for i := done; i < done+few; i++ {
			genericQuantize(at(acc, i), at(x, i), offset(y, i), 1, grid)
		}
		if done += few; done < n {
			acc, x, y = at(acc, done), at(x, done), offset(y, done)
		}
		n -= done
	}
}

// offset returns the address of element i of p, nil where p is.
func offset(p *float32, i int) *float32 {
	if p == nil {
		return nil
	}
	return at(p, i)
}
