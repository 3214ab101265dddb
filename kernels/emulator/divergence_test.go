package emulator

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestNestedIfs parts lanes at two branches inside each other; after them all lanes
// vote together, so they must have met.
func TestNestedIfs(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(64)
	b.must(`
	mov.b32 %r2, 0;
	and.b32 %r3, %r0, 1;
	and.b32 %r4, %r0, 2;
	setp.eq.u32 %p0, %r3, 0;
	setp.eq.u32 %p1, %r4, 0;
	@%p0 bra EVEN;
	add.u32 %r2, %r2, 100;
	@%p1 bra INNER;
	add.u32 %r2, %r2, 10;
	bra INNEREND;
INNER:
	add.u32 %r2, %r2, 20;
INNEREND:
	add.u32 %r2, %r2, 1;
	bra END;
EVEN:
	add.u32 %r2, %r2, 200;
END:
	vote.sync.ballot.b32 %r5, %p0, -1;
	add.u32 %r2, %r2, %r5;
	st.global.u32 [%d4], %r2;
`, 1, 64, uint64(out), 0, 0)
	for i, v := range b.read(out, 64) {
		if want := 0x55555555 + []uint32{200, 121, 200, 111}[i%4]; v != want {
			t.Fatalf("thread %d has %d, want %d", i, v-0x55555555, want-0x55555555)
		}
	}
}

// TestLoops gives lanes different trip counts, and loops in loops.
func TestLoops(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(32)
	b.must(`
	mov.b32 %r2, 0;
	mov.b32 %r3, 0;
OUTER:
	setp.ge.u32 %p0, %r3, %r0;
	@%p0 bra DONE;
	mov.b32 %r4, 0;
INNER:
	add.u32 %r2, %r2, 1;
	add.u32 %r4, %r4, 1;
	setp.le.u32 %p1, %r4, %r3;
	@%p1 bra INNER;
	add.u32 %r3, %r3, 1;
	bra OUTER;
DONE:
	redux.sync.add.u32 %r6, %r2, -1;
	bar.sync 0;
	shl.b32 %r6, %r6, 10;
	add.u32 %r2, %r2, %r6;
	st.global.u32 [%d4], %r2;
`, 1, 32, uint64(out), 0, 0)
	total := uint32(0)
	for i := range uint32(32) {
		total += i * (i + 1) / 2
	}
	for i, v := range b.read(out, 32) {
		n := uint32(i)
		if want := n*(n+1)/2 + total<<10; v != want {
			t.Fatalf("lane %d counted %d, want %d", i, v, want)
		}
	}
}

// TestEarlyExit lets lanes leave by a guard and by a branch; the others still meet at
// the barrier.
func TestEarlyExit(t *testing.T) {
	b := newBench(t, Options{})
	out := b.words(make([]uint32, 64)...)
	b.must(`
	setp.lt.u32 %p0, %r0, 3;
	setp.gt.u32 %p1, %r0, 60;
	@%p0 exit;
	@!%p1 bra STAY;
	st.global.u32 [%d4], 5;
	ret;
STAY:
	bar.sync 0;
	st.global.u32 [%d4], 6;
`, 1, 64, uint64(out), 0, 0)
	want := slices.Concat(slices.Repeat([]uint32{0}, 3), slices.Repeat([]uint32{6}, 58), slices.Repeat([]uint32{5}, 3))
	if got := b.read(out, 64); !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
}

