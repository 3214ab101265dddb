package emulator

import (
	"math"
	"strings"
	"testing"
)

// one runs an instruction on operands and returns its result. The operands a, b and
// c lie in %r10, %r11, %r12 and, with 64 bits, in %d10, %d11, %d12, their low
// halves in %h10, %h11, %h12; the result is that of %r2, or of %d6 if the
// instruction names it. Lanes with odd numbers run it alone, a second time; the
// others must keep what they had.
func one(t *testing.T, inst string, v [3]uint64) uint64 {
	t.Helper()
	e := newBench(t, Options{})
	out, err := e.Alloc(3 * 32 * 8)
	if err != nil {
		t.Fatal(err)
	}
	in, err := e.Alloc(24)
	if err != nil {
		t.Fatal(err)
	}
	src := make([]byte, 24)
	for i := range v {
		for j := range 8 {
			src[8*i+j] = byte(v[i] >> (8 * j))
		}
	}
	if err := e.CopyIn(in, src, e.s); err != nil {
		t.Fatal(err)
	}
	save := `
	mov.b64 %d7, {%r2, %r3};
	st.global.b64 [%d8], %d7;
`
	if strings.Contains(inst, "%d6") {
		save = "\n\tst.global.b64 [%d8], %d6;\n"
	}
	e.must(`
	ld.global.b64 %d10, [%d0];
	ld.global.b64 %d11, [%d0+8];
	ld.global.b64 %d12, [%d0+16];
	mov.b64 {%r10, %r20}, %d10;
	mov.b64 {%r11, %r20}, %d11;
	mov.b64 {%r12, %r20}, %d12;
	mov.b32 {%h10, %h0}, %r10;
	mov.b32 {%h11, %h0}, %r11;
	mov.b32 {%h12, %h0}, %r12;
	mov.b32 %r2, 77;
	mov.b32 %r3, 0;
	mov.b64 %d6, 77;
	mad.wide.u32 %d8, %r0, 8, %d1;
	and.b32 %r4, %r0, 1;
	setp.ne.u32 %p1, %r4, 0;
	setp.ne.u32 %p2, %r10, 0;
`+inst+save+`
	mov.b32 %r2, 77;
	mov.b64 %d6, 77;
	@!%p1 bra EVEN;
`+inst+`
EVEN:
	add.u64 %d8, %d8, 256;
`+save, 1, 32, uint64(in), uint64(out), 0)
	words := e.read(out, 4*32)
	at := func(i int) uint64 { return uint64(words[2*i]) | uint64(words[2*i+1])<<32 }
	for lane := range 32 {
		if at(lane) != at(0) {
			t.Fatalf("%s: lane %d has %#x, lane 0 %#x", inst, lane, at(lane), at(0))
		}
		if want := []uint64{77, at(0)}[lane&1]; at(32+lane) != want {
			t.Fatalf("%s: in divergent code lane %d has %#x, want %#x", inst, lane, at(32+lane), want)
		}
	}
	return at(0)
}

func f32(x float32) uint64 { return uint64(math.Float32bits(x)) }
func f64(x float64) uint64 { return math.Float64bits(x) }

