package micro

import "unsafe"

func genericScaleRows(x *float32, xRow int, shift *int32, rows, width int) {
	for r, s := range unsafe.Slice(shift, rows) {
		if s != 0 {
			scaleRow(row(x, r*xRow, width), s)
		}
	}
}

func genericRatio(s *float32, sRow int, f *float32, fRow, rows, width int) {
	for r := range rows {
		d := row(s, r*sRow, width)
		for j, v := range row(f, r*fRow, width) {
			if d[j] != 0 {
				d[j] = v / d[j]
			}
		}
	}
}

func genericAddRows(dst *float32, dstRow int, src *float32, srcRow, rows, width int) {
	for r := range rows {
		addTo(row(dst, r*dstRow, width), row(src, r*srcRow, width))
	}
}

func genericColumnSums(sum *float32, f *float32, fRow, rows, width int) {
	s := unsafe.Slice(sum, width)
	for r := range rows {
		addTo(s, row(f, r*fRow, width))
	}
}

func genericScatterAdd[T uint16 | uint32](table *float32, tableRow int, codes *T, f *float32, fRow, rows, width int) {
	for r, c := range unsafe.Slice(codes, rows) {
		addTo(row(table, int(c)*tableRow, width), row(f, r*fRow, width))
	}
}

func genericScalePanel(x *float32, f *float32, rows, w int) {
	for r, s := range unsafe.Slice(f, rows) {
		p := row(x, r*w, w)
		for j := range p {
			p[j] *= s
		}
	}
}

// addTo does dst[j] += src[j].
func addTo(dst, src []float32) {
	dst = dst[:len(src)]
	for j, v := range src {
		dst[j] += v
	}
}
