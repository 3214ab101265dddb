package emulator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
)

// bench is an emulator with a stream, for tests.
type bench struct {
	*Emulator
	t testing.TB
	s cuda.Stream
}

func newBench(t testing.TB, o Options) *bench {
	e := New(o)
	if chosen != nil {
		e.set = chosen
	}
	s, err := e.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return &bench{e, t, s}
}

// text makes a module of one kernel, "test": its parameters as declared, registers
// of all classes, 16 KiB of shared memory "room" and a body.
func text(params, body string) string {
	return `.version 7.8
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry test(` + params + `)
.maxntid 256, 1, 1
{
	.reg .pred %p<16>;
	.reg .b16 %h<16>;
	.reg .b32 %r<64>;
	.reg .b64 %d<16>;
	.shared .align 16 .b8 room[16384];
` + body + `
	ret;
}
`
}

// words allocates memory with 32-bit words in it.
func (b *bench) words(v ...uint32) cuda.Ptr {
	b.t.Helper()
	p, err := b.Alloc(int64(max(4*len(v), 4)))
	if err != nil {
		b.t.Fatal(err)
	}
	src := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(src[4*i:], x)
	}
	if err := b.CopyIn(p, src, b.s); err != nil {
		b.t.Fatal(err)
	}
	return p
}

// room allocates n words that nobody has written.
func (b *bench) room(n int) cuda.Ptr {
	b.t.Helper()
	p, err := b.Alloc(int64(4 * n))
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// read returns n words.
func (b *bench) read(p cuda.Ptr, n int) []uint32 {
	b.t.Helper()
	dst := make([]byte, 4*n)
	if err := errors.Join(b.CopyOut(dst, p, b.s), b.Wait(b.s)); err != nil {
		b.t.Fatal(err)
	}
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(dst[4*i:])
	}
	return v
}

// load loads a module and finds its kernel.
func (b *bench) load(module string, shared int) cuda.Function {
	b.t.Helper()
	m, err := b.Load([]byte(module))
	if err != nil {
		b.t.Fatal(err)
	}
	f, _, err := b.Function(m, "test", shared)
	if err != nil {
		b.t.Fatal(err)
	}
	return f
}

// try runs a body with the parameters x, y and z, of 64 bits each.
func (b *bench) try(body string, grid, threads int, x, y, z uint64) error {
	b.t.Helper()
	const head = `
	ld.param.u64 %d0, [x];
	ld.param.u64 %d1, [y];
	ld.param.u64 %d2, [z];
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %ctaid.x;
	mul.wide.u32 %d3, %r0, 4;
	add.u64 %d4, %d0, %d3;
	add.u64 %d5, %d1, %d3;
`
	f := b.load(text(".param .u64 x, .param .u64 y, .param .u64 z", head+body), 0)
	return b.launch(cuda.Launch{Function: f, Grid: [3]int{grid, 1, 1}, Block: threads, Args: []uint64{x, y, z}})
}

// launch runs a kernel to its end.
func (b *bench) launch(l cuda.Launch) error {
	if err := b.Launch(l, b.s); err != nil {
		return err
	}
	return b.Wait(b.s)
}

// must is try for bodies without faults.
func (b *bench) must(body string, grid, threads int, x, y, z uint64) {
	b.t.Helper()
	if err := b.try(body, grid, threads, x, y, z); err != nil {
		b.t.Fatal(err)
	}
}

// mustFault checks that an error is a fault at the line of the module that holds a
// mark, and says what it should.
func (b *bench) mustFault(err error, instruction, says string) *Fault {
	b.t.Helper()
	var f *Fault
	if !errors.As(err, &f) || !errors.Is(err, kernels.ErrDevice) {
		b.t.Fatalf("got %v, want a fault", err)
	}
	if f.Text != instruction || !strings.Contains(f.What, says) {
		b.t.Fatalf("got %v\nwant %q at %q", err, says, instruction)
	}
	return f
}

func TestAddWords(t *testing.T) {
	b := newBench(t, Options{})
	const n = 100
	in := make([]uint32, n)
	for i := range in {
		in[i] = uint32(i * i)
	}
	x, y := b.words(in...), b.room(n)
	b.must(`
	setp.ge.u32 %p0, %r0, 100;
	@%p0 bra OUT;
	ld.global.u32 %r2, [%d4];
	add.u32 %r2, %r2, 7;
	st.global.u32 [%d5], %r2;
OUT:`, 1, 128, uint64(x), uint64(y), 0)
	for i, v := range b.read(y, n) {
		if v != uint32(i*i+7) {
			t.Fatalf("word %d is %d", i, v)
		}
	}
	if c := b.Counts()["test"]; c.LoadGlobal != n || c.BytesLoaded != 4*n || c.StoreGlobal != n || c.Launches != 1 {
		t.Fatalf("counts %+v", c)
	}
	if err := fmt.Sprint(b.Log()); err != "[{test [1 1 1] 128 0 false}]" {
		t.Fatal(err)
	}
}

// TestBlocks counts the blocks of a multiprocessor by threads, by shared memory and up
// to the most, and refuses launches that cannot be.
func TestBlocks(t *testing.T) {
	b := newBench(t, Options{})
	f := b.load(text("", "ret;"), 100<<10)
	for _, c := range []struct{ threads, shared, want int }{
		{1024, 0, 2}, {1000, 0, 2}, {512, 0, 4}, {128, 0, 13}, {1, 0, 13}, // 16 KiB of its own
		{128, 40 << 10, 4}, {128, 40<<10 + 1, 3}, {128, 59 << 10, 3}, {128, 59<<10 + 1, 2}, {128, 97 << 10, 2}, {128, 100 << 10, 1},
	} {
		if n, err := b.Blocks(f, c.threads, c.shared); err != nil || n != c.want {
			t.Errorf("%d threads, %d bytes: %d blocks, error %v, want %d", c.threads, c.shared, n, err, c.want)
		}
	}
	for _, c := range [][2]int{{0, 0}, {1025, 0}, {128, -1}, {128, 100<<10 + 1}} {
		if _, err := b.Blocks(f, c[0], c[1]); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%v is accepted: %v", c, err)
		}
	}
	if _, err := b.Blocks(999, 128, 0); !errors.Is(err, kernels.ErrDevice) {
		t.Error(err)
	}
}
