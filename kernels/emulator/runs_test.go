package emulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// everySet runs a test with each set of this machine that has routines.
func everySet(t *testing.T, test func(t *testing.T, set *lanes.Set)) {
	for _, set := range lanes.Sets() {
		if len(set.Names()) == 0 {
			continue
		}
		t.Run(set.Name, func(t *testing.T) { test(t, set) })
	}
}

// computed are instructions for all routines. Some write over an operand.
const computed = `
	mov.b32 %r0, %r1;
	mov.b64 %d0, %d1;
	mov.pred %p0, %p1;
	mov.b16 %h0, %h1;
	mov.b64 {%r0, %r1}, %d1;
	mov.b64 %d0, {%r1, %r2};
	mov.b64 {%r3, %r2}, %d0;
	selp.b32 %r0, %r1, %r2, %p1;
	selp.f32 %r1, %r1, %r2, %p0;
	selp.b64 %d0, %d1, %d2, %p1;
	add.u32 %r0, %r1, %r2;
	add.s32 %r1, %r1, %r1;
	add.sat.s32 %r0, %r1, %r2;
	sub.sat.s32 %r0, %r1, %r2;
	sub.sat.s32 %r2, %r1, %r2;
	sub.u32 %r0, %r1, %r2;
	mul.lo.s32 %r0, %r1, %r2;
	mad.lo.u32 %r0, %r1, %r2, %r3;
	mad.lo.s32 %r3, %r1, %r2, %r3;
	and.b32 %r0, %r1, %r2;
	or.b32 %r0, %r1, %r2;
	xor.b32 %r0, %r1, %r2;
	not.b32 %r0, %r1;
	neg.s32 %r0, %r1;
	abs.s32 %r0, %r1;
	shl.b32 %r0, %r1, %r2;
	shr.u32 %r0, %r1, %r2;
	shr.s32 %r0, %r1, %r2;
	min.u32 %r0, %r1, %r2;
	min.s32 %r0, %r1, %r2;
	max.u32 %r0, %r1, %r2;
	max.s32 %r0, %r1, %r2;
	bfe.u32 %r0, %r1, %r2, %r3;
	add.u64 %d0, %d1, %d2;
	sub.u64 %d0, %d1, %d2;
	mul.lo.u64 %d0, %d1, %d2;
	mad.lo.u64 %d0, %d1, %d2, %d3;
	and.b64 %d0, %d1, %d2;
	or.b64 %d0, %d1, %d2;
	xor.b64 %d0, %d1, %d2;
	not.b64 %d0, %d1;
	shl.b64 %d0, %d1, %r2;
	shr.u64 %d0, %d1, %r2;
	shr.s64 %d0, %d1, %r2;
	mul.wide.u32 %d0, %r1, %r2;
	mad.wide.u32 %d0, %r1, %r2, %d3;
	mad.wide.s32 %d3, %r1, %r2, %d3;
	add.rn.f32 %r0, %r1, %r2;
	sub.rn.f32 %r0, %r1, %r2;
	mul.rn.f32 %r0, %r1, %r2;
	div.rn.f32 %r0, %r1, %r2;
	fma.rn.f32 %r0, %r1, %r2, %r3;
	fma.rn.f32 %r3, %r1, %r2, %r3;
	min.f32 %r0, %r1, %r2;
	max.f32 %r0, %r1, %r2;
	abs.f32 %r0, %r1;
	neg.f32 %r0, %r1;
	sqrt.rn.f32 %r0, %r1;
	rcp.rn.f32 %r0, %r1;
	add.rn.f64 %d0, %d1, %d2;
	sub.rn.f64 %d0, %d1, %d2;
	mul.rn.f64 %d0, %d1, %d2;
	div.rn.f64 %d0, %d1, %d2;
	fma.rn.f64 %d0, %d1, %d2, %d3;
	abs.f64 %d0, %d1;
	neg.f64 %d0, %d1;
	cvt.u64.u32 %d0, %r1;
	cvt.s64.s32 %d0, %r1;
	cvt.u32.u16 %r0, %h1;
	cvt.rna.tf32.f32 %r0, %r1;
	cvt.rn.f32.s32 %r0, %r1;
	cvt.rn.f32.u32 %r0, %r1;
	cvt.rn.f64.u32 %d0, %r1;
	cvt.rzi.s32.f32 %r0, %r1;
	cvt.rmi.f64.f64 %d0, %d1;
	cvt.f64.f32 %d0, %r1;
	cvt.rn.f32.f64 %r0, %d1;
	not.pred %p0, %p1;
	and.pred %p0, %p1, %p2;
	or.pred %p0, %p1, %p2;
	xor.pred %p2, %p1, %p2;
`