// TestRandomFlow runs random control flow on lanes that part at random, and lane by
// lane in Go.
func TestRandomFlow(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 5))
		var body strings.Builder
		labels := 0
		// Each statement changes %r2; the bits of %r3 say which way to go.
		type state struct{ x, way uint32 }
		var build func(depth int) func(*state)
		build = func(depth int) func(*state) {
			var steps []func(*state)
			for range 1 + random.IntN(3) {
				k := random.Uint32N(1000)
				fmt.Fprintf(&body, "\tmad.lo.u32 %%r2, %%r2, 5, %d;\n", k)
				steps = append(steps, func(s *state) { s.x = s.x*5 + k })
				if depth == 0 {
					continue
				}
				bit, l := random.Uint32N(20), labels
				labels++
				fmt.Fprintf(&body, "\tbfe.u32 %%r4, %%r3, %d, 2;\n\tsetp.eq.u32 %%p0, %%r4, 0;\n", bit)
				if random.IntN(2) == 0 {
					fmt.Fprintf(&body, "\t@%%p0 bra ELSE%d;\n", l)
					then := build(depth - 1)
					fmt.Fprintf(&body, "\tbra END%d;\nELSE%d:\n", l, l)
					other := build(depth - 1)
					fmt.Fprintf(&body, "END%d:\n", l)
					steps = append(steps, func(s *state) {
						if s.way>>bit&3 != 0 {
							then(s)
						} else {
							other(s)
						}
					})
					continue
				}
				counter := 20 + depth
				fmt.Fprintf(&body, "\tmov.b32 %%r%d, %%r4;\nLOOP%d:\n\tsetp.eq.u32 %%p0, %%r%d, 0;\n\t@%%p0 bra END%d;\n", counter, l, counter, l)
				inside := build(depth - 1)
				fmt.Fprintf(&body, "\tsub.u32 %%r%d, %%r%d, 1;\n\tbra LOOP%d;\nEND%d:\n", counter, counter, l, l)
				steps = append(steps, func(s *state) {
					for n := s.way >> bit & 3; n > 0; n-- {
						inside(s)
					}
				})
			}
			return func(s *state) {
				for _, f := range steps {
					f(s)
				}
			}
		}
		run := build(3)
		b := newBench(t, Options{})
		out := b.room(32)
		ways := make([]uint32, 32)
		for i := range ways {
			ways[i] = random.Uint32()
		}
		in := b.words(ways...)
		b.must("\n\tmov.b32 %r2, %r0;\n\tld.global.u32 %r3, [%d5];\n\tsetp.eq.u32 %p0, %r2, 0;\n"+body.String()+
			"\tvote.sync.any.pred %p3, %p0, -1;\n\tst.global.u32 [%d4], %r2;\n", 1, 32, uint64(out), uint64(in), 0)
		for i, v := range b.read(out, 32) {
			s := state{uint32(i), ways[i]}
			run(&s)
			if v != s.x {
				t.Fatalf("seed %d: lane %d has %d, want %d", seed, i, v, s.x)
			}
		}
	}
}

func TestShuffles(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(7 * 32)
	b.must(`
	mul.lo.u32 %r2, %r0, %r0;
	shfl.sync.bfly.b32 %r10, %r2, 3, 31, -1;
	shfl.sync.idx.b32 %r11, %r2, 5, 31, -1;
	shfl.sync.down.b32 %r12, %r2, 4, 31, -1;
	shfl.sync.up.b32 %r13, %r2, 4, 0, -1;
	shfl.sync.down.b32 %r14, %r2, 2, 6175, -1;
	shfl.sync.idx.b32 %r15, %r2, %r0, 7199, -1;
	setp.gt.u32 %p0, %r2, 100;
	vote.sync.ballot.b32 %r16, %p0, -1;
	st.global.u32 [%d4], %r10;
	st.global.u32 [%d4+128], %r11;
	st.global.u32 [%d4+256], %r12;
	st.global.u32 [%d4+384], %r13;
	st.global.u32 [%d4+512], %r14;
	st.global.u32 [%d4+640], %r15;
	st.global.u32 [%d4+768], %r16;
`, 1, 32, uint64(out), 0, 0)
	got := b.read(out, 7*32)
	for i := range 32 {
		down, up, pair := i+4, i-4, i+2
		if down > 31 {
			down = i
		}
		if up < 0 {
			up = i
		}
		if pair > i|7 { // segments of 8: 0x181f
			pair = i
		}
		for mode, from := range []int{i ^ 3, 5, down, up, pair, i&28 | i&3} {
			if v := got[32*mode+i]; v != uint32(from*from) {
				t.Errorf("mode %d: lane %d has %d, want that of lane %d", mode, i, v, from)
			}
		}
		if v := got[6*32+i]; bits.TrailingZeros32(v) != 11 || v != 0xfffff800 {
			t.Errorf("ballot is %#x", v)
		}
	}
}

func TestReductions(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(5)
	b.must(`
	sub.s32 %r2, %r0, 10;
	redux.sync.add.s32 %r10, %r2, -1;
	redux.sync.min.s32 %r11, %r2, -1;
	redux.sync.max.u32 %r12, %r2, -1;
	redux.sync.and.b32 %r13, %r0, -1;
	redux.sync.or.b32 %r14, %r0, -1;
	setp.ne.u32 %p0, %r0, 0;
	@%p0 ret;
	st.global.u32 [%d0], %r10;
	st.global.u32 [%d0+4], %r11;
	st.global.u32 [%d0+8], %r12;
	st.global.u32 [%d0+12], %r13;
	st.global.u32 [%d0+16], %r14;
`, 1, 32, uint64(out), 0, 0)
	if got, want := b.read(out, 5), []uint32{496 - 320, 0xfffffff6, 0xffffffff, 0, 31}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}
