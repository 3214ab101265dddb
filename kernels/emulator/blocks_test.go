package emulator

import (
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/cuda"
)

// chain is a kernel in which each block waits for the one before it: word i of y is
// the sum of x up to i, flags z say what is there.
const chain = `
	setp.ne.u32 %p0, %r0, 0;
	@%p0 ret;
	mul.wide.u32 %d6, %r1, 4;
	add.u64 %d7, %d0, %d6;
	add.u64 %d8, %d1, %d6;
	add.u64 %d9, %d2, %d6;
	ld.global.u32 %r2, [%d7];
	mov.b32 %r3, 0;
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra FIRST;
SPIN:
	ld.acquire.gpu.global.u32 %r4, [%d9+-4];
	setp.eq.u32 %p2, %r4, 0;
	@%p2 bra SPIN;
	ld.global.u32 %r3, [%d8+-4];
FIRST:
	add.u32 %r2, %r2, %r3;
	st.global.u32 [%d8], %r2;
	st.release.gpu.global.u32 [%d9], 1;
`

// ramp returns 1, 2, 3 and so on.
func ramp(n int) []uint32 {
	v := make([]uint32, n)
	for i := range v {
		v[i] = uint32(i + 1)
	}
	return v
}

func TestBlocksWait(t *testing.T) {
	for _, o := range []Options{{}, {Resident: 1}, {Resident: 3}, {Seed: 5}, {Seed: 6, Resident: 4, Races: true}, {Races: true}} {
		b := newBench(t, o)
		y := b.room(40)
		b.must(chain, 40, 64, uint64(b.words(ramp(40)...)), uint64(y), uint64(b.words(make([]uint32, 40)...)))
		for i, v := range b.read(y, 40) {
			if v != uint32((i+1)*(i+2)/2) {
				t.Fatalf("%+v: block %d has %d", o, i, v)
			}
		}
	}
	// Waiting for a later block works where it has started too.
	back := strings.NewReplacer("%r1, 0;\n\t@%p1", "%r1, 3;\n\t@%p1", "+-4", "+4").Replace(chain)
	for _, resident := range []int{0, 3} {
		b := newBench(t, Options{Resident: resident})
		err := b.try(back, 4, 32, uint64(b.words(ramp(4)...)), uint64(b.room(4)), uint64(b.words(make([]uint32, 4)...)))
		if resident == 0 && err != nil {
			t.Fatal(err)
		}
		if resident == 3 {
			b.mustFault(err, "ld.acquire.gpu.global.u32 %r4, [%d9+4];", "endless wait? in 4096 rounds no warp of 3 blocks")
		}
	}
}

// lastBlock is a kernel in which the block that comes last adds up what the others
// wrote.
const lastBlock = `
	setp.ne.u32 %p0, %r0, 0;
	@%p0 ret;
	mul.wide.u32 %d6, %r1, 4;
	add.u64 %d8, %d1, %d6;
	st.global.u32 [%d8], %r1;
	membar.gl;
	atom.global.add.u32 %r2, [%d2], 1;
	mov.u32 %r3, %nctaid.x;
	sub.u32 %r4, %r3, 1;
	setp.ne.u32 %p1, %r2, %r4;
	@%p1 ret;
	membar.gl;
	mov.b32 %r5, 0;
	mov.b64 %d6, %d1;
LOOP:
	ld.global.u32 %r6, [%d6];
	add.u32 %r5, %r5, %r6;
	add.u64 %d6, %d6, 4;
	sub.u32 %r3, %r3, 1;
	setp.ne.u32 %p2, %r3, 0;
	@%p2 bra LOOP;
	st.global.u32 [%d0], %r5;
`

func TestLastBlock(t *testing.T) {
	for seed := range uint64(6) {
		b := newBench(t, Options{Seed: seed, Races: seed%2 == 0})
		x := b.room(1)
		b.must(lastBlock, 100, 32, uint64(x), uint64(b.room(100)), uint64(b.words(0)))
		if v := b.read(x, 1)[0]; v != 4950 {
			t.Fatalf("seed %d: %d", seed, v)
		}
	}
}

// TestRacesBetweenBlocks plants accesses that nothing orders.
func TestRacesBetweenBlocks(t *testing.T) {
	for _, c := range []struct{ name, body, at, says string }{
		{"both write", "\n\tst.global.u32 [%d5], %r1;\n", "st.global.u32 [%d5], %r1;", "written by block 1 and were written by block 0"},
		{"write and read", `
	setp.eq.u32 %p0, %r1, 0;
	@!%p0 bra READ;
	st.global.u32 [%d4], %r1;
	ret;
READ:
	ld.global.u32 %r2, [%d4];`, "ld.global.u32 %r2, [%d4];", "read by block 1 and were written by block 0"},
		{"read and write", `
	setp.eq.u32 %p0, %r1, 2;
	@%p0 bra WRITE;
	ld.global.u32 %r2, [%d4];
	ret;
WRITE:
	st.global.u32 [%d4], %r1;`, "st.global.u32 [%d4], %r1;", "written by block 2 and were read by others"},
		{"flag without acquire", strings.Replace(chain, "ld.acquire.gpu", "ld.volatile", 1), "ld.global.u32 %r3, [%d8+-4];", "read by block 1 and were written by block 0"},
		{"write behind a release", strings.Replace(chain, "[%d9], 1;", "[%d9], 1;\n\tst.global.u32 [%d8], %r2;", 1), "ld.global.u32 %r3, [%d8+-4];", "read by block 1 and were written by block 0"},
		{"counter without fence", strings.Replace(lastBlock, "membar.gl;", "", 1), "ld.global.u32 %r6, [%d6];", "were written by block 0"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			for _, races := range []bool{false, true} {
				b := newBench(t, Options{Races: races, Threads: 1})
				err := b.try(c.body, 4, 32, uint64(b.words(ramp(32)...)), uint64(b.room(32)), uint64(b.words(make([]uint32, 4)...)))
				if !races && err != nil {
					t.Fatal(err)
				}
				if races {
					b.mustFault(err, c.at, c.says)
				}
			}
		})
	}
	// Neighbours in a word, and different words, are no race.
	b := newBench(t, Options{Races: true})
	b.must(`
	mad.wide.u32 %d6, %r1, 2, %d1;
	mov.b32 {%h1, %h2}, %r1;
	setp.eq.u32 %p0, %r0, 0;
	@%p0 st.global.u16 [%d6], %h1;
`, 8, 32, 0, uint64(b.room(32)), 0)
}