// comparedAll are all comparisons.
func comparedAll() string {
	var s strings.Builder
	for _, size := range []struct{ reg, bits string }{{"r", "32"}, {"d", "64"}} {
		for _, kind := range []struct{ letter, names string }{
			{"b", "eq ne"}, {"s", "eq ne lt le gt ge"}, {"u", "eq ne lt le gt ge lo ls hi hs"},
			{"f", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"},
		} {
			for name := range strings.FieldsSeq(kind.names) {
				fmt.Fprintf(&s, "\tsetp.%s.%s%s %%p0, %%%s1, %%%s2;\n", name, kind.letter, size.bits, size.reg, size.reg)
			}
		}
	}
	return s.String()
}

// specials are numbers at which operations change what they do, as f32 and as f64.
var specials = []uint64{
	0, 1, 2, 31, 32, 33, 63, 64, 255, 256, 0xffff, 0x7fffff, 0x800000, 0x33800000, 0x3f800000, 0x3f800001, 0x477ff000, 0x7f7fffff, 0x7f7ff000, 0x7f800000,
	0x7f800001, 0x7fc00000, 0x7fffffff, 0x80000000, 0x80000001, 0xbf800000, 0xff7fffff, 0xff800000, 0xffc00001, 0xffffffff,
	0x4effffff, 0x4f000000, 0x4f000001, 0xceffffff, 0xcf000000, 0xcf000001, 0xbf7fffff, 0x402fffff,
	0xbfe0000000000000, 0x3fefffffffffffff, 0xc004000000000000, 0x4330000000000001, 0xc32fffffffffffff,
	0x3ff0000000000000, 0x380fffffffffffff, 0x36a0000000000001, 0x47efffffffffffff, 0x47effffff0000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000,
	0x8000000000000000, 0xbff0000000000001, 0xfff0000000000000, 0xffffffffffffffff, 1 << 32, 1<<32 - 1, 1 << 63 >> 1,
}

// TestRoutines compares what the assembly computes with the functions in Go, in all
// registers of a warp, for masks and for numbers at which something changes.
func TestRoutines(t *testing.T) {
	everySet(t, func(t *testing.T, set *lanes.Set) {
		k := decoded(t, set, computed+comparedAll())
		random := rand.New(rand.NewPCG(5, 6))
		rounds := 60
		if testing.Short() {
			rounds = 14
		}
		seen := map[string]bool{}
		fast, plain := k.newWarp(nil, 0), k.newWarp(nil, 0)
		for i := range k.ops {
			o := &k.ops[i]
			if o.from == o.to || k.textOf(o) == "ret;" {
				continue
			}
			if o.routine == nil {
				if set.Name != "avx2" || k.textOf(o) != "cvt.rn.f32.u32 %r0, %r1;" {
					t.Errorf("%s has no routine", k.textOf(o))
				}
				continue
			}
			seen[o.routine.Name] = true
			code := []lanes.Inst{o.routine.Inst(k.layout.offsets(o)), set.Stop()}
			for round := range rounds {
				m := []uint32{all, 0, 1, 1 << 31, 0x00010000, 0xff00, random.Uint32()}[round%7]
				fill(plain, random)
				copy(fast.memory(k), plain.memory(k))
				set.Run(&code[0], fast.file, m)
				if m != 0 {
					o.step(plain, o, m)
				}
				if a, b := fast.memory(k), plain.memory(k); !slices.Equal(a, b) {
					for j := range a {
						if a[j] != b[j] {
							t.Fatalf("%s in lanes %08x: byte %d of the registers is %#x, want %#x", k.textOf(o), m, j, a[j], b[j])
						}
					}
				}
			}
		}
		for _, name := range set.Names() {
			if !seen[name] {
				t.Errorf("nothing here computes with %s", name)
			}
		}
	})
}

// decoded is a kernel of a body, as a set runs it.
func decoded(t *testing.T, set *lanes.Set, body string) *kernel {
	t.Helper()
	m, err := ptx.Parse([]byte(text("", body)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := decode(&Options{}, set, m, m.Kernels[0])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// memory is what holds a warp's registers.
func (w *warp) memory(k *kernel) []byte {
	return unsafe.Slice((*byte)(w.file), k.layout.bytes)[lanes.FileStart:]
}

// fill puts numbers into all registers.
func fill(w *warp, random *rand.Rand) {
	number := func() uint64 {
		switch random.IntN(4) {
		case 0:
			return random.Uint64()
		case 1: // numbers near each other
			return uint64(0x3f800000 + random.IntN(64) - 32)
		}
		return specials[random.IntN(len(specials))]
	}
	for i := range w.r {
		for lane := range w.r[i] {
			w.r[i][lane] = uint32(number())
		}
	}
	for i := range w.d {
		for lane := range w.d[i] {
			w.d[i][lane] = number()
		}
	}
	for i := range w.p {
		w.p[i] = random.Uint32()
	}
}

// TestRuns jumps into code from several sides, leaves it early and reads the clock:
// results and counts must be those of single steps.
func TestRuns(t *testing.T) {
	const body = `
	ld.param.u64 %d0, [x];
	cvta.to.global.u64 %d1, %d0;
	mov.u32 %r0, %tid.x;
	mad.wide.u32 %d2, %r0, 4, %d1;
	mov.u32 %r1, 7;
	mov.u32 %r2, %r1;
	mov.u32 %r3, 0;
	setp.lt.u32 %p0, %r0, 40;
	@%p0 bra MIDDLE;
	add.u32 %r3, %r3, 100;
LOOP:
	add.u32 %r3, %r3, 1;
MIDDLE:
	add.u32 %r3, %r3, 10;
	@!%p0 mov.u32 %r2, 9;
	add.u32 %r3, %r3, %r2;
	setp.lt.u32 %p1, %r3, %r0;
	@%p1 bra LOOP;
	mov.u64 %d4, %clock64;
	cvt.u32.u64 %r4, %d4;
	mad.lo.u32 %r3, %r4, 1000, %r3;
	st.global.u32 [%d2], %r3;
	setp.gt.u32 %p2, %r0, 90;
	@%p2 ret;
	mov.u32 %r5, %ctaid.x;
	mad.lo.u32 %r3, %r5, %r1, %r3;
	st.global.u32 [%d2], %r3;`
	type outcome struct {
		out    []uint32
		counts Counts
	}
	runOn := func(set *lanes.Set, fold bool) outcome {
		e := newBench(t, Options{})
		e.set = set
		source := text(".param .u64 x", body)
		if !fold { // a second write keeps a register from being a constant
			source = strings.ReplaceAll(source, "\tret;\n}", "\tret;\n\tmov.u32 %r0, 0;\n\tmov.u32 %r1, 0;\n\tmov.u64 %d0, 0;\n\tmov.u64 %d1, 0;\n\tmov.u32 %r5, 0;\n\tret;\n}")
		}
		f := e.load(source, 0)
		p := e.room(120)
		if err := e.launch(cuda.Launch{Function: f, Grid: [3]int{3, 1, 1}, Block: 120, Args: []uint64{uint64(p)}}); err != nil {
			t.Fatal(err)
		}
		return outcome{e.read(p, 120), e.Counts()["test"]}
	}
	sets := lanes.Sets()
	want := runOn(sets[len(sets)-1], false)
	if want.counts.Integer == 0 || want.out[0] == want.out[119] {
		t.Fatalf("the kernel computes nothing: %v", want)
	}
	for _, set := range sets {
		for _, fold := range []bool{false, true} {
			if got := runOn(set, fold); !slices.Equal(got.out, want.out) || got.counts != want.counts {
				t.Errorf("%s, constants in registers %v:\n%v\n%+v, want\n%v\n%+v", set.Name, fold, got.out, got.counts, want.out, want.counts)
			}
		}
	}
}
