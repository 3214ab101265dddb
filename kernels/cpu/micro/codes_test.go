package micro

import (
	"testing"
)

// TestWideCodes reads and adds to rows of a table on both sides of 65,536, where
// half of a wide code would name another row.
func TestWideCodes(t *testing.T) {
	codes := []uint32{65534, 65535, 65536, 65537, 0, 131071, 131072, 1, 65536, 131072}
	const last = 131072
	every(t, func(t *testing.T, s *Set) {
		for _, width := range []int{1, 8, 24, 32} {
			table := make([]float32, (last+1)*width)
			for _, c := range codes {
				for j := range width {
					table[int(c)*width+j] = float32(1 + int(c)%1024 + j*1024)
				}
			}
			out, shift := make([]float32, len(codes)*width), make([]int32, len(codes))
			for _, factors := range []int{1, 4} { // without and with an exponent for each element
				list := make([]Factor, factors)
				for i := range list {
					list[i] = Factor{Base: &table[0], Row: width, WideCodes: &codes[0]}
				}
				s.Product(&ProductArgs{Rows: len(codes), Width: width, Factors: list, Out: &out[0], OutRow: width, Shift: &shift[0], Fit: true, Scratch: &make([]float32, width)[0]})
				for r, c := range codes {
					for j := range width {
						x := float64(table[int(c)*width+j])
						want := x
						for range factors - 1 {
							want *= x
						}
						got := float64(out[r*width+j]) * float64(int64(1)<<shift[r])
						if !near(got, want, 5*0x1p-24*want) {
							t.Fatalf("width %d, %d factors: code %d reads %v, want %v", width, factors, c, got, want)
						}
					}
				}
			}
			flow := make([]float32, len(codes)*width)
			for i := range flow {
				flow[i] = float32(i + 1)
			}
			clear(table)
			s.ScatterAddWide(&table[0], width, &codes[0], &flow[0], width, len(codes), width)
			want := make(map[int]float32)
			for i, f := range flow {
				want[int(codes[i/width])*width+i%width] += f
			}
			filled := 0
			for i, got := range table {
				if got == 0 {
					continue
				}
				if filled++; got != want[i] {
					t.Fatalf("width %d: unit %d of code %d is %v, want %v", width, i%width, i/width, got, want[i])
				}
			}
			if filled != len(want) {
				t.Fatalf("width %d: %d elements have flow, want %d", width, filled, len(want))
			}
		}
	})
}
