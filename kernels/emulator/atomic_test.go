package emulator

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
)

// TestAtomics runs each operation on a word of global and of shared memory, one lane
// after the other.
func TestAtomics(t *testing.T) {
	for _, c := range []struct {
		op   string
		wide bool
		want func(old, x uint64) uint64
	}{
		{"add.u32", false, func(old, x uint64) uint64 { return uint64(uint32(old + x)) }},
		{"add.u64", true, func(old, x uint64) uint64 { return old + x }},
		{"min.u32", false, func(old, x uint64) uint64 { return min(old, x) }},
		{"max.u32", false, func(old, x uint64) uint64 { return max(old, x) }},
		{"max.s32", false, func(old, x uint64) uint64 { return uint64(uint32(max(int32(old), int32(x)))) }},
		{"min.s32", false, func(old, x uint64) uint64 { return uint64(uint32(min(int32(old), int32(x)))) }},
		{"max.u64", true, func(old, x uint64) uint64 { return max(old, x) }},
		{"and.b32", false, func(old, x uint64) uint64 { return old & x }},
		{"or.b64", true, func(old, x uint64) uint64 { return old | x }},
		{"exch.b32", false, func(_, x uint64) uint64 { return x }},
		{"cas.b32", false, func(old, x uint64) uint64 {
			if old == x {
				return 1000
			}
			return old
		}},
		{"cas.b64", true, func(old, x uint64) uint64 {
			if old == x {
				return 1000
			}
			return old
		}},
	} {
		for _, space := range []string{"global", "shared"} {
			b := newBench(t, Options{})
			out, word := b.room(2*64+2), b.words(3, 0)
			address, reg, extra := "[%d2]", "%r", ""
			if space == "shared" {
				address = "[%r8]"
			}
			if c.wide {
				reg = "%d"
			}
			if strings.HasPrefix(c.op, "cas") {
				extra = ", 1000"
			}
			start := uint64(3)
			if c.op == "max.s32" || c.op == "min.s32" {
				start = 0xfffffffd
				word = b.words(uint32(start), 0)
			}
			// Lane i operates with 2·i − 5 of 32 bits, or 2·i of 64.
			b.must(fmt.Sprintf(`
	mov.u32 %%r8, room;
	ld.global.b64 %%d6, [%%d2];
	setp.eq.u32 %%p0, %%r0, 0;
	@%%p0 st.shared.b64 [%%r8], %%d6;
	bar.sync 0;
	shl.b32 %%r10, %%r0, 1;
	cvt.u64.u32 %%d10, %%r10;
	sub.u32 %%r10, %%r10, 5;
	mov.b64 %%d11, 0;
	mov.b32 %%r11, 0;
	atom.%s.%s %s11, %s, %s10%s;
	mad.wide.u32 %%d7, %%r0, 8, %%d0;
	st.global.u64 [%%d7], %%d11;
	setp.ne.b64 %%p1, %%d11, 0;
	@%%p1 bra END;
	cvt.u64.u32 %%d11, %%r11;
	st.global.u64 [%%d7], %%d11;
END:
	bar.sync 0;
	@!%%p0 ret;
	ld.shared.u64 %%d6, [%%r8];
	st.global.u64 [%%d0+512], %%d6;
`, space, c.op, reg, address, reg, extra), 1, 64, uint64(out), 0, uint64(word))
			got := b.read(out, 130)
			end := uint64(got[128]) | uint64(got[129])<<32
			if space == "global" {
				w := b.read(word, 2)
				end = uint64(w[0]) | uint64(w[1])<<32
			}
			v := start
			for lane := range uint64(64) {
				if old := uint64(got[2*lane]) | uint64(got[2*lane+1])<<32; old != v {
					t.Fatalf("%s.%s: lane %d got %#x, want %#x", space, c.op, lane, old, v)
				}
				x := 2 * lane
				if !c.wide {
					x = uint64(uint32(x - 5))
				}
				v = c.want(v, x)
			}
			if end != v {
				t.Fatalf("%s.%s left %#x, want %#x", space, c.op, end, v)
			}
		}
	}
}