// TestThreads runs a large grid on several goroutines, forwards and in random order.
func TestThreads(t *testing.T) {
	const grid, threads = 300, 256
	var want Counts
	for i, o := range []Options{{Threads: 1}, {Threads: 4}, {Threads: 4, Seed: 3}} {
		b := newBench(t, o)
		x, y := b.words(ramp(grid*threads)...), b.room(grid*threads)
		b.must(`
	mad.lo.u32 %r2, %r1, 256, %r0;
	mul.wide.u32 %d6, %r2, 4;
	add.u64 %d7, %d0, %d6;
	add.u64 %d8, %d1, %d6;
	ld.global.u32 %r3, [%d7];
	mov.u32 %r4, room;
	mad.lo.u32 %r5, %r0, 4, %r4;
	st.shared.u32 [%r5], %r3;
	bar.sync 0;
	xor.b32 %r6, %r0, 255;
	mad.lo.u32 %r5, %r6, 4, %r4;
	ld.shared.u32 %r3, [%r5];
	st.global.u32 [%d8], %r3;
`, grid, threads, uint64(x), uint64(y), 0)
		for i, v := range b.read(y, grid*threads) {
			if v != uint32(i^255+1) {
				t.Fatalf("%+v: word %d is %d", o, i, v)
			}
		}
		c := b.Counts()["test"]
		if i == 0 {
			want = c
		}
		if c != want || c.BytesStored != 4*grid*threads {
			t.Fatalf("%+v: counts %+v", o, c)
		}
	}
	// Of several blocks with a fault the first is named.
	b := newBench(t, Options{Threads: 1})
	f := b.mustFault(b.try(`
	setp.gt.u32 %p0, %r1, 5;
	@%p0 trap;
`, 64, 32, 0, 0, 0), "@%p0 trap;", "trap")
	if f.Block != [3]int{6, 0, 0} {
		t.Fatalf("block %v", f.Block)
	}
}

// TestFirstFault wants the fault of the lowest block, whichever came first.
func TestFirstFault(t *testing.T) {
	run := &launch{}
	for _, i := range []int{5, 3, 4} {
		run.blame(&block{index: i}, &Fault{Block: [3]int{i, 0, 0}})
	}
	if run.fault.Block[0] != 3 || !run.stop.Load() {
		t.Fatalf("%v", run.fault)
	}
}

// TestFreshShared wants shared memory of a block to start as nobody's, in a place
// where another block has run.
func TestFreshShared(t *testing.T) {
	b := newBench(t, Options{Threads: 1})
	f := b.mustFault(b.try(`
	mov.u32 %r8, room;
	mad.lo.u32 %r9, %r0, 4, %r8;
	setp.ne.u32 %p0, %r1, 0;
	@%p0 bra READ;
	st.shared.u32 [%r9], %r0;
READ:
	ld.shared.u32 %r2, [%r9];
`, 2, 32, 0, 0, 0), "ld.shared.u32 %r2, [%r9];", "not initialised")
	if f.Block != [3]int{1, 0, 0} {
		t.Fatalf("block %v", f.Block)
	}
}

// TestGrid checks the numbers of blocks on three axes and the dynamic part of shared
// memory, which comes behind the variables.
func TestGrid(t *testing.T) {
	b := newBench(t, Options{})
	out := b.room(2 * 3 * 4)
	f := b.load(text(".param .u64 x", `
	ld.param.u64 %d0, [x];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ctaid.y;
	mov.u32 %r3, %ctaid.z;
	mov.u32 %r4, %nctaid.x;
	mov.u32 %r5, %nctaid.y;
	mad.lo.u32 %r6, %r3, %r5, %r2;
	mad.lo.u32 %r6, %r6, %r4, %r1;
	mad.wide.u32 %d1, %r6, 4, %d0;
	mov.u32 %r7, dynamic;
	st.shared.u32 [%r7+60], %r6;
	ld.shared.u32 %r8, [%r7+60];
	add.u32 %r8, %r8, %r7;
	st.global.u32 [%d1], %r8;`), 64)
	l := cuda.Launch{Function: f, Grid: [3]int{2, 3, 4}, Block: 1, Shared: 64, Args: []uint64{uint64(out)}}
	if err := b.launch(l); err != nil {
		t.Fatal(err)
	}
	for i, v := range b.read(out, 24) {
		if v != uint32(i+16384) {
			t.Fatalf("block %d wrote %d", i, v)
		}
	}
	l.Shared = 60
	b.mustFault(b.launch(l), "st.shared.u32 [%r7+60], %r6;", "out of bounds of 16444 bytes")
}
