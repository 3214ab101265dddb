package micro

import (
	"syscall"
	"testing"
	"unsafe"
)

// pageEnd returns n zero values that end where the address space may not be
// touched: whoever reads on faults.
func pageEnd[T any](t *testing.T, n int) *T {
	t.Helper()
	page := syscall.Getpagesize()
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	whole := (size + page) / page * page
	m, err := syscall.Mmap(-1, 0, whole+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	if err := syscall.Mprotect(m[whole:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return (*T)(unsafe.Pointer(&m[whole-size]))
}

// TestOverread runs the kernels on operands that end at a forbidden page; an
// access beyond them ends the test with a fault.
func TestOverread(t *testing.T) {
	every(t, func(t *testing.T, s *Set) {
		for _, width := range []int{1, 8, 15, 16, 24, 31, 64, 100} {
			for _, rows := range []int{1, 6, 7, 13} {
				n := rows * width
				f := func(n int) *float32 { return pageEnd[float32](t, n) }
				x, y, row, codes := f(n), f(n), f(width), pageEnd[uint16](t, rows)
				s.AddRows(x, width, y, width, rows, width)
				s.Ratio(x, width, y, width, rows, width)
				s.ScaleRows(x, width, pageEnd[int32](t, rows), rows, width)
				s.ColumnSums(row, y, width, rows, width)
				s.ScatterAdd(row, width, codes, y, width, rows, width)
				wide := pageEnd[uint32](t, rows)
				s.ScatterAddWide(row, width, wide, y, width, rows, width)
				s.AddExponents(pageEnd[int32](t, n), pageEnd[int32](t, n), n)
				s.Quantize(pageEnd[int64](t, n), x, y, n, 1)
				s.UpdateTable(&TableArgs{Rows: rows, Width: width, T: x, Count: y, Row: width, Keep: row, Gain: row, Prior: row, Sum: row})
				terms := Terms(width)
				of, logs := pageEnd[float64](t, len(terms)), pageEnd[float64](t, len(terms)/NumTerms)
				copy(unsafe.Slice(of, len(terms)), terms)
				s.Quadratic(&QuadraticArgs{Rows: rows, Width: width, G: pageEnd[float64](t, rows), Off: pageEnd[float64](t, rows), Terms: of, Logs: logs,
					Out: x, OutRow: width, Exp: pageEnd[int32](t, rows), Own: y})
				s.AddScaled(pageEnd[float64](t, width), y, width, pageEnd[float64](t, rows), rows, width)
				for _, extra := range []int{1, 3} {
					factors := []Factor{{Base: row, Row: width, Codes: codes}, {Base: x, Row: width}, {Base: y, Row: width}, {Base: row, Row: width, WideCodes: wide}}
					s.Product(&ProductArgs{Rows: rows, Width: width, Factors: factors[:1+extra], Out: f(n), OutRow: width, Shift: pageEnd[int32](t, rows), Fit: true, Scratch: f(width)})
				}
				if s.BF16 != nil {
					s.BF16.PackRows(pageEnd[uint32](t, rows*((width+1)/2)), (width+1)/2, x, width, rows, width)
					s.BF16.PackPairs(pageEnd[uint32](t, (rows+1)/2*width), width, x, width, rows, width)
				}
			}
		}
		for _, w := range panelWidths {
			for _, rows := range []int{1, 11, 25} {
				const k = 5
				f := func(n int) *float32 { return pageEnd[float32](t, n) }
				a := &PanelArgs{Rows: rows, K: k, W: w, A: f(rows * k), ARow: k, ACol: 1, B: f(k * w), BRow: w,
					C: f(rows * w), CRow: w, E: f(rows * w), ERow: w, Min: f(w), Add: true}
				s.Panel(a)
				if s.BF16 != nil {
					s.BF16.Panel(a)
				}
				x, r := f(rows*w), f(rows)
				s.ScalePanel(x, r, rows, w)
				s.UpdatePanel(&UpdateArgs{Rows: rows, W: w, T: x, G: x, Keep: r, Gain: r, Prior: r, Sum: r})
			}
		}
	})
}