func TestInstructions(t *testing.T) {
	const minus = 0xffffffff // -1 in 32 bits
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		inst    string
		a, b, c uint64
		want    uint64
	}{
		{"add.u32 %r2, %r10, %r11;", 0xffffffff, 3, 0, 2},
		{"add.s64 %d6, %d10, %d11;", 1 << 40, math.MaxUint64, 0, 1<<40 - 1},
		{"sub.s32 %r2, %r10, %r11;", 3, 5, 0, 0xfffffffe},
		{"add.sat.s32 %r2, %r10, %r11;", 3, minus, 0, 2},
		{"add.sat.s32 %r2, %r10, %r11;", 0x80000003, 0xfffffffb, 0, 0x80000000},
		{"add.sat.s32 %r2, %r10, %r11;", 0x7ffffffe, 2, 0, 0x7fffffff},
		{"sub.sat.s32 %r2, %r10, %r11;", 3, 5, 0, 0xfffffffe},
		{"sub.sat.s32 %r2, %r10, %r11;", 0x80000003, 5, 0, 0x80000000},
		{"sub.sat.s32 %r2, %r10, %r11;", 5, 0x80000003, 0, 0x7fffffff},
		{"mul.lo.s32 %r2, %r10, %r11;", minus, 7, 0, 0xfffffff9},
		{"mul.hi.u32 %r2, %r10, %r11;", 0x80000000, 6, 0, 3},
		{"mul.hi.s32 %r2, %r10, %r11;", minus, 6, 0, minus},
		{"mul.hi.u64 %d6, %d10, %d11;", 1 << 63, 6, 0, 3},
		{"mul.hi.s64 %d6, %d10, %d11;", math.MaxUint64, 6, 0, math.MaxUint64},
		{"mul.wide.u32 %d6, %r10, %r11;", minus, 2, 0, 0x1fffffffe},
		{"mul.wide.s32 %d6, %r10, %r11;", minus, 2, 0, math.MaxUint64 - 1},
		{"mad.lo.u32 %r2, %r10, %r11, %r12;", 5, 6, 7, 37},
		{"mad.lo.u64 %d6, %d10, %d11, %d12;", 1 << 33, 2, 7, 1<<34 + 7},
		{"mad.wide.s32 %d6, %r10, -4, %d12;", 3, 0, 100, 88},
		{"div.s32 %r2, %r10, %r11;", 0xfffffff9, 2, 0, 0xfffffffd},
		{"div.u32 %r2, %r10, %r11;", 0xfffffff9, 2, 0, 0x7ffffffc},
		{"div.s32 %r2, %r10, %r11;", 0x80000000, minus, 0, 0x80000000},
		{"rem.s32 %r2, %r10, %r11;", 0xfffffff9, 2, 0, minus},
		{"rem.u64 %d6, %d10, %d11;", 1<<40 + 3, 1 << 40, 0, 3},
		{"min.s32 %r2, %r10, %r11;", minus, 1, 0, minus},
		{"min.u32 %r2, %r10, %r11;", minus, 1, 0, 1},
		{"max.s64 %d6, %d10, %d11;", math.MaxUint64, 1, 0, 1},
		{"max.u64 %d6, %d10, %d11;", math.MaxUint64, 1, 0, math.MaxUint64},
		{"abs.s32 %r2, %r10;", 0xfffffff0, 0, 0, 16},
		{"neg.s64 %d6, %d10;", 5, 0, 0, math.MaxUint64 - 4},
		{"and.b32 %r2, %r10, %r11;", 12, 10, 0, 8},
		{"or.b64 %d6, %d10, %d11;", 12 << 40, 10, 0, 12<<40 | 10},
		{"xor.b32 %r2, %r10, %r11;", 12, 10, 0, 6},
		{"not.b32 %r2, %r10;", 12, 0, 0, 0xfffffff3},
		{"shl.b32 %r2, %r10, %r11;", 3, 31, 0, 0x80000000},
		{"shl.b32 %r2, %r10, %r11;", 3, 32, 0, 0},
		{"shl.b64 %d6, %d10, %r11;", 3, 40, 0, 3 << 40},
		{"shr.u32 %r2, %r10, %r11;", minus, 28, 0, 15},
		{"shr.s32 %r2, %r10, %r11;", 0xfffffff0, 99, 0, minus},
		{"shr.s64 %d6, %d10, 4;", 1 << 63, 0, 0, 0xf8 << 56},
		{"bfe.u32 %r2, %r10, %r11, %r12;", 0xabcd1234, 8, 12, 0xd12},
		{"bfe.u32 %r2, %r10, %r11, %r12;", 0xabcd1234, 24, 32, 0xab},
		{"bfe.s32 %r2, %r10, %r11, %r12;", 0xabcd1234, 12, 8, 0xffffffd1},
		{"bfe.s32 %r2, %r10, %r11, %r12;", 0xabcd1234, 12, 0, 0},
		{"bfe.s32 %r2, %r10, %r11, %r12;", 0xabcd1234, 28, 32, 0xfffffffa},
		{"bfe.s32 %r2, %r10, %r11, %r12;", 0xabcd1234, 40, 3, minus},
		{"bfi.b32 %r2, %r10, %r11, 8, 4;", 0xab, 0x11111111, 0, 0x11111b11},
		{"bfi.b32 %r2, %r10, %r11, 28, 32;", 0xab, 0x11111111, 0, 0xb1111111},
		{"popc.b32 %r2, %r10;", 0xf0f1, 0, 0, 9},
		{"clz.b32 %r2, %r10;", 0xf0f1, 0, 0, 16},
		{"clz.b32 %r2, %r10;", 0, 0, 0, 32},
		{"prmt.b32 %r2, %r10, %r11, %r12;", 0x44332211, 0x88776655, 0x7240, 0x88335511},
		{"prmt.b32 %r2, %r10, %r11, %r12;", 0x44332291, 0x88776655, 0x00f8, 0x9191ffff},
		{"selp.b32 %r2, %r11, %r12, %p2;", 1, 5, 6, 5},
		{"selp.b32 %r2, %r11, %r12, %p2;", 0, 5, 6, 6},
		{"selp.f64 %d6, %d11, %d12, %p2;", 0, 5, 6, 6},
		{"mov.b32 %r2, {%h10, %h11};", 0x12345, 0x6789, 0, 0x67892345},
		{"mov.b64 %d6, {%r10, %r11};", 5, 6, 0, 6<<32 | 5},
		{"mov.b32 {%h1, %h2}, %r10;\n\tmov.b32 %r2, {%h2, %h1};", 0x12345678, 0, 0, 0x56781234},
		{"mov.u32 %r2, %ntid.x;", 0, 0, 0, 32},

		{"add.rn.f32 %r2, %r10, %r11;", f32(1), f32(0x1p-24), 0, f32(1)},
		{"add.rn.f32 %r2, %r10, %r11;", f32(inf), f32(-inf), 0, 0x7fffffff},
		{"sub.rn.f32 %r2, %r10, %r11;", f32(0x1p-126), f32(0x1p-127), 0, f32(0x1p-127)},
		{"mul.rn.f32 %r2, %r10, %r11;", f32(0x1p-100), f32(0x1p-48), 0, f32(0x1p-148)},
		{"mul.rn.f64 %d6, %d10, %d11;", f64(3), f64(-7), 0, f64(-21)},
		{"fma.rn.f32 %r2, %r10, %r11, %r12;", f32(1 + 0x1p-12), f32(1 + 0x1p-12), f32(-1), f32(0x1p-11 + 0x1p-24)},
		// Next to the middle between the least normal number and the one below: the bit that says on which side is not one of 53.
		{"fma.rn.f32 %r2, %r10, %r11, %r12;", f32(-8391504 * 0x1p-98), f32(8385713 * 0x1p-98), f32(0x1p-126), 0x007fffff},
		{"fma.rn.f32 %r2, %r10, %r11, %r12;", f32(8391504 * 0x1p-98), f32(8385713 * 0x1p-98), f32(-0x1p-126), 0x807fffff},
		{"fma.rn.f32 %r2, %r10, %r11, %r12;", f32(-8388609 * 0x1p-98), f32(8388607 * 0x1p-98), f32(0x1p-126), 0x00800000},
		{"fma.rn.f64 %d6, %d10, %d11, %d12;", f64(1 + 0x1p-30), f64(1 + 0x1p-30), f64(-1 - 0x1p-29), f64(0x1p-60)},
		{"div.rn.f32 %r2, %r10, %r11;", f32(1), f32(3), 0, f32(float32(1) / 3)},
		{"div.rn.f32 %r2, %r10, %r11;", f32(0), f32(0), 0, 0x7fffffff},
		{"rcp.rn.f32 %r2, %r10;", f32(-4), 0, 0, f32(-0.25)},
		{"sqrt.rn.f32 %r2, %r10;", f32(2), 0, 0, f32(float32(math.Sqrt2))},
		{"sqrt.rn.f64 %d6, %d10;", f64(2), 0, 0, f64(math.Sqrt2)},
		{"min.f32 %r2, %r10, %r11;", f32(nan), f32(3), 0, f32(3)},
		{"max.f32 %r2, %r10, %r11;", f32(3), f32(nan), 0, f32(3)},
		{"max.f32 %r2, %r10, %r11;", f32(nan), f32(nan), 0, 0x7fffffff},
		{"min.f32 %r2, %r10, %r11;", f32(0), 0x80000000, 0, 0x80000000},
		{"max.f32 %r2, %r10, %r11;", f32(0), 0x80000000, 0, 0},
		{"min.f64 %d6, %d10, %d11;", f64(math.NaN()), f64(3), 0, f64(3)},
		{"abs.f32 %r2, %r10;", f32(-3), 0, 0, f32(3)},
		{"neg.f32 %r2, %r10;", f32(3), 0, 0, f32(-3)},
		{"ex2.approx.ftz.f32 %r2, %r10;", f32(0.5), 0, 0, f32(math.Sqrt2)},
		{"ex2.approx.ftz.f32 %r2, %r10;", f32(-140), 0, 0, 0},
		{"ex2.approx.f32 %r2, %r10;", f32(-140), 0, 0, f32(0x1p-140)},
		{"lg2.approx.ftz.f32 %r2, %r10;", f32(8), 0, 0, f32(3)},
		{"lg2.approx.ftz.f32 %r2, %r10;", f32(0x1p-140), 0, 0, f32(-inf)},
		{"lg2.approx.f32 %r2, %r10;", f32(0x1p-140), 0, 0, f32(-140)},
		{"rcp.approx.ftz.f32 %r2, %r10;", f32(3), 0, 0, f32(float32(1) / 3)},
		{"add.rn.f16x2 %r2, %r10, %r11;", 0x3c000400, 0x3c000001, 0, 0x40000401},
		{"mul.rn.f16x2 %r2, %r10, %r11;", 0x3c000001, 0x42003800, 0, 0x42000000},
		{"fma.rn.f16x2 %r2, %r10, %r11, %r12;", 0x3c013c01, 0x3c013c01, 0xbc020000, 0x00103c02},
		{"max.f16x2 %r2, %r10, %r11;", 0x7e003c00, 0x42004200, 0, 0x42004200},
		{"min.f16x2 %r2, %r10, %r11;", 0x7e003c00, 0x42004200, 0, 0x42003c00},

		{"cvt.rn.f16x2.f32 %r2, %r10, %r11;", f32(2), f32(0x1p-24), 0, 0x40000001},
		{"cvt.rn.bf16x2.f32 %r2, %r10, %r11;", 0x3f808000, 0x3f818000, 0, 0x3f803f82},
		{"cvt.rna.tf32.f32 %r2, %r10;", 0x3f801000, 0, 0, 0x3f802000},
		{"cvt.u64.u32 %d6, %r10;", minus, 0, 0, minus},
		{"cvt.s64.s32 %d6, %r10;", minus, 0, 0, math.MaxUint64},
		{"cvt.u32.u64 %r2, %d10;", 5<<32 | 9, 0, 0, 9},
		{"cvt.s32.s16 %r2, %h10;", 0x8001, 0, 0, 0xffff8001},
		{"cvt.u32.u16 %r2, %h10;", 0x18001, 0, 0, 0x8001},
		{"cvt.u32.u8 %r2, %r10;", 0x1fe, 0, 0, 0xfe},
		{"cvt.s32.s8 %r2, %r10;", 0x1fe, 0, 0, 0xfffffffe},
		{"cvt.sat.u8.s32 %r2, %r10;", 300, 0, 0, 255},
		{"cvt.sat.u8.s32 %r2, %r10;", minus, 0, 0, 0},
		{"cvt.sat.s8.s32 %r2, %r10;", 0xffff0000, 0, 0, 0xffffff80},
		{"cvt.rn.f32.s32 %r2, %r10;", 0xfefffffd, 0, 0, f32(-16777220)},
		{"cvt.rz.f32.u32 %r2, %r10;", minus, 0, 0, f32(4294967040)},
		{"cvt.rp.f32.s32 %r2, %r10;", 16777217, 0, 0, f32(16777218)},
		{"cvt.rm.f32.s32 %r2, %r10;", 0xfefffffd, 0, 0, f32(-16777220)},
		{"cvt.rn.f32.u64 %r2, %d10;", 1<<63 + 1<<39 + 1, 0, 0, f32(0x1p63 + 0x1p40)},
		{"cvt.rz.f64.u64 %d6, %d10;", math.MaxUint64, 0, 0, f64(0x1.fffffffffffffp63)},
		{"cvt.rn.f64.s64 %d6, %d10;", math.MaxUint64 - 2, 0, 0, f64(-3)},
		{"cvt.rni.s32.f32 %r2, %r10;", f32(2.5), 0, 0, 2},
		{"cvt.rzi.s32.f32 %r2, %r10;", f32(-2.9), 0, 0, 0xfffffffe},
		{"cvt.rmi.s32.f32 %r2, %r10;", f32(-2.1), 0, 0, 0xfffffffd},
		{"cvt.rpi.s32.f32 %r2, %r10;", f32(2.1), 0, 0, 3},
		{"cvt.rzi.u32.f32 %r2, %r10;", f32(-5), 0, 0, 0},
		{"cvt.rzi.s32.f32 %r2, %r10;", f32(1e20), 0, 0, 0x7fffffff},
		{"cvt.rzi.s32.f32 %r2, %r10;", f32(nan), 0, 0, 0},
		{"cvt.rzi.s64.f64 %d6, %d10;", f64(math.NaN()), 0, 0, 1 << 63},
		{"cvt.rzi.u64.f64 %d6, %d10;", f64(0x1p63 + 0x1p20), 0, 0, 1<<63 + 1<<20},
		{"cvt.rn.f32.f64 %r2, %d10;", f64(1 + 0x1p-24), 0, 0, f32(1)},
		{"cvt.rp.f32.f64 %r2, %d10;", f64(1 + 0x1p-40), 0, 0, f32(1 + 0x1p-23)},
		{"cvt.rz.f32.f64 %r2, %d10;", f64(1e300), 0, 0, f32(math.MaxFloat32)},
		{"cvt.f64.f32 %d6, %r10;", f32(-1.5), 0, 0, f64(-1.5)},
		{"cvt.f32.f16 %r2, %h10;", 0x8001, 0, 0, f32(-0x1p-24)},
		{"cvt.rni.f32.f32 %r2, %r10;", f32(3.5), 0, 0, f32(4)},
		{"cvt.sat.f32.f32 %r2, %r10;", f32(3.5), 0, 0, f32(1)},
		{"cvt.sat.f32.f32 %r2, %r10;", f32(nan), 0, 0, 0},
		{"cvt.rn.f16.f32 %h1, %r10;\n\tmov.b32 %r2, {%h1, %h1};", f32(65520), 0, 0, 0x7c007c00},
		{"cvt.rz.f16.f32 %h1, %r10;\n\tmov.b32 %r2, {%h1, %h1};", f32(65520), 0, 0, 0x7bff7bff},
		{"cvt.rn.bf16.f32 %h1, %r10;\n\tmov.b32 %r2, {%h1, %h1};", 0x7f800001, 0, 0, 0x7fff7fff},
	} {
		if got := one(t, "\t"+c.inst, [3]uint64{c.a, c.b, c.c}); got != c.want {
			t.Errorf("%s of %#x, %#x, %#x is %#x, want %#x", c.inst, c.a, c.b, c.c, got, c.want)
		}
	}
}