// TestElements loads and stores elements of all sizes, with signs and as vectors.
func TestElements(t *testing.T) {
	for _, space := range []string{"global", "shared"} {
		b := newBench(t, Options{})
		in, out := b.words(0xfffe8081, 0x01020304, 5, 6), b.words(make([]uint32, 12)...)
		body := `
	setp.ne.u32 %p0, %r0, 0;
	@%p0 ret;
	mov.u32 %r8, room;
	ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%d0];
	st.shared.v4.u32 [room], {%r10, %r11, %r12, %r13};
	ld.SPACE.u8 %r2, [IN];
	cvt.s32.s8 %r3, %r2;
	ld.SPACE.s16 %h1, [IN+2];
	ld.SPACE.u16 %h2, [IN+2];
	cvt.s32.s16 %r4, %h1;
	cvt.u32.u16 %r5, %h2;
	ld.SPACE.v2.u16 {%h3, %h4}, [IN];
	mov.b32 %r6, {%h4, %h3};
	ld.SPACE.v2.u64 {%d6, %d7}, [IN];
	ld.SPACE.f64 %d8, [IN+8];
	mov.b64 {%r14, %r15}, %d8;
	st.global.v4.u32 [%d1], {%r2, %r3, %r4, %r5};
	st.global.u32 [%d1+16], %r6;
	st.global.u8 [%d1+20], %r2;
	st.global.b16 [%d1+22], %h2;
	st.global.v2.u64 [%d1+32], {%d7, %d6};
`
		from := "%d0"
		if space == "shared" {
			from = "%r8"
		}
		b.must(strings.NewReplacer("SPACE", space, "IN", from).Replace(body), 1, 32, uint64(in), uint64(out), 0)
		want := []uint32{0x81, 0xffffff81, 0xfffffffe, 0xfffe, 0x8081fffe, 0xfffe0081, 0, 0, 5, 6, 0xfffe8081, 0x01020304}
		if got := b.read(out, 12); !slices.Equal(got, want) {
			t.Fatalf("%s: got %#x\nwant %#x", space, got, want)
		}
	}
}

// TestPredicates runs the operations on predicates.
func TestPredicates(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(32)
	b.must(`
	and.b32 %r2, %r0, 1;
	and.b32 %r3, %r0, 2;
	setp.ne.u32 %p0, %r2, 0;
	setp.ne.u32 %p1, %r3, 0;
	and.pred %p2, %p0, %p1;
	or.pred %p3, %p0, %p1;
	xor.pred %p4, %p0, %p1;
	not.pred %p5, %p0;
	mov.pred %p6, %p1;
	mov.pred %p7, 1;
	mov.pred %p8, 0;
	mov.b32 %r4, 0;
	setp.ne.u32 %p12, %r0, %r0;
	@%p1 setp.eq.u32 %p12, %r0, %r0;
	@!%p0 and.pred %p12, %p12, %p7;
	@%p12 add.u32 %r4, %r4, 2048;
	@%p2 add.u32 %r4, %r4, 1;
	@%p3 add.u32 %r4, %r4, 2;
	@%p4 add.u32 %r4, %r4, 4;
	@%p5 add.u32 %r4, %r4, 8;
	@%p6 add.u32 %r4, %r4, 16;
	@%p7 add.u32 %r4, %r4, 32;
	@!%p8 add.u32 %r4, %r4, 64;
	vote.sync.all.pred %p9, %p7, -1;
	vote.sync.all.pred %p10, %p0, -1;
	vote.sync.any.pred %p11, %p0, -1;
	@%p9 add.u32 %r4, %r4, 128;
	@%p10 add.u32 %r4, %r4, 256;
	@%p11 add.u32 %r4, %r4, 512;
	cvta.to.global.u64 %d6, %d4;
	mov.u64 %d7, %clock64;
	mov.u64 %d8, %clock64;
	setp.lt.u64 %p0, %d7, %d8;
	@%p0 add.u32 %r4, %r4, 1024;
	st.global.u32 [%d6], %r4;
`, 1, 32, uint64(out), 0, 0)
	for i, v := range b.read(out, 32) {
		if want := []uint32{8, 2 + 4, 2 + 4 + 8 + 16 + 2048, 1 + 2 + 16 + 2048}[i%4] + 32 + 64 + 128 + 512 + 1024; v != want {
			t.Fatalf("lane %d has %d, want %d", i, v, want)
		}
	}
}

