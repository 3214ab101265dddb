package emulator

import (
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
)

// TestFaults plants one mistake each and looks for it at its instruction.
func TestFaults(t *testing.T) {
	const (
		address = "\n\tmov.u32 %r8, room;\n\tmad.lo.u32 %r9, %r0, 4, %r8;\n"
		wipe    = "\tst.shared.u32 [%r9], %r0;\n\tbar.sync 0;\n"
	)
	for _, c := range []struct {
		name, body string
		threads    int
		at, says   string
		thread     int
	}{
		{"tail", `
	setp.gt.u32 %p0, %r0, 64;
	@%p0 ret;
	ld.global.u32 %r2, [%d4];
	st.global.u32 [%d5], %r2;`, 128, "ld.global.u32 %r2, [%d4];", "out of bounds of 256 bytes", 64},
		{"before", `
	ld.global.u32 %r2, [%d4+-4];`, 32, "ld.global.u32 %r2, [%d4+-4];", "out of bounds", 0},
		{"store", `
	st.global.u32 [%d5+4], %r0;`, 64, "st.global.u32 [%d5+4], %r0;", "out of bounds of 256 bytes", 63},
		{"half address", `
	mov.b64 {%r2, %r3}, %d4;
	mov.b32 %r4, 0;
	mov.b64 %d6, {%r2, %r4};
	ld.global.u32 %r2, [%d6];`, 32, "ld.global.u32 %r2, [%d6];", "no such memory", 0},
		{"uninitialised", `
	ld.global.u32 %r2, [%d5];`, 32, "ld.global.u32 %r2, [%d5];", "not initialised", 0},
		{"partly initialised", `
	setp.ne.u32 %p0, %r0, 7;
	@%p0 st.global.u32 [%d5], %r0;
	bar.sync 0;
	ld.global.u32 %r2, [%d5];`, 32, "ld.global.u32 %r2, [%d5];", "not initialised", 7},
		{"one byte short", `
	setp.ne.u32 %p0, %r0, 0;
	@%p0 ret;
	st.global.u16 [%d1], 1;
	st.global.u8 [%d1+2], 1;
	ld.global.u32 %r2, [%d1];`, 32, "ld.global.u32 %r2, [%d1];", "not initialised", 0},
		{"misaligned", `
	ld.global.v2.u32 {%r2, %r3}, [%d4];`, 32, "ld.global.v2.u32 {%r2, %r3}, [%d4];", "misaligned", 1},
		{"misaligned vector", address + `
	mad.lo.u32 %r9, %r0, 24, %r8;
	st.shared.v4.u32 [%r9], {%r0, %r0, %r0, %r0};`, 32, "st.shared.v4.u32 [%r9], {%r0, %r0, %r0, %r0};", "misaligned", 1},
		{"misaligned all", address + `
	add.u32 %r9, %r9, 2;
	st.shared.u32 [%r9], %r0;`, 32, "st.shared.u32 [%r9], %r0;", "misaligned", 0},
		{"misaligned apart", `
	ld.global.u32 %r3, [%d4];
	mul.wide.u32 %d6, %r0, 6;
	add.u64 %d6, %d0, %d6;
	ld.global.u32 %r2, [%d6];`, 32, "ld.global.u32 %r2, [%d6];", "misaligned", 1},
		{"freed", `
	ld.global.u32 %r2, [%d2];`, 32, "ld.global.u32 %r2, [%d2];", "freed memory", 0},

		{"shared bounds", address + `
	st.shared.u32 [%r9+16380], %r0;`, 32, "st.shared.u32 [%r9+16380], %r0;", "out of bounds of 16384", 1},
		{"shared below", `
	mov.b32 %r8, 0;
	ld.shared.u32 %r2, [%r8+-4];`, 32, "ld.shared.u32 %r2, [%r8+-4];", "out of bounds", 0},
		{"shared uninitialised", address + `
	ld.shared.u32 %r2, [%r9];`, 32, "ld.shared.u32 %r2, [%r9];", "not initialised", 0},
		{"missing barrier", address + wipe + `
	st.shared.u32 [%r9], %r0;
	xor.b32 %r10, %r0, 32;
	mad.lo.u32 %r10, %r10, 4, %r8;
	ld.shared.u32 %r2, [%r10];`, 64, "st.shared.u32 [%r9], %r0;", "race: bytes at 128 of shared memory are written by warp 1 and were read by warp 0", 32},
		{"write after read", address + wipe + `
	ld.shared.u32 %r2, [%r8+4];
	st.shared.u32 [%r9], %r0;`, 64, "ld.shared.u32 %r2, [%r8+4];", "race", 32},
		{"both write", address + `
	st.shared.u32 [%r8], %r0;`, 64, "st.shared.u32 [%r8], %r0;", "race", 32},
		{"read by all and written", address + wipe + `
	ld.shared.u32 %r2, [%r8];
	setp.ne.u32 %p0, %r0, 95;
	@%p0 bra SKIP;
	st.shared.u32 [%r8], %r0;
SKIP:`, 96, "st.shared.u32 [%r8], %r0;", "race", 95},
		{"atomic and plain", address + wipe + `
	setp.lt.u32 %p0, %r0, 64;
	@!%p0 bra READ;
	red.shared.add.u32 [%r8], 1;
	bra END;
READ:
	ld.shared.u32 %r2, [%r8];
END:`, 96, "ld.shared.u32 %r2, [%r8];", "race", 64},
		{"barrier mismatch", `
	setp.lt.u32 %p0, %r0, 32;
	@%p0 ret;
	bar.sync 0;`, 64, "bar.sync 0;", "barrier mismatch: warp 1 waits here, warp 0 has ended", 32},
		{"two barriers", `
	setp.lt.u32 %p0, %r0, 32;
	@%p0 bra OTHER;
	bar.sync 0;
	ret;
OTHER:
	bar.sync 0;`, 64, "bar.sync 0;", "barrier mismatch: warp 0 waits here, warp 1 at line", 0},
		{"divergent barrier", `
	setp.lt.u32 %p0, %r0, 5;
	@%p0 bra END;
	bar.sync 0;
END:`, 32, "bar.sync 0;", "divergent", 0},
		{"shuffle without lanes", `
	setp.lt.u32 %p0, %r0, 5;
	@%p0 bra END;
	shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;
END:`, 32, "shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;", "lanes ffffffe0 run this", 0},
		{"shuffle from a lane that left", `
	setp.ge.u32 %p0, %r0, 20;
	@%p0 ret;
	shfl.sync.bfly.b32 %r2, %r0, 16, 31, -1;`, 32, "shfl.sync.bfly.b32 %r2, %r0, 16, 31, -1;", "reads lane 20", 4},
		{"matrix without lanes", address + `
	ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r8];`, 48, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r8];", "not initialised", 0},
		{"uniform branch", `
	setp.lt.u32 %p0, %r0, 5;
	@%p0 bra.uni END;
	add.u32 %r0, %r0, 1;
END:`, 32, "@%p0 bra.uni END;", "some lanes only", 5},
		{"trap", `
	setp.eq.u32 %p0, %r0, 9;
	@%p0 trap;`, 32, "@%p0 trap;", "trap", 9},
		{"endless loop", `
LOOP:
	bra LOOP;`, 32, "bra LOOP;", "endless loop", 0},
		{"waits for nobody", address + wipe + `
LOOP:
	ld.volatile.shared.u32 %r2, [%r8];
	setp.eq.u32 %p0, %r2, 0;
	@%p0 bra LOOP;`, 32, "ld.volatile.shared.u32 %r2, [%r8];", "endless wait", 0},

		{"copy not waited for", address + `
	cp.async.ca.shared.global [%r9], [%d4], 4;
	cp.async.commit_group;
	ld.shared.u32 %r2, [%r9];`, 32, "ld.shared.u32 %r2, [%r9];", "not waited for", 0},
		{"store over a copy", address + `
	cp.async.ca.shared.global [%r9], [%d4], 4;
	bar.sync 0;
	st.shared.u32 [%r9], %r0;`, 32, "st.shared.u32 [%r9], %r0;", "not waited for", 0},
		{"wrong group", address + `
	cp.async.ca.shared.global [%r9], [%d4], 4;
	cp.async.commit_group;
	cp.async.ca.shared.global [%r9+256], [%d4], 4;
	cp.async.commit_group;
	cp.async.wait_group 1;
	ld.shared.u32 %r2, [%r9];
	ld.shared.u32 %r3, [%r9+256];`, 32, "ld.shared.u32 %r3, [%r9+256];", "not waited for", 0},
		{"copy without commit", address + `
	cp.async.ca.shared.global [%r9], [%d4], 4;
	cp.async.wait_group 0;
	ld.shared.u32 %r2, [%r9];`, 32, "ld.shared.u32 %r2, [%r9];", "not waited for", 0},
		{"copy without barrier", address + `
	cp.async.ca.shared.global [%r9], [%d4], 4;
	cp.async.wait_all;
	ld.shared.u32 %r2, [%r8];`, 64, "ld.shared.u32 %r2, [%r8];", "race", 32},
		{"copy over what is read", address + wipe + `
	ld.shared.u32 %r2, [%r8];
	setp.lt.u32 %p0, %r0, 32;
	@%p0 bra END;
	cp.async.ca.shared.global [%r8], [%d0], 4;
END:`, 64, "cp.async.ca.shared.global [%r8], [%d0], 4;", "race", 32},
		{"copy out of bounds", address + `
	mul.wide.u32 %d6, %r0, 16;
	add.u64 %d6, %d0, %d6;
	mad.lo.u32 %r9, %r0, 16, %r8;
	cp.async.cg.shared.global [%r9], [%d6], 16;`, 32, "cp.async.cg.shared.global [%r9], [%d6], 16;", "out of bounds", 16},
		{"copy misaligned", address + `
	cp.async.cg.shared.global [%r8], [%d0+8], 16;`, 32, "cp.async.cg.shared.global [%r8], [%d0+8], 16;", "misaligned", 0},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			b := newBench(t, Options{})
			x := b.words(make([]uint32, 64)...)
			y := b.room(64)
			z := b.room(8)
			if err := b.Free(z); err != nil {
				t.Fatal(err)
			}
			err := b.try(c.body, 1, c.threads, uint64(x), uint64(y), uint64(z))
			f := b.mustFault(err, c.at, c.says)
			if f.Thread != c.thread || f.Kernel != "test" || f.Line < 20 {
				t.Fatalf("%v; want thread %d", f, c.thread)
			}
		})
	}
}