func TestComparisons(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		cmp  string
		a, b uint64
		want uint64
	}{
		{"eq.f32", f32(1), f32(1), 1}, {"eq.f32", f32(nan), f32(nan), 0}, {"equ.f32", f32(nan), f32(1), 1},
		{"ne.f32", f32(nan), f32(1), 0}, {"neu.f32", f32(nan), f32(1), 1}, {"ne.f32", f32(2), f32(1), 1},
		{"lt.f32", f32(-1), f32(1), 1}, {"lt.f32", f32(nan), f32(1), 0}, {"ltu.f32", f32(nan), f32(1), 1},
		{"le.f32", f32(1), f32(1), 1}, {"leu.f32", f32(2), f32(1), 0}, {"gtu.f32", f32(2), f32(1), 1},
		{"gt.f32", f32(1), f32(1), 0}, {"ge.f32", f32(1), f32(1), 1}, {"geu.f32", f32(0), f32(nan), 1},
		{"num.f32", f32(0), f32(nan), 0}, {"nan.f32", f32(0), f32(nan), 1},
		{"lt.s32", 0xffffffff, 1, 1}, {"lt.u32", 0xffffffff, 1, 0}, {"lo.u32", 1, 2, 1}, {"hs.u32", 2, 2, 1},
		{"ls.u32", 3, 2, 0}, {"hi.u32", 3, 2, 1}, {"gt.s64", 1, math.MaxUint64, 1}, {"gt.u64", 1, math.MaxUint64, 0},
		{"lt.f64", f64(-1), f64(1), 1}, {"eq.b32", 4, 4, 1}, {"ne.b32", 4, 4, 0},
	} {
		reg := "%r"
		if strings.HasSuffix(c.cmp, "64") {
			reg = "%d"
		}
		inst := "\tsetp." + c.cmp + " %p3, " + reg + "10, " + reg + "11;\n\tselp.b32 %r2, 1, 0, %p3;"
		if got := one(t, inst, [3]uint64{c.a, c.b, 0}); got != c.want {
			t.Errorf("setp.%s of %#x, %#x is %d, want %d", c.cmp, c.a, c.b, got, c.want)
		}
	}
	for _, c := range []struct {
		with string
		want uint64
	}{{"and", 0}, {"or", 1}, {"xor", 1}} {
		inst := "\tsetp.eq." + c.with + ".u32 %p3, %r10, 9, %p2;\n\tselp.b32 %r2, 1, 0, %p3;"
		if got := one(t, inst, [3]uint64{5, 0, 0}); got != c.want {
			t.Errorf("setp.eq.%s is %d, want %d", c.with, got, c.want)
		}
	}
}

