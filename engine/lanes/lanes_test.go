package lanes

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// sets are the loops that this machine has.
func sets(t testing.TB) []*kernels {
	if native.codes == nil {
		t.Log("no assembly for this machine: only the loops in Go are checked")
		return []*kernels{{}}
	}
	all := []*kernels{{}, &native}
	if native.numbersWide != nil {
		half := native
		half.numbersWide = nil
		return append(all, &half)
	}
	t.Log("no AVX-512: its loop is not checked")
	return all
}

// fenced calls use with n bytes that lie between others, and wants these unchanged.
func fenced(t *testing.T, n int, use func(dst []byte)) {
	t.Helper()
	const fence, mark = 40, 0xa5
	all := bytes.Repeat([]byte{mark}, n+2*fence)
	use(all[fence:][:n:n])
	if outside := append(all[:fence:fence], all[fence+n:]...); !bytes.Equal(outside, bytes.Repeat([]byte{mark}, 2*fence)) {
		t.Fatalf("bytes outside of the %d are written", n)
	}
}

// values are cells on both sides of every limit.
var values = []float32{
	0, float32(math.Copysign(0, -1)), 1, 2, 7, 253, 254, 255, 256, 65535, 1 << 24, math.MaxInt32, 1 << 31, 1 << 32, math.MaxFloat32,
	0.5, 0.99999994, 252.99998, 253.5, 253.99998, 254.5, -0.5, -1, -2, -255, -256, -1 << 31, -1 << 32, -math.MaxFloat32, 1e9, -1e9,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	math.Float32frombits(0xffc00001), math.Float32frombits(0x7f800001), math.Float32frombits(0xff800001),
}

// TestValues puts every value at every place of columns of many lengths, among cells that are fine.
func TestValues(t *testing.T) {
	for _, k := range sets(t) {
		for _, rows := range []int{0, 1, 2, 31, 32, 33, 63, 64, 65, 100} {
			for at := range max(1, rows) {
				for _, x := range values {
					column := make([]float32, rows)
					for i := range column {
						if column[i] = float32(i % 3); i%5 == 4 {
							column[i] = float32(math.NaN())
						}
					}
					if rows > 0 {
						column[at] = x
					}
					for _, n := range []int{3, 254, 255} {
						isCode := rows == 0 || x != x || x >= 0 && float64(x) < float64(n) && float64(x) == math.Floor(float64(x))
						fenced(t, rows, func(dst []byte) {
							if got := k.toCodes(dst, column, n); got != isCode {
								t.Fatalf("%v at %d of %d as one of %d codes: %v", x, at, rows, n, got)
							}
							for i, v := range column {
								if want := byteOf(v); isCode && dst[i] != want {
									t.Fatalf("%v at %d of %d is byte %d, want %d", v, i, rows, dst[i], want)
								}
							}
						})
						if got := k.areWhole(column, n); got != isCode {
							t.Fatalf("%v at %d of %d is one of %d codes: %v", x, at, rows, n, got)
						}
					}
					fenced(t, rows, func(dst []byte) {
						if got, finite := k.toNumbers(dst, column), rows == 0 || !math.IsInf(float64(x), 0); got != finite {
							t.Fatalf("%v at %d of %d is finite: %v", x, at, rows, got)
						}
						for i, v := range column {
							want := byteOf(v)
							if v < 0 || v >= 254 {
								want = Outside
							}
							if dst[i] != want {
								t.Fatalf("number %v at %d of %d is byte %d, want %d", v, i, rows, dst[i], want)
							}
						}
					})
				}
			}
		}
		for _, n := range []int{1, 1 << 15, 1 << 16, 1 << 24} {
			for x, fine := range map[float32]bool{float32(n - 1): true, float32(n): false, -1: false} {
				column := make([]float32, 40)
				column[33] = x
				if got := k.areWhole(column, n); got != fine {
					t.Errorf("%v is one of %d codes: %v", x, n, got)
				}
			}
		}
	}
}

// byteOf is the byte of a number that has one.
func byteOf(x float32) byte {
	if x != x {
		return Missing
	}
	return byte(math.Floor(float64(x)))
}

