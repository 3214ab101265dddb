package emulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// toHalf rounds to f16.
func toHalf(x float64) uint32 {
	var d, b narrow
	a := narrow{math.Float32bits(float32(x))}
	lanes.PackHalves(&d, &b, &a, &b)
	return d[0]
}

// TestLoadMatrix compares with the language's figures: which lane has which element.
func TestLoadMatrix(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, trans := range []bool{false, true} {
			b := newBench(t, Options{})
			out := b.room(4 * 32)
			mode, regs := "", "%r10"
			if trans {
				mode = ".trans"
			}
			for i := 1; i < n; i++ {
				regs += fmt.Sprintf(", %%r%d", 10+i)
			}
			// Element e of row r of matrix m is 64·m + 8·r + e; rows lie 48 bytes apart.
			b.must(fmt.Sprintf(`
	mov.u32 %%r8, room;
	mad.lo.u32 %%r9, %%r0, 48, %%r8;
	mov.b32 %%r2, 0;
FILL:
	mad.lo.u32 %%r3, %%r0, 8, %%r2;
	mov.b32 {%%h1, %%h2}, %%r3;
	mad.lo.u32 %%r4, %%r2, 2, %%r9;
	st.shared.b16 [%%r4], %%h1;
	add.u32 %%r2, %%r2, 1;
	setp.lt.u32 %%p0, %%r2, 8;
	@%%p0 bra FILL;
	bar.sync 0;
	mov.b32 %%r11, 0;
	mov.b32 %%r12, 0;
	mov.b32 %%r13, 0;
	ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 {%s}, [%%r9];
	mad.wide.u32 %%d6, %%r0, 16, %%d0;
	st.global.v4.u32 [%%d6], {%%r10, %%r11, %%r12, %%r13};
`, n, mode, regs), 1, 32, uint64(out), 0, 0)
			got := b.read(out, 128)
			for lane := range 32 {
				for m := range n {
					for h := range 2 {
						row, column := lane/4, 2*(lane%4)+h
						if trans {
							row, column = column, row
						}
						if v := got[4*lane+m] >> (16 * h) & 0xffff; v != uint32(64*m+8*row+column) {
							t.Fatalf("x%d%s: lane %d, matrix %d, half %d is %d, want row %d column %d", n, mode, lane, m, h, v, row, column)
						}
					}
				}
			}
		}
	}
}

// fragments are the layouts of the language: of a lane and the number of an element
// in its registers, which row and column it is.
type fragments struct {
	types   string
	k       int
	perWord int
	a       func(lane, i int) (row, k int)
	b       func(lane, i int) (k, column int)
	aw, bw  int // words of a lane
	value   func(bits uint32) float64
	encode  func(x float64) uint32
}

func c(lane, i int) (row, column int) { return lane/4 + 8*(i/2), lane%4*2 + i&1 }

// layouts of mma, written down from figures of the language's description.
var layouts = map[string]fragments{
	"f16": {
		types: "m16n8k16.row.col.f32.f16.f16.f32", k: 16, perWord: 2, aw: 4, bw: 2,
		a: func(lane, i int) (int, int) {
			row := lane / 4
			if i == 2 || i == 3 || i == 6 || i == 7 {
				row += 8
			}
			k := lane%4*2 + i&1
			if i >= 4 {
				k += 8
			}
			return row, k
		},
		b: func(lane, i int) (int, int) {
			k := lane%4*2 + i&1
			if i >= 2 {
				k += 8
			}
			return k, lane / 4
		},
		value:  func(x uint32) float64 { return lanes.Half(uint16(x)) },
		encode: func(x float64) uint32 { return toHalf(x) },
	},
	"f16k8": {
		types: "m16n8k8.row.col.f32.f16.f16.f32", k: 8, perWord: 2, aw: 2, bw: 1,
		a: func(lane, i int) (int, int) {
			row := lane / 4
			if i >= 2 {
				row += 8
			}
			return row, lane%4*2 + i&1
		},
		b:      func(lane, i int) (int, int) { return lane%4*2 + i, lane / 4 },
		value:  func(x uint32) float64 { return lanes.Half(uint16(x)) },
		encode: func(x float64) uint32 { return toHalf(x) },
	},
	"tf32": {
		types: "m16n8k8.row.col.f32.tf32.tf32.f32", k: 8, perWord: 1, aw: 4, bw: 2,
		a: func(lane, i int) (int, int) {
			row, k := lane/4, lane%4
			if i == 1 || i == 3 {
				row += 8
			}
			if i >= 2 {
				k += 4
			}
			return row, k
		},
		b:      func(lane, i int) (int, int) { return lane%4 + 4*i, lane / 4 },
		value:  func(x uint32) float64 { return float64(math.Float32frombits(x &^ 0x1fff)) },
		encode: func(x float64) uint32 { return math.Float32bits(float32(x)) },
	},
}