// TestApproximations checks that a seed moves results, by two units at most, and
// logarithms near 0 by 2^-22.
func TestApproximations(t *testing.T) {
	run := func(inst string, seed uint64) []uint32 {
		e := newBench(t, Options{Approx: seed})
		out := e.room(256)
		e.must(`
	cvt.rn.f32.u32 %r2, %r0;
	add.rn.f32 %r2, %r2, 0f43000000;
	div.rn.f32 %r2, %r2, 0f43800000;
	`+inst+` %r3, %r2;
	st.global.u32 [%d4], %r3;
`, 1, 256, uint64(out), 0, 0)
		return e.read(out, 256)
	}
	for _, c := range []struct {
		inst string
		near func(a, b uint32) bool
	}{
		{"ex2.approx.ftz.f32", func(a, b uint32) bool { return int32(a-b) <= 2 && int32(b-a) <= 2 }},
		{"lg2.approx.f32", func(a, b uint32) bool {
			return math.Abs(float64(math.Float32frombits(a))-float64(math.Float32frombits(b))) <= 0x1.1p-22
		}},
	} {
		exact, off := run(c.inst, 0), 0
		for i, v := range run(c.inst, 9) {
			if v != exact[i] {
				off++
			}
			if !c.near(v, exact[i]) {
				t.Fatalf("%s: lane %d is %g, not near %g", c.inst, i, math.Float32frombits(v), math.Float32frombits(exact[i]))
			}
		}
		if off < 64 {
			t.Fatalf("%s: %d of 256 results moved", c.inst, off)
		}
	}
}