// TestModules checks that functions go with their module, and what a card says.
func TestModules(t *testing.T) {
	b := newBench(t, Options{Major: 8, Minor: 6, Multiprocessors: 7, SharedMemory: 99 << 10})
	if c := b.Card(); c.Major != 8 || c.Minor != 6 || c.Multiprocessors != 7 || c.SharedMemory != 99<<10 || c.Memory != 2<<30 {
		t.Fatalf("%+v", c)
	}
	module := strings.Replace(text("", "\tbar.warp.sync -1;\n\tfence.acq_rel.gpu;"), "sm_90", "sm_80", 1)
	m, err := b.Load([]byte(module))
	if err != nil {
		t.Fatal(err)
	}
	f, info, err := b.Function(m, "test", 0)
	if err != nil || info.Shared != 16384 || info.MaxThreads != 256 {
		t.Fatalf("%+v, %v", info, err)
	}
	l := cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 40}
	if err := errors.Join(b.launch(l), b.Unload(m)); err != nil {
		t.Fatal(err)
	}
	if err := b.launch(l); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("a function of an unloaded module: %v", err)
	}
	if err := b.Unload(m); !errors.Is(err, kernels.ErrDevice) {
		t.Fatalf("unloaded twice: %v", err)
	}
	bad := strings.Replace(module, "bar.warp.sync -1", "bra NOWHERE", 1)
	if _, err := b.Load([]byte(bad)); err == nil || !strings.Contains(err.Error(), "NOWHERE") {
		t.Fatalf("a label that is not there: %v", err)
	}
}

// TestFloatSums adds floats to words of global memory from all threads of several blocks, with subnormal f32 as 0; a block
// that writes what others add to is a race.
func TestFloatSums(t *testing.T) {
	const grid, threads = 3, 64
	const body = `
	cvt.rn.f32.u32 %r5, %r0;
	red.global.add.f32 [%d1], %r5;
	cvt.rn.f64.u32 %d6, %r0;
	red.global.add.f64 [%d1+8], %d6;
	red.global.add.f32 [%d1+16], 0f00000001;
`
	for _, o := range []Options{{}, {Seed: 5}, {Races: true, Threads: 1}} {
		b := newBench(t, o)
		words := b.words(math.Float32bits(0.5), 0, 0, 0, 3, 0)
		b.must(body, grid, threads, 0, uint64(words), 0)
		const sum = grid * threads * (threads - 1) / 2
		got := b.read(words, 6)
		if x := math.Float32frombits(got[0]); x != sum+0.5 {
			t.Errorf("%+v: f32 add to %v, want %v", o, x, sum+0.5)
		}
		if x := math.Float64frombits(uint64(got[2]) | uint64(got[3])<<32); x != sum {
			t.Errorf("%+v: f64 add to %v, want %v", o, x, float64(sum))
		}
		if got[4] != 0 {
			t.Errorf("%+v: subnormal numbers add to %#x, want 0", o, got[4])
		}
	}
	b := newBench(t, Options{Races: true, Threads: 1})
	err := b.try(`
	mov.f32 %r5, 0f3F800000;
	setp.eq.u32 %p0, %r1, 1;
	@%p0 st.global.f32 [%d1], %r5;
	@!%p0 red.global.add.f32 [%d1], %r5;
`, 2, 1, 0, uint64(b.words(0)), 0)
	if err == nil || !strings.Contains(err.Error(), "block") {
		t.Errorf("a word that one block writes and another adds to: %v, want a race", err)
	}
}

// TestIdleReds has more reds that change nothing, one after the other, than the rounds after which a launch waits for nothing.
// A lane that does not learn what it found does not wait.
func TestIdleReds(t *testing.T) {
	for _, c := range []struct{ name, red string }{
		{"global", "red.global.add.f32 [%d1], 0f80000000;"}, {"shared", "red.shared.max.u32 [%r8], 0;"},
	} {
		for _, o := range []Options{{}, {Seed: 5}} {
			b := newBench(t, o)
			words := b.words(math.Float32bits(2.5))
			b.must(fmt.Sprintf(`
	mov.u32 %%r8, room;
	setp.eq.u32 %%p1, %%r0, 0;
	@%%p1 st.shared.u32 [%%r8], 7;
	bar.sync 0;
	mov.u32 %%r5, %d;
LOOP:
	%s
	sub.u32 %%r5, %%r5, 1;
	setp.ne.u32 %%p0, %%r5, 0;
	@%%p0 bra LOOP;
	bar.sync 0;
	ld.shared.u32 %%r6, [%%r8];
	setp.ne.u32 %%p2, %%r6, 7;
	@%%p2 trap;
`, maxIdle+1000, c.red), 2, 64, 0, uint64(words), 0)
			if x := math.Float32frombits(b.read(words, 1)[0]); x != 2.5 {
				t.Errorf("%s: %v after adding nothing, want 2.5", c.name, x)
			}
		}
	}
}
