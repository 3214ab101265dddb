package micro

import (
	"fmt"
	"testing"
	"unsafe"
)

// BenchmarkPanel runs the three products of a sum layer with n units on a tile
// of 64 samples: rows against panels, the same with the element end, and the
// contraction over samples.
func BenchmarkPanel(b *testing.B) {
	for _, s := range All() {
		for _, w := range []int{16, 32} {
			for _, n := range []int{32, 64, 256} {
				const rows = 64
				rng := seeded()
				m := func(rows, cols int) *float32 { return aligned(newMatrix(rows, cols, 0, uniform(rng))) }
				x, e, theta, out := m(rows, n), m(rows, n), m(n*n/w, w), m(rows, n)
				a := &PanelArgs{}
				run := func(what string, call func(panel int)) {
					b.Run(fmt.Sprintf("set=%s/do=%s/w=%d/n=%d", s.Name, what, w, n), func(b *testing.B) {
						for b.Loop() {
							for p := range n / w {
								call(p)
							}
						}
						b.ReportMetric(2*rows*float64(n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					})
				}
				run("rows", func(p int) {
					*a = PanelArgs{Rows: rows, K: n, W: w, A: x, ARow: n, ACol: 1, B: at(theta, p*n*w), BRow: w, C: at(out, p*w), CRow: n}
					s.Panel(a)
				})
				run("flows", func(p int) {
					*a = PanelArgs{Rows: rows, K: n, W: w, A: x, ARow: n, ACol: 1, B: at(theta, p*n*w), BRow: w, C: at(out, p*w), CRow: n, E: at(e, p*w), ERow: n}
					s.Panel(a)
				})
				run("samples", func(p int) {
					*a = PanelArgs{Rows: n, K: rows, W: w, A: x, ARow: 1, ACol: n, B: at(e, p*w), BRow: n, C: at(theta, p*n*w), CRow: w, Add: true}
					s.Panel(a)
				})
			}
		}
	}
}

// aligned returns the first address at which a cache line starts. That moves the
// matrix into the leading fence, so fences become copies of the first element.
func aligned(m *matrix) *float32 {
	for i, v := range m.data {
		if v != v {
			m.data[i] = *m.at(0, 0)
		}
	}
	i := 0
	for uintptr(unsafe.Pointer(&m.data[i]))%64 != 0 {
		i++
	}
	return &m.data[i]
}

// BenchmarkBF16Panel is "rows" of BenchmarkPanel on pairs.
func BenchmarkBF16Panel(b *testing.B) {
	for _, s := range All() {
		if s.BF16 == nil {
			continue
		}
		for _, n := range []int{64, 256} {
			b.Run(fmt.Sprintf("set=%s/n=%d", s.Name, n), func(b *testing.B) {
				const rows, w = 64, 32
				rng := seeded()
				m := func(rows, cols int) *float32 { return aligned(newMatrix(rows, cols, 0, uniform(rng))) }
				x, theta, out := m(rows, n/2), m(n*n/2/w, w), m(rows, n)
				a := &PanelArgs{}
				for b.Loop() {
					for p := range n / w {
						*a = PanelArgs{Rows: rows, K: n / 2, W: w, A: x, ARow: n / 2, ACol: 1, B: at(theta, p*n/2*w), BRow: w, C: at(out, p*w), CRow: n}
						s.BF16.Panel(a)
					}
				}
				b.ReportMetric(2*rows*float64(n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

// BenchmarkHalfPanel is "flows" and "samples" of BenchmarkPanel on halves, with
// what packs a tile of them.
func BenchmarkHalfPanel(b *testing.B) {
	for _, s := range All() {
		if s.Half == nil {
			continue
		}
		for _, n := range []int{64, 256} {
			const rows, w = 128, 32
			rng := seeded()
			m := func(rows, cols int) *float32 { return aligned(newMatrix(rows, cols, 0, uniform(rng))) }
			h := func(rows, cols int) *uint16 { return (*uint16)(unsafe.Pointer(m(rows, cols/2))) }
			f, e, out, grad, scale := m(rows, n), m(rows, n), m(rows, n), m(n*n/w, w), m(1, max(n, rows))
			x, eh, theta, sums := h(rows, n), h(rows, n), h(n*n/w, w), h(1, HalfScratch)
			shift := make([]int32, rows)
			a := &HalfArgs{}
			run := func(what string, flops float64, call func()) {
				b.Run(fmt.Sprintf("set=%s/do=%s/n=%d", s.Name, what, n), func(b *testing.B) {
					for b.Loop() {
						call()
					}
					b.ReportMetric(flops*rows*float64(n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
			run("pack", 0, func() {
				s.Half.Tops(&shift[0], f, n, rows, n)
				s.Half.Pack(x, n, f, n, &shift[0], nil, rows, n)
				s.Half.Peaks(scale, f, n, &shift[0], rows, n)
				s.Half.Pack(x, n, f, n, &shift[0], f, rows, n)
				s.Half.Peaks(scale, e, n, &shift[0], rows, n)
				s.Half.Pack(eh, n, e, n, &shift[0], e, rows, n)
			})
			run("flows", 2, func() {
				for p := range n / w {
					*a = HalfArgs{Rows: rows, K: n, A: x, ARow: n, ACol: 1, B: at(theta, p*n*w), BRow: w,
						C: at(out, p*w), CRow: n, E: at(e, p*w), ERow: n, Scale: scale, Sums: sums}
					s.Half.Panel(a)
				}
			})
			run("samples", 2, func() {
				for p := range n / w {
					*a = HalfArgs{Rows: n, K: rows, A: x, ARow: 1, ACol: n, B: at(eh, p*w), BRow: n,
						C: at(grad, p*n*w), CRow: w, Scale: scale, Sums: sums, Add: true}
					s.Half.Panel(a)
				}
			})
		}
	}
}

// BenchmarkProduct multiplies an emission row, found by its code in a table of
// 256, by rows of n-1 children, for 64 samples of 64 units; each node has its
// own table and children, so that they come from far memory.
func BenchmarkProduct(b *testing.B) {
	for _, s := range All() {
		for _, width := range []int{64, 256} {
			for _, factors := range []int{1, 2, 3, 5} {
				b.Run(fmt.Sprintf("set=%s/width=%d/factors=%d", s.Name, width, factors), func(b *testing.B) {
					const rows, nodes = 64, 100
					rng := seeded()
					out, shift := newMatrix(rows, width, 0, uniform(rng)), make([]int32, rows)
					calls := make([]*ProductArgs, nodes)
					for i := range calls {
						a := &ProductArgs{Rows: rows, Width: width, Out: aligned(out), OutRow: width, Shift: &shift[0], Fit: true, Scratch: aligned(newMatrix(1, width, 0, uniform(rng)))}
						codes := make([]uint16, rows)
						for r := range codes {
							codes[r] = uint16(rng.IntN(256))
						}
						table := newMatrix(256, width, 0, uniform(rng))
						a.Factors = append(a.Factors, Factor{Base: aligned(table), Row: width, Codes: &codes[0]})
						for range factors - 1 {
							a.Factors = append(a.Factors, Factor{Base: aligned(newMatrix(rows, width, 0, uniform(rng))), Row: width})
						}
						calls[i] = a
					}
					for i := 0; b.Loop(); i++ {
						s.Product(calls[i%nodes])
					}
					b.SetBytes(int64(4 * rows * width * (factors + 1)))
				})
			}
		}
	}
}

// BenchmarkRows runs the passes of an update and the row kernels on 64 rows of
// 64 floats.
func BenchmarkRows(b *testing.B) {
	for _, s := range All() {
		const rows, width = 64, 64
		rng := seeded()
		m := func(v float32) *float32 {
			return aligned(newMatrix(256, width, 0, func() float32 { return v }))
		}
		// Ones and zeros: no call moves them far, however often it is repeated.
		x, y, zeros, table, row := m(1), m(1), m(0), m(0), m(1)
		codes, acc := make([]uint16, rows), make([]int64, rows*width)
		for r := range codes {
			codes[r] = uint16(rng.IntN(256))
		}
		update := &UpdateArgs{Rows: 2 * rows, W: 32, T: x, G: y, Keep: row, Gain: zeros, Prior: zeros, Sum: table, Grid: 0x1p-17}
		leaf := &TableArgs{Rows: rows, Width: width, T: x, Count: y, Row: width, Keep: row, Gain: zeros, Prior: zeros, Sum: table, Grid: 0x1p-17}
		for _, k := range []struct {
			name string
			call func()
		}{
			{"Ratio", func() { s.Ratio(x, width, y, width, rows, width) }},
			{"AddRows", func() { s.AddRows(x, width, zeros, width, rows, width) }},
			{"ColumnSums", func() { s.ColumnSums(table, zeros, width, rows, width) }},
			{"ScatterAdd", func() { s.ScatterAdd(table, width, &codes[0], zeros, width, rows, width) }},
			{"ScalePanel", func() { s.ScalePanel(x, row, 2*rows, 32) }},
			{"Transpose", func() { s.Transpose(x, y, rows, width, 32) }},
			{"UpdatePanel", func() { s.UpdatePanel(update) }},
			{"UpdateTable", func() { s.UpdateTable(leaf) }},
			{"Quantize", func() { s.Quantize(&acc[0], x, y, rows*width, 0x1p-40) }},
		} {
			b.Run(fmt.Sprintf("set=%s/do=%s", s.Name, k.name), func(b *testing.B) {
				for b.Loop() {
					k.call()
				}
				b.SetBytes(4 * rows * width)
			})
		}
	}
}
