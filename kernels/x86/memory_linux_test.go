//go:build amd64 && !noasm

package x86

import (
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
	"golang.org/x/sys/unix"
)

// denied is set in the child process of TestDeniedWrites.
const denied = "PCE_TEST_DENY_WRITE_EXECUTE"

// TestDeniedWrites runs code in a process whose pages cannot become executable once they were writable.
func TestDeniedWrites(t *testing.T) {
	needCode(t)
	if os.Getenv(denied) != "" {
		runtime.LockOSThread()
		const setMDWE, refuseGain = 65, 1
		if err := unix.Prctl(setMDWE, refuseGain, 0, 0, 0); err != nil {
			t.Skipf("SKIPPED: this kernel has no PR_SET_MDWE (%v); Linux 6.3 has it", err)
		}
		mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		if unix.Mprotect(mem, unix.PROT_READ|unix.PROT_EXEC) == nil {
			t.Fatal("the kernel still lets written pages become executable")
		}
		same(t, rand.New(rand.NewPCG(1, 1)), sum(t, simt.F64, simt.Columns, 2), 9, 0, 9)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeniedWrites$", "-test.v")
	cmd.Env = append(os.Environ(), denied+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if i := strings.Index(string(out), "SKIPPED"); i >= 0 {
		t.Skip(strings.TrimSpace(strings.SplitN(string(out[i:]), "\n", 2)[0]))
	}
}

// TestSharedExecutable runs code from memory that is mapped twice.
func TestSharedExecutable(t *testing.T) {
	needCode(t)
	e, err := sharedExecutable([]byte{0xC3}) // a return
	if err != nil {
		t.Fatal(err)
	}
	e.call([]uint64{0})
	e.free()
}

// TestCodeFault reads memory that is not there: an error, and the process lives.
func TestCodeFault(t *testing.T) {
	needCode(t)
	p, err := Compile(sum(t, simt.F32, simt.Columns, 1), 1, Path())
	if err != nil {
		t.Fatal(err)
	}
	s, c := p.newState(), p.parts[0]
	x := make([]float32, p.lanes)
	c.columns[0].col = 1 << 40 // far away
	if err := p.call(c, s, 0, 0, p.lanes, []any{x}, []any{x}); err == nil || !strings.Contains(err.Error(), "fault in native code") {
		t.Errorf("%v, want ErrFault", err)
	}
	c.columns[0].col = 0
	if err := p.call(c, s, 0, 0, p.lanes, []any{x}, []any{x}); err != nil || x[0] != 1 {
		t.Errorf("after a fault: %v, %v", x, err)
	}
}

// TestPlaceStays asks where a small slice is before and after the stack of its function grows.
func TestPlaceStays(t *testing.T) {
	needCode(t)
	q := simt.Param{Name: "x", Type: simt.F32, Layout: simt.Columns, Width: 1}
	places := make(chan [2]uint64)
	go func() {
		var x [4]float32
		before := place(&q, x[:], 0, 3)
		if err := deep(1000, func() error { return nil }); err != nil {
			t.Error(err)
		}
		places <- [2]uint64{before, place(&q, x[:], 0, 3)}
	}()
	if p := <-places; p[0] != p[1] {
		t.Errorf("the slice moved by %d bytes while code could have had its address", p[1]-p[0])
	}
}

// TestRowsEnd runs code on rows and columns of u8 and u16 with a page behind them, and one before them, that cannot be read.
func TestRowsEnd(t *testing.T) {
	needCode(t)
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	for _, guard := range [][]byte{mem[:page], mem[2*page:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 6))
	readable := mem[page : 2*page]
	for i := range readable {
		readable[i] = byte(rng.Uint32())
	}
	of := func(typ simt.Type, b []byte) any {
		if typ == simt.U8 {
			return b
		}
		return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
	}
	for k, typ := range []simt.Type{simt.F32, simt.F64, simt.F32, simt.F64} {
		for _, width := range []int{1, 2, 3, 4, 5, 8, 9, 12, 15, 16, 17, 19, 20, 31, 32, 33, 47, 48, 63, 64, 65} {
			cell := []simt.Type{simt.U8, simt.U16}[k/2]
			for form := range 4 { // both layouts, without and with a branch
				m := bytesSum(t, typ, cell, simt.Layout(form/2), width, form%2 == 1)
				run, err := simt.Compile(m, 1)
				if err != nil {
					t.Fatal(err)
				}
				for i, set := range slices.Concat(sets(), sets()) {
					p, err := CompileWith(m, 1, set, Options{Groups: 2 * (i / len(sets()))}) // as many groups as are quickest, and two
					if err != nil {
						t.Fatal(err)
					}
					for _, rows := range []int{p.lanes, 2 * p.lanes, 4 * p.lanes, 5*p.lanes - 1} { // of which the last ones are copied
						size := rows * width * cell.Bits() / 8
						if size > page {
							continue
						}
						for _, x := range []any{of(cell, readable[:size]), of(cell, readable[page-size:])} {
							got, want := rowsOf(m.Outputs, rows), rowsOf(m.Outputs, rows)
							if err := p.Run(t.Context(), 0, rows, []any{x}, got); err != nil {
								t.Fatalf("%s, %v: %d rows of %d %v: %v", set, typ, rows, width, cell, err)
							}
							if err := run.Run(t.Context(), 0, rows, []any{x}, want); err != nil {
								t.Fatal(err)
							}
							for i := range rows {
								if g, w := simttest.ElementBits(got[0], i), simttest.ElementBits(want[0], i); g != w {
									t.Fatalf("%s, %v: row %d of %d of %d %v is %#x, want %#x", set, typ, i, rows, width, cell, g, w)
								}
							}
						}
					}
					p.Free()
				}
			}
		}
	}
}

// bytesSum is a module that adds up rows of cells of a type, of which the first one is read in a branch at first, if there is one.
func bytesSum(t *testing.T, typ, cell simt.Type, layout simt.Layout, width int, branch bool) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("bytes")
	in, out := b.Input("x", cell, layout, width), b.Output("y", typ, simt.Columns, 1)
	number := func(v int) simt.Value { return b.Convert(typ, b.Load(in, v)) }
	total := b.Float(typ, 0.5)
	if low := b.Binary(simt.Lt, number(width-1), b.Float(typ, 30)); branch {
		total = b.If(low, func() []simt.Value { return []simt.Value{number(0)} }, func() []simt.Value { return []simt.Value{total} })[0]
	}
	for v := range width {
		total = b.Add(total, number(v))
	}
	b.Store(out, 0, total)
	return module(t, b)
}

// TestCodeCollector runs code in several goroutines whose stacks grow, while garbage is collected, samples
// are taken for a CPU profile, and execution is traced.
func TestCodeCollector(t *testing.T) {
	needCode(t)
	if err := pprof.StartCPUProfile(io.Discard); err != nil { // the whole test binary is profiled already
		t.Log(err)
	} else {
		defer pprof.StopCPUProfile()
	}
	if err := trace.Start(io.Discard); err != nil {
		t.Log(err)
	} else {
		defer trace.Stop()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	rng := rand.New(rand.NewPCG(3, 4))
	m := simttest.Random(t, rng, 100)
	p, err := Compile(m, 2, Path())
	if err != nil {
		t.Fatal(err)
	}
	const rows = 203
	in, want := simttest.Buffers(rng, m, rows)
	if err := p.Run(t.Context(), 0, rows, in, want); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(*collected)
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for depth := 0; time.Now().Before(end); depth = (depth + 1) % 200 {
				_, got := simttest.Buffers(rand.New(rand.NewPCG(1, 1)), m, rows)
				if err := deep(depth, func() error { return p.Run(t.Context(), 0, rows, in, got) }); err != nil {
					t.Error(err)
					return
				}
				for i := range want {
					for k := range rows * m.Outputs[i].Width {
						if g, w := simttest.ElementBits(got[i], k), simttest.ElementBits(want[i], k); g != w {
							t.Errorf("output %d, element %d is %#x, want %#x", i, k, g, w)
							return
						}
					}
				}
			}
		})
	}
	wait.Wait()
	runtime.GC()
}

// collected is how long TestCodeCollector runs.
var collected = flag.Duration("collected", 200*time.Millisecond, "how long code runs while garbage is collected")

// deep calls f from further down the stack.
func deep(n int, f func() error) error {
	var pad [128]byte
	if n > 0 {
		pad[n%128] = byte(n)
		err := deep(n-1, f)
		runtime.KeepAlive(&pad)
		return err
	}
	return f()
}
