//go:build !noasm

package micro

// avx512 is the set for AVX-512 (F, BW, DQ, VL) and BMI2. Widths that are no
// multiple of 16 run under masks.
var avx512 = &Set{
	Name:           "avx512",
	Panel:          avx512Panel,
	MaxPanel:       avx512MaxPanel,
	Turn:           avx512Turn,
	Product:        avx512Product,
	AddExponents:   addExponents512,
	ScaleRows:      scaleRows512,
	Ratio:          ratio512,
	AddRows:        addRows512,
	ColumnSums:     columnSums512,
	ScatterAdd:     scatterAdd512,
	ScatterAddWide: scatterAddWide512,
	UpdatePanel:    updatePanel512,
	ScalePanel:     scalePanel512,
	UpdateTable:    updateTable512,
	Quantize:       avx512Quantize,
	Quadratic:      quadratic512,
	AddScaled:      addScaled512,
	Single:         &SingleSet{Rows: 32, Forward: singleForward512, Backward: singleBackward512},
	Chain:          chain512,
}

// avx512bf16 is avx512 with the kernels of AVX512_BF16.
var avx512bf16 = func() *Set {
	s := *avx512
	s.Name = "avx512bf16"
	s.BF16 = &BF16Set{Panel: avx512BF16Panel, PackRows: packRows512, PackPairs: packPairs512}
	return &s
}()

// avx512fp16 is avx512 with the kernels of AVX512_FP16.
var avx512fp16 = func() *Set {
	s := *avx512
	s.Name = "avx512fp16"
	s.Half = &HalfSet{Panel: halfPanel512, Tops: halfTops512, Pack: halfPack512, Peaks: halfPeaks512, Sums: halfSums512, Scale: halfScale512}
	return &s
}()

func avx512Panel(a *PanelArgs) {
	if a.W == 32 {
		a.streams()
		panel32x512(a)
	} else {
		panel16x512(a)
	}
}

func avx512MaxPanel(a *PanelArgs) {
	if a.W == 32 {
		maxPanel32x512(a)
	} else {
		maxPanel16x512(a)
	}
}

func avx512BF16Panel(a *PanelArgs) {
	if a.W == 32 {
		bf16Panel32x512(a)
	} else {
		bf16Panel16x512(a)
	}
}

func avx512Turn(dst *float32, dstRow int, src *float32, srcRow, rows, cols int) {
	turn(dst, dstRow, src, srcRow, rows, cols, 16, transpose512)
}

func avx512Product(a *ProductArgs) {
	switch {
	case len(a.Factors) == 0:
		genericProduct(a)
	case !a.isWide():
		product512(a)
	default:
		productWide512(a)
	}
}

func avx512Quantize(acc *int64, x, y *float32, n int, grid float32) {
	quantize512(acc, x, y, n, 1/float64(grid))
}