// TestNoFaults runs what comes close to a mistake and is none.
func TestNoFaults(t *testing.T) {
	const address = "\n\tmov.u32 %r8, room;\n\tmad.lo.u32 %r9, %r0, 4, %r8;\n"
	for _, c := range []struct {
		name, body string
		threads    int
	}{
		{"halves of a word", `
	mov.u32 %r8, room;
	shr.u32 %r2, %r0, 5;
	mad.lo.u32 %r8, %r2, 2, %r8;
	and.b32 %r3, %r0, 31;
	setp.ne.u32 %p0, %r3, 0;
	mov.b32 {%h1, %h2}, %r2;
	@%p0 bra END;
	st.shared.b16 [%r8], %h1;
END:`, 128},
		{"own words", address + `
	st.shared.u32 [%r9], %r0;
	ld.shared.u32 %r2, [%r9];
	st.shared.u32 [%r9], %r2;`, 128},
		{"atomics", address + `
	setp.eq.u32 %p0, %r0, 0;
	@%p0 st.shared.u32 [%r8], 0;
	bar.sync 0;
	red.shared.add.u32 [%r8], 1;
	bar.sync 0;
	ld.shared.u32 %r2, [%r8];
	setp.ne.u32 %p1, %r2, 128;
	@%p1 trap;`, 128},
		{"partial warp", address + `
	shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;
	st.shared.u32 [%r9], %r2;
	bar.sync 0;
	ld.shared.u32 %r2, [%r8];`, 48},
		{"copy and wait", address + `
	cp.async.ca.shared.global [%r9], [%d4], 4;
	cp.async.commit_group;
	cp.async.wait_group 0;
	bar.sync 0;
	ld.shared.u32 %r2, [%r8+4];
	ld.global.u32 %r3, [%d0+4];
	setp.ne.u32 %p0, %r2, %r3;
	@%p0 trap;`, 64},
		{"copy of nothing", address + `
	mov.b32 %r10, 0;
	mov.b64 %d6, 0;
	mad.lo.u32 %r9, %r0, 16, %r8;
	cp.async.cg.shared.global [%r9], [%d6], 16, %r10;
	cp.async.wait_all;
	ld.shared.u32 %r2, [%r9+12];
	setp.ne.u32 %p0, %r2, 0;
	@%p0 trap;`, 64},
		{"warps wait", address + `
	setp.eq.u32 %p0, %r0, 0;
	@%p0 st.shared.u32 [%r8], 0;
	bar.sync 0;
	setp.lt.u32 %p1, %r0, 32;
	@!%p1 bra TELL;
LOOP:
	ld.volatile.shared.u32 %r2, [%r8];
	setp.eq.u32 %p0, %r2, 0;
	@%p0 bra LOOP;
	bra END;
TELL:
	red.shared.add.u32 [%r8], 1;
END:`, 64},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			for seed := range uint64(3) {
				b := newBench(t, Options{Seed: seed})
				v := make([]uint32, 64)
				for i := range v {
					v[i] = uint32(i + 5)
				}
				b.must(c.body, 3, c.threads, uint64(b.words(v...)), 0, 0)
			}
		})
	}
}