func init() {
	bf := layouts["f16"]
	bf.types = "m16n8k16.row.col.f32.bf16.bf16.f32"
	bf.value = func(x uint32) float64 { return float64(math.Float32frombits(x << 16)) }
	bf.encode = func(x float64) uint32 { return math.Float32bits(float32(x)) >> 16 }
	layouts["bf16"] = bf
}

// multiply runs one mma on matrices [16][k], [k][8] and [16][8].
func (f *fragments) multiply(t *testing.T, o Options, a, b, acc [][]float64) [16][8]float32 {
	t.Helper()
	e := newBench(t, o)
	words := make([]uint32, 32*12)
	for lane := range 32 {
		for i := range f.aw * f.perWord {
			row, k := f.a(lane, i)
			words[lane*12+i/f.perWord] |= f.encode(a[row][k]) << (16 * (i % f.perWord))
		}
		for i := range f.bw * f.perWord {
			k, column := f.b(lane, i)
			words[lane*12+4+i/f.perWord] |= f.encode(b[k][column]) << (16 * (i % f.perWord))
		}
		for i := range 4 {
			row, column := c(lane, i)
			words[lane*12+8+i] = math.Float32bits(float32(acc[row][column]))
		}
	}
	in, out := e.words(words...), e.room(128)
	regsA, regsB := "%r10, %r11, %r12, %r13", "%r14, %r15"
	if f.aw == 2 {
		regsA, regsB = "%r10, %r11", "%r14"
	}
	e.must(`
	mad.wide.u32 %d6, %r0, 48, %d0;
	mad.wide.u32 %d7, %r0, 16, %d1;
	ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d6];
	ld.global.v4.u32 {%r14, %r15, %r16, %r17}, [%d6+16];
	ld.global.v4.u32 {%r18, %r19, %r20, %r21}, [%d6+32];
	mma.sync.aligned.`+f.types+` {%r22, %r23, %r24, %r25}, {`+regsA+`}, {`+regsB+`}, {%r18, %r19, %r20, %r21};
	st.global.v4.u32 [%d7], {%r22, %r23, %r24, %r25};
`, 1, 32, uint64(in), uint64(out), 0)
	var result [16][8]float32
	for i, v := range e.read(out, 128) {
		row, column := c(i/4, i%4)
		result[row][column] = math.Float32frombits(v)
	}
	if n := e.Counts()["test"].MultiplyAdds; n != uint64(16*8*f.k) {
		t.Fatalf("%d multiply-adds counted", n)
	}
	return result
}

// grid makes a matrix of values of f.
func (f *fragments) grid(rows, columns int, value func(i, j int) float64) [][]float64 {
	g := make([][]float64, rows)
	for i := range g {
		g[i] = make([]float64, columns)
		for j := range g[i] {
			g[i][j] = f.value(f.encode(value(i, j)))
		}
	}
	return g
}

func plain(rows, columns int, value func(i, j int) float64) [][]float64 {
	g := make([][]float64, rows)
	for i := range g {
		g[i] = make([]float64, columns)
		for j := range g[i] {
			g[i][j] = float64(float32(value(i, j)))
		}
	}
	return g
}

// TestMatrixProducts multiplies random matrices, with values over many powers of two
// and below the normal range of f16.
func TestMatrixProducts(t *testing.T) {
	for name, f := range layouts {
		random := rand.New(rand.NewPCG(7, 8))
		value := func(int, int) float64 { return math.Ldexp(random.NormFloat64(), random.IntN(24)-18) }
		a, b := f.grid(16, f.k, value), f.grid(f.k, 8, value)
		acc := plain(16, 8, value)
		want := func(i, j int) float64 {
			sum := acc[i][j]
			for k := range f.k {
				sum += a[i][k] * b[k][j]
			}
			return sum
		}
		got := f.multiply(t, Options{}, a, b, acc)
		for i := range got {
			for j, v := range got[i] {
				if v != float32(want(i, j)) {
					t.Fatalf("%s: element %d, %d is %g, want %g", name, i, j, v, want(i, j))
				}
			}
		}
		// A tensor core drops bits of what is small beside the largest term: at most one
		// unit of its 25th bit for each.
		for _, model := range []MMA{{Group: 16, ExtraBits: 2}, {Group: 8, ExtraBits: 1}} {
			got := f.multiply(t, Options{MMA: model}, a, b, acc)
			off := 0
			for i := range got {
				for j, v := range got[i] {
					top := math.Abs(acc[i][j])
					for k := range f.k {
						top += math.Abs(a[i][k] * b[k][j])
					}
					bound := top * 0x1p-23 * 3
					if d := float64(v) - want(i, j); !(math.Abs(d) <= bound) {
						t.Fatalf("%s, model %v: element %d, %d is %g, want %g", name, model, i, j, v, want(i, j))
					} else if d != 0 {
						off++
					}
				}
			}
			if off < 16 {
				t.Fatalf("%s, model %v: only %d elements differ from exact ones", name, model, off)
			}
		}
	}
}