// TestNarrow wants every code at every place.
func TestNarrow(t *testing.T) {
	for _, k := range sets(t) {
		for _, rows := range []int{0, 1, 31, 32, 33, 64, 65} {
			for at := range rows {
				for _, code := range []uint16{0, 1, 127, 128, 253, 254, 255, 256, 32767, 32768, 65534, 65535} {
					column, above := make([]uint16, rows), 0
					for i := range column {
						if column[i] = uint16(i % 2); i == at {
							column[i] = code
						} else if i%7 == 3 {
							column[i] = math.MaxUint16
						}
						if column[i] != math.MaxUint16 {
							above = max(above, int(column[i])+1)
						}
					}
					fenced(t, rows, func(dst []byte) {
						if got := k.toNarrow(dst, column); got != above {
							t.Fatalf("code %d at %d of %d: all are below %d, want %d", code, at, rows, got, above)
						}
						for i, c := range column {
							want := byte(min(c, Outside))
							if c == math.MaxUint16 {
								want = Missing
							}
							if dst[i] != want {
								t.Fatalf("code %d at %d of %d is byte %d, want %d", c, i, rows, dst[i], want)
							}
						}
					})
				}
			}
		}
		if k.toNarrow(make([]byte, 70), bytes16(70, math.MaxUint16)) != 0 {
			t.Error("missing cells have a code")
		}
	}
}

func bytes16(n int, code uint16) []uint16 {
	all := make([]uint16, n)
	for i := range all {
		all[i] = code
	}
	return all
}

// TestSame compares the loops on random bits.
func TestSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n := rng.IntN(200)
		column, codes := make([]float32, n), make([]uint16, n)
		for i := range column {
			column[i], codes[i] = math.Float32frombits(rng.Uint32()), uint16(rng.Uint32()>>rng.IntN(16))
			if rng.IntN(4) > 0 {
				column[i] = float32(int32(rng.Uint32())>>rng.IntN(32)) / float32(1+rng.IntN(2))
			}
		}
		var want string
		for i, k := range sets(t) {
			numbers, narrow := make([]byte, n), make([]byte, n)
			got := fmt.Sprint(k.toNumbers(numbers, column), k.toNarrow(narrow, codes), k.areWhole(column, 255), numbers, narrow)
			if i == 0 {
				want = got
			}
			if got != want {
				t.Fatalf("%v and %v:\n%s, want\n%s", column, codes, got, want)
			}
		}
	}
}

// TestResults wants every value at every place of columns of many lengths widened, and compared with bounds.
func TestResults(t *testing.T) {
	for _, k := range sets(t) {
		for _, rows := range []int{0, 1, 15, 16, 17, 31, 32, 33, 50} {
			for at := range max(1, rows) {
				for _, x := range values {
					column := make([]float32, rows)
					for i := range column {
						column[i] = float32(i)
					}
					if rows > 0 {
						column[at] = x
					}
					all := make([]float64, rows+2)
					all[0], all[rows+1] = 42, 42
					wide := all[1:][:rows:rows]
					k.toWide(wide, column)
					for i, v := range column {
						if math.Float64bits(wide[i]) != math.Float64bits(float64(v)) && v == v || v != v && wide[i] == wide[i] {
							t.Fatalf("%v at %d of %d is %v", v, i, rows, wide[i])
						}
					}
					if all[0] != 42 || all[rows+1] != 42 {
						t.Fatal("numbers outside are written")
					}
					for _, least := range []float64{math.Inf(-1), -1e9, math.Nextafter(0, -1), 0, math.SmallestNonzeroFloat64} {
						want := false
						for _, v := range wide {
							want = want || !(v >= least)
						}
						if got := k.anyLess(wide, least); got != want {
							t.Fatalf("one of %d with %v at %d is less than %v: %v", rows, x, at, least, got)
						}
					}
				}
			}
		}
	}
}

// BenchmarkCells times a column of 2048 rows.
func BenchmarkCells(b *testing.B) {
	column, codes, dst := make([]float32, 2048), make([]uint16, 2048), make([]byte, 2048)
	for i := range column {
		column[i], codes[i] = float32(i%200), uint16(i%200)
	}
	for name, f := range map[string]func(){
		"Codes": func() { Codes(dst, column, 200) }, "Whole": func() { Whole(column, 200) },
		"Numbers": func() { Numbers(dst, column) }, "Narrow": func() { Narrow(dst, codes) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(column)), "ns/cell")
		})
	}
}