// TestLaunchRefused checks what a launch may ask for.
func TestLaunchRefused(t *testing.T) {
	b := newBench(t, Options{})
	f := b.load(text(".param .u32 n", ""), 1024)
	good := cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 256, Shared: 1024, Args: []uint64{1}}
	if err := b.launch(good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(l *cuda.Launch)
		says   string
	}{
		{func(l *cuda.Launch) { l.Args = nil }, "0 arguments, the kernel has 1"},
		{func(l *cuda.Launch) { l.Block = 257 }, ".maxntid says 256"},
		{func(l *cuda.Launch) { l.Block = 0 }, "block of 0 threads"},
		{func(l *cuda.Launch) { l.Shared = 1025 }, "Function allowed 1024"},
		{func(l *cuda.Launch) { l.Grid[1] = 0 }, "a grid of [1 0 1]"},
		{func(l *cuda.Launch) { l.Grid[2] = 65536 }, "a grid of [1 1 65536]"},
		{func(l *cuda.Launch) { l.Function = 999 }, "does not exist"},
	} {
		l := good
		c.change(&l)
		if err := b.launch(l); !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
	m, err := b.Load([]byte(text("", "")))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Function(m, "test", 227<<10-16384+1); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("too much shared memory: %v", err)
	}
	if _, _, err := b.Function(m, "none", 0); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("no such kernel: %v", err)
	}
	if _, err := b.Load([]byte("nonsense")); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("nonsense: %v", err)
	}
	old := New(Options{Major: 8})
	if _, err := old.Load([]byte(text("", ""))); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("sm_90 on 8.0: %v", err)
	}
}