// TestTensorCores checks the models' cuts on sums made for it.
func TestTensorCores(t *testing.T) {
	f := layouts["f16"]
	zero := func(int, int) float64 { return 0 }
	row := func(x ...float64) [][]float64 {
		return f.grid(16, 16, func(i, k int) float64 {
			if i == 0 && k < len(x) {
				return x[k]
			}
			return 0
		})
	}
	column := func(x ...float64) [][]float64 {
		return f.grid(16, 8, func(k, j int) float64 {
			if j == 0 && k < len(x) {
				return x[k]
			}
			return 0
		})
	}
	acc := func(x float64) [][]float64 {
		return plain(16, 8, func(i, j int) float64 {
			if i+j == 0 {
				return x
			}
			return 0
		})
	}
	hopper, ampere := MMA{Group: 16, ExtraBits: 2}, MMA{Group: 8, ExtraBits: 1}
	for _, test := range []struct {
		name  string
		model MMA
		a, b  [][]float64
		c     [][]float64
		want  float32
	}{
		// Exactly, 1 + 2^-24 + 2^-24 is 1 + 2^-23; hopper keeps both halves, too.
		{"two halves, exact", MMA{}, row(0x1p-12, 0x1p-12), column(0x1p-12, 0x1p-12), acc(1), 1 + 0x1p-23},
		{"two halves, hopper", hopper, row(0x1p-12, 0x1p-12), column(0x1p-12, 0x1p-12), acc(1), 1 + 0x1p-23},
		{"two halves, ampere", ampere, row(0x1p-12, 0x1p-12), column(0x1p-12, 0x1p-12), acc(1), 1 + 0x1p-23},
		// Four quarters: hopper has the bit, ampere has not.
		{"quarters, hopper", hopper, row(0x1p-12, 0x1p-12, 0x1p-12, 0x1p-12), column(0x1p-13, 0x1p-13, 0x1p-13, 0x1p-13), acc(1), 1 + 0x1p-23},
		{"quarters, ampere", ampere, row(0x1p-12, 0x1p-12, 0x1p-12, 0x1p-12), column(0x1p-13, 0x1p-13, 0x1p-13, 0x1p-13), acc(1), 1},
		// Sums are cut, not rounded.
		{"cut, hopper", hopper, row(0x1.8p-12), column(0x1p-12), acc(1), 1},
		{"rounded, exact", MMA{}, row(0x1.8p-12), column(0x1p-12), acc(1), 1 + 0x1p-23},
		{"negative, hopper", hopper, row(-0x1.8p-12), column(0x1p-12), acc(-1), -1},
		// Two groups: ampere cuts between products 8 and 9, hopper adds all at once.
		{"groups, hopper", hopper, row(0x1p-12, 0, 0, 0, 0, 0, 0, 0, 0x1p-12), column(0x1p-12, 0, 0, 0, 0, 0, 0, 0, 0x1p-12), acc(1), 1 + 0x1p-23},
		{"groups, ampere", ampere, row(0x1p-12, 0, 0, 0, 0, 0, 0, 0, 0x1p-12), column(0x1p-12, 0, 0, 0, 0, 0, 0, 0, 0x1p-12), acc(1), 1},
		{"small, hopper", hopper, row(0x1p-24), column(0x1p-24), acc(0x1p-140), 0x1p-48},
		{"infinite, hopper", hopper, row(1, math.Inf(1)), column(1, 1), acc(0), float32(math.Inf(1))},
	} {
		if got := f.multiply(t, Options{MMA: test.model}, test.a, test.b, test.c)[0][0]; got != test.want {
			t.Errorf("%s: %x, want %x", test.name, got, test.want)
		}
	}
	// Subnormal sums come out.
	tf := layouts["tf32"]
	a := tf.grid(16, 8, func(i, k int) float64 { return 0x1p-80 })
	b := tf.grid(8, 8, func(i, k int) float64 { return 0x1p-65 })
	for _, model := range []MMA{{}, hopper, ampere} {
		if got := tf.multiply(t, Options{MMA: model}, a, b, plain(16, 8, zero))[3][3]; got != 0x1p-142 {
			t.Errorf("model %v: subnormal sum %x", model, got)
		}
	}
}
