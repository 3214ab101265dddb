//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pce-engine/pce/kernels"
)

// addPTX is a kernel that adds a value to n numbers.
const addPTX = `.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry add(
	.param .u64 to,
	.param .u32 n,
	.param .u32 value
)
.maxntid 64, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %d<4>;
	ld.param.u64 %d0, [to];
	ld.param.u32 %r0, [n];
	ld.param.u32 %r1, [value];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p0, %r2, %r0;
	@%p0 bra DONE;
	cvta.to.global.u64 %d0, %d0;
	mul.wide.u32 %d1, %r2, 4;
	add.u64 %d0, %d0, %d1;
	ld.global.u32 %r5, [%d0];
	add.u32 %r5, %r5, %r1;
	st.global.u32 [%d0], %r5;
DONE:
	ret;
}
`

// inFake runs the calling test in a process of its own whose driver is
// testdata/libcuda.c, and reports whether this is that process.
func inFake(t *testing.T, env ...string) bool {
	if os.Getenv("FAKE_CUDA") != "" {
		return true
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skipf("NOT TESTED: the stand-in for the driver needs a C compiler: %v", err)
	}
	dir := t.TempDir()
	out, err := exec.Command(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Idriver/include",
		"testdata/libcuda.c", "-o", filepath.Join(dir, "libcuda.so.1")).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, out)
	}
	runIn(t, append(env, "LD_LIBRARY_PATH="+dir)...)
	return false
}

// runIn runs the calling test again in a process with more variables.
func runIn(t *testing.T, env ...string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	c.Env = append(append(os.Environ(), "FAKE_CUDA=1"), env...)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a process with %v: %v\n%s", env, err, out)
	}
}

// record makes the stand-in write its calls down; the function returns what was
// written since it was last called.
func record(t *testing.T) func() []string {
	path := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_CUDA_LOG", path)
	seen := 0
	return func() []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fresh := lines[seen:]
		seen = len(lines)
		return fresh
	}
}

// open opens card 0 on a locked thread and closes it after the test.
func open(t *testing.T) Driver {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	d, err := OpenDriver(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

// must returns a value that comes without an error.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("error %d: %v", i, err)
		}
	}
}

// loadAdd loads the kernel of addPTX, which is followed by what is not to be read.
func loadAdd(t *testing.T, d Driver) (Module, Function) {
	t.Helper()
	m, err := d.Load([]byte(addPTX + "mistake")[:len(addPTX)])
	if err != nil {
		t.Fatal(err)
	}
	f, info, err := d.Function(m, "add", 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	if info.Registers < 1 || info.MaxThreads < 64 {
		t.Errorf("info %+v", info)
	}
	if n := must(d.Blocks(f, 64, 60<<10))(t); n < 1 || n > 32 {
		t.Errorf("%d blocks of 64 threads on a multiprocessor", n)
	}
	return m, f
}

// exercise does all that a driver can do once and checks the numbers.
func exercise(t *testing.T, d Driver) {
	const n = 1000
	_, f := loadAdd(t, d)
	p := must(d.Alloc(4 * n))(t)
	if p%256 != 0 {
		t.Errorf("memory at %#x is not aligned", p)
	}
	if free := must(d.FreeMemory())(t); free <= 0 || free > d.Card().Memory {
		t.Errorf("%d bytes of %d are free", free, d.Card().Memory)
	}
	host := must(d.AllocHost(4 * n))(t)
	for i := range n {
		binary.LittleEndian.PutUint32(host[4*i:], uint32(i))
	}
	s, other := must(d.NewStream())(t), must(d.NewStream())(t)
	start, end, copied := must(d.NewEvent())(t), must(d.NewEvent())(t), must(d.NewEvent())(t)
	add := Launch{Function: f, Grid: [3]int{(n + 63) / 64, 1, 1}, Block: 64, Shared: 60 << 10, Args: []uint64{uint64(p), n - 1, 7}}

	ok(t,
		d.CopyIn(p, host, other), d.Record(copied, other), d.WaitEvent(s, copied),
		d.Clear(p, 8, s), d.Record(start, s), d.Launch(add, s), d.Record(end, s),
	)
	add.Args[2] = 100
	ok(t, d.Capture(s), d.Launch(add, s), d.Launch(add, s))
	g, err := d.Captured(s)
	ok(t, err, d.LaunchGraph(g, s), d.LaunchGraph(g, s), d.FreeGraph(g))
	back := make([]byte, 4*n)
	ok(t, d.CopyOut(back, p, s), d.Wait(s), d.Wait(other))

	for i := range n {
		want := uint32(i) + 407
		if i < 2 {
			want = 407
		}
		if i == n-1 {
			want = n - 1
		}
		if have := binary.LittleEndian.Uint32(back[4*i:]); have != want {
			t.Fatalf("number %d is %d, want %d", i, have, want)
		}
	}
	if seconds := must(d.Elapsed(start, end))(t); !(seconds >= 0 && seconds < 60) {
		t.Errorf("%g seconds", seconds)
	}
	ok(t, d.FreeHost(host), d.Free(p))
}

// TestCard runs on a real card.
func TestCard(t *testing.T) {
	cards, err := Cards()
	if err != nil {
		t.Skipf("NOT TESTED, no card: %v", err)
	}
	c := cards[0]
	t.Logf("%+v", c)
	if c.Name == "" || c.Major < 5 || c.Memory < 1<<30 || c.Multiprocessors < 1 || c.SharedMemory < 48<<10 || c.DriverVersion < 11000 {
		t.Errorf("card %+v", c)
	}
	d := open(t)
	exercise(t, d)

	m, _ := loadAdd(t, d)
	ok(t, d.Unload(m))
	if _, err := d.Load([]byte(strings.Replace(addPTX, "mad.lo.u32", "mad.lo.u33", 1))); err == nil || !strings.Contains(err.Error(), "line 21") {
		t.Errorf("a mistake in line 21: %v", err)
	}
	if _, err := d.Alloc(1 << 50); !errors.Is(err, kernels.ErrMemory) {
		t.Errorf("2^50 bytes: %v", err)
	}
}

func TestNative(t *testing.T) {
	if !inFake(t) {
		return
	}
	calls := record(t)
	cards, err := Cards()
	ok(t, err)
	want := Card{Name: "Fake 0", Major: 9, Memory: 3 << 30, Multiprocessors: 132, SharedMemory: 232448, Clock: 1980000, DriverVersion: 12040}
	if len(cards) != 1 || cards[0] != want {
		t.Fatalf("cards %+v, want %+v", cards, want)
	}
	d := open(t)
	if d.Card() != want {
		t.Errorf("card %+v", d.Card())
	}
	if all := calls(); all[0] != "cuInit 0" || !slices.Contains(all, "cuDevicePrimaryCtxRetain 0") || !slices.Contains(all, "cuCtxSetCurrent 1") {
		t.Errorf("opening calls %q", all)
	}
	exercise(t, d)
	all := calls()
	for _, c := range []string{
		"cuFuncSetAttribute add 8 65536",
		"cuLaunchKernel add 16 1 1, 64 1 1, 61440, extra 0",
		"cuMemcpyHtoDAsync 4000", "cuMemsetD8Async 0 8", "cuMemHostAlloc 4000 0", "cuMemAlloc 4000",
		"cuStreamCreate 1", "cuEventCreate 0", "cuStreamWaitEvent 1 1 0", "cuStreamBeginCapture 1", "cuGraphLaunch 1",
		"cuGraphDestroy", "cuGraphExecDestroy", fmt.Sprint("cuModuleLoadDataEx ", len(addPTX)), "cuMemFreeHost", "cuMemFree",
	} {
		if !slices.Contains(all, c) {
			t.Errorf("no call %q in %q", c, all)
		}
	}
}

// TestNativeClose wants all that is left behind to be freed.
func TestNativeClose(t *testing.T) {
	if !inFake(t) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d, err := OpenDriver(0)
	ok(t, err)
	_, f := loadAdd(t, d)
	p, s := must(d.Alloc(64))(t), must(d.NewStream())(t)
	must(d.Alloc(128))(t)
	must(d.AllocHost(64))(t)
	must(d.NewEvent())(t)
	ok(t, d.Capture(s), d.Launch(Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 1, Args: []uint64{uint64(p), 1, 1}}, s))
	must(d.Captured(s))(t)
	calls := record(t)
	ok(t, d.Close())
	have := calls()
	slices.Sort(have)
	want := []string{"cuDevicePrimaryCtxRelease 0", "cuEventDestroy", "cuGraphExecDestroy", "cuMemFree", "cuMemFree", "cuMemFreeHost",
		"cuModuleUnload", "cuStreamDestroy", "cuStreamSynchronize"}
	if !slices.Equal(have, want) {
		t.Errorf("close calls %q, want %q", have, want)
	}
}

// TestNativeModules wants drivers of a card to compile a text once, and its module
// unloaded with the last of them.
func TestNativeModules(t *testing.T) {
	if !inFake(t) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calls := record(t)
	count := func(want map[string]int) {
		t.Helper()
		all := calls()
		for name, n := range want {
			have := 0
			for _, c := range all {
				if strings.HasPrefix(c, name) {
					have++
				}
			}
			if have != n {
				t.Errorf("%d calls of %s, want %d, in %q", have, name, n, all)
			}
		}
	}
	first := must(OpenDriver(0))(t)
	m, _ := loadAdd(t, first)
	ok(t, first.Unload(m))
	loadAdd(t, first)
	second := must(OpenDriver(0))(t)
	loadAdd(t, second)
	count(map[string]int{"cuModuleLoadDataEx": 1, "cuModuleUnload": 0})
	ok(t, first.Close())
	count(map[string]int{"cuModuleUnload": 0, "cuDevicePrimaryCtxRelease": 1})
	_, f := loadAdd(t, second)
	p, s := must(second.Alloc(64))(t), must(second.NewStream())(t)
	ok(t, second.Launch(Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 1, Args: []uint64{uint64(p), 1, 1}}, s))
	ok(t, second.Close())
	count(map[string]int{"cuModuleLoadDataEx": 0, "cuModuleUnload": 1, "cuDevicePrimaryCtxRelease": 1})
	third := must(OpenDriver(0))(t)
	loadAdd(t, third)
	count(map[string]int{"cuModuleLoadDataEx": 1})
	ok(t, third.Close())
}

// TestNativeIdleModules loads more texts than a context keeps without users, and wants
// those unloaded that had their last user first, and none that a driver has.
func TestNativeIdleModules(t *testing.T) {
	if !inFake(t) {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	calls := record(t)
	// done counts what the driver was asked for since it was last called.
	done := func() (compiles, unloads int) {
		for _, c := range calls() {
			switch {
			case strings.HasPrefix(c, "cuModuleLoadDataEx"):
				compiles++
			case strings.HasPrefix(c, "cuModuleUnload"):
				unloads++
			}
		}
		return compiles, unloads
	}
	want := func(what string, compiles, unloads int) {
		t.Helper()
		if c, u := done(); c != compiles || u != unloads {
			t.Errorf("%s: %d texts compiled and %d modules unloaded, want %d and %d", what, c, u, compiles, unloads)
		}
	}
	text := func(n int) []byte { return fmt.Appendf(nil, "%s\n// %d\n", addPTX, n) }
	a, b := must(OpenDriver(0))(t), must(OpenDriver(0))(t)
	var modules []Module
	for n := range mostIdle + 2 {
		modules = append(modules, must(a.Load(text(n)))(t))
	}
	held := must(b.Load(text(0)))(t)
	want("loads", mostIdle+2, 0)
	for _, m := range modules[:mostIdle+1] {
		ok(t, a.Unload(m))
	}
	want("as many without users as are kept", 0, 0) // text 0 has one, the last text too
	ok(t, b.Unload(held))
	want("one more", 0, 1)
	again := must(b.Load(text(0)))(t)
	two := must(b.Load(text(2)))(t)
	want("those that are kept", 0, 0)
	must(b.Load(text(1)))(t)
	want("the one that was not", 1, 0)
	ok(t, a.Close(), b.Unload(again))
	want("a driver that is closed has no modules", 0, 0)
	ok(t, b.Unload(two))
	want("one more than is kept, with that of the driver that is closed", 0, 1)
	ok(t, b.Close())
	want("the last driver", 0, mostIdle+1)
}

// TestNativeThreads calls a device from goroutines that are locked to threads of their own, none of
// them that which opened it, and closes it from another one.
func TestNativeThreads(t *testing.T) {
	if !inFake(t) {
		return
	}
	dev, err := Open("cuda:0", func() (Driver, error) { return OpenDriver(0) }, nil)
	ok(t, err)
	apart := func(do func() error) {
		t.Helper()
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			done <- do()
		}()
		ok(t, <-done)
	}
	const n = 100
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			runtime.LockOSThread()
			in, out := make([]float32, n), make([]float32, n)
			for k := range in {
				in[k] = float32(i*n + k)
			}
			b, err := dev.Alloc(t.Context(), kernels.Float32, n)
			if err == nil {
				err = errors.Join(dev.Write(t.Context(), b, 0, in), dev.Read(t.Context(), out, b, 0))
				b.Free()
			}
			if err != nil || !slices.Equal(in, out) {
				t.Errorf("thread %d: error %v, read %v", i, err, out)
			}
		})
	}
	wait.Wait()
	apart(func() error { return dev.Sync(t.Context()) })
	apart(dev.Close)
	if err := dev.Sync(t.Context()); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("after Close: %v, want ErrDevice", err)
	}
}

// TestNativeErrors holds every failed call to the words that its error needs.
func TestNativeErrors(t *testing.T) {
	if !inFake(t) {
		return
	}
	d := open(t)
	m, f := loadAdd(t, d)
	p, s, e := must(d.Alloc(64))(t), must(d.NewStream())(t), must(d.NewEvent())(t)
	data := make([]byte, 64)
	good := Launch{Function: f, Grid: [3]int{2, 3, 4}, Block: 64, Args: []uint64{uint64(p), 4, 1}}
	with := func(change func(*Launch)) Launch {
		l := good
		change(&l)
		return l
	}
	load := func(text string) func() error {
		return func() error { _, err := d.Load([]byte(text)); return err }
	}
	for _, c := range []struct {
		name, fail string
		do         func() error
		kind       error
		words      []string
	}{
		{"alloc", "cuMemAlloc_v2=2", func() error { _, err := d.Alloc(512); return err }, kernels.ErrMemory,
			[]string{"cuMemAlloc(512 bytes)", "CUDA_ERROR_OUT_OF_MEMORY (2, as the test wants)", "take fewer rows", "1024 of 3072 MiB are free"}},
		{"alloc of nothing", "", func() error { _, err := d.Alloc(0); return err }, kernels.ErrDevice, []string{"alloc of 0 bytes"}},
		{"host", "cuMemHostAlloc=2", func() error { _, err := d.AllocHost(8); return err }, kernels.ErrMemory, []string{"cuMemHostAlloc(8 bytes)"}},
		{"host of nothing", "", func() error { _, err := d.AllocHost(-1); return err }, kernels.ErrDevice, []string{"-1 bytes"}},
		{"free", "", func() error { return d.Free(p + 256) }, kernels.ErrDevice, []string{"no memory at"}},
		{"free of Go's memory", "", func() error { return d.FreeHost(data) }, kernels.ErrDevice, []string{"64 bytes", "AllocHost"}},
		{"copy in", "cuMemcpyHtoDAsync_v2=1", func() error { return d.CopyIn(p, data, s) }, kernels.ErrDevice,
			[]string{"cuMemcpyHtoDAsync(to 0x", "64 bytes, stream 1)", "CUDA_ERROR_INVALID_VALUE (1)"}},
		{"copy out", "cuMemcpyDtoHAsync_v2=1", func() error { return d.CopyOut(data, p, s) }, kernels.ErrDevice, []string{"cuMemcpyDtoHAsync(from 0x"}},
		{"clear", "cuMemsetD8Async=1", func() error { return d.Clear(p, 8, s) }, kernels.ErrDevice, []string{"cuMemsetD8Async", "8 bytes"}},
		{"clear of less than nothing", "", func() error { return d.Clear(p, -8, s) }, kernels.ErrDevice, []string{"-8 bytes"}},
		{"no stream", "", func() error { return d.CopyIn(p, data, 0) }, kernels.ErrDevice, []string{"no stream 0"}},
		{"no such stream", "", func() error { return d.Wait(s + 9) }, kernels.ErrDevice, []string{"no stream 10"}},
		{"lost", "cuStreamSynchronize=700", func() error { return d.Wait(s) }, kernels.ErrDevice,
			[]string{"cuStreamSynchronize(stream 1)", "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "start it again"}},
		{"a code without a name", "cuStreamSynchronize=4321", func() error { return d.Wait(s) }, kernels.ErrDevice, []string{"CUDA code 4321"}},
		{"stream", "cuStreamCreate=1", func() error { _, err := d.NewStream(); return err }, kernels.ErrDevice, []string{"cuStreamCreate"}},
		{"event", "cuEventCreate=1", func() error { _, err := d.NewEvent(); return err }, kernels.ErrDevice, []string{"cuEventCreate"}},
		{"record", "cuEventRecord=1", func() error { return d.Record(e, s) }, kernels.ErrDevice, []string{"cuEventRecord(event 1, stream 1)"}},
		{"no event", "", func() error { return d.Record(7, s) }, kernels.ErrDevice, []string{"no event 7"}},
		{"wait for an event", "cuStreamWaitEvent=1", func() error { return d.WaitEvent(s, e) }, kernels.ErrDevice, []string{"cuStreamWaitEvent(stream 1, event 1)"}},
		{"elapsed", "cuEventElapsedTime=1", func() error { _, err := d.Elapsed(e, e); return err }, kernels.ErrDevice, []string{"cuEventElapsedTime"}},
		{"capture", "cuStreamBeginCapture_v2=1", func() error { return d.Capture(s) }, kernels.ErrDevice, []string{"cuStreamBeginCapture(stream 1)"}},
		{"captured", "cuStreamEndCapture=901", func() error { ok(t, d.Capture(s)); _, err := d.Captured(s); return err }, kernels.ErrDevice, []string{"901"}},
		{"instantiate", "cuGraphInstantiateWithFlags=2", func() error { ok(t, d.Capture(s)); _, err := d.Captured(s); return err }, kernels.ErrMemory, []string{"(2"}},
		{"no graph", "", func() error { return d.LaunchGraph(3, s) }, kernels.ErrDevice, []string{"no graph 3"}},
		{"free no graph", "", func() error { return d.FreeGraph(3) }, kernels.ErrDevice, []string{"no graph 3"}},
		{"launch", "cuLaunchKernel=1", func() error { return d.Launch(good, s) }, kernels.ErrDevice,
			[]string{"cuLaunchKernel(add, grid [2 3 4], block 64, 0 bytes shared, 3 arguments, stream 1)", "(1)"}},
		{"launch of no function", "", func() error { return d.Launch(with(func(l *Launch) { l.Function = 77 }), s) }, kernels.ErrDevice, []string{"no function 77"}},
		{"empty grid", "", func() error { return d.Launch(with(func(l *Launch) { l.Grid[1] = 0 }), s) }, kernels.ErrDevice, []string{"grid [2 0 4]"}},
		{"large block", "", func() error { return d.Launch(with(func(l *Launch) { l.Block = 257 }), s) }, kernels.ErrDevice, []string{"block 257 of at most 256"}},
		{"many arguments", "", func() error { return d.Launch(with(func(l *Launch) { l.Args = make([]uint64, 513) }), s) }, kernels.ErrDevice, []string{"513 arguments"}},
		{"mistake", "", load("a mistake"), kernels.ErrDevice,
			[]string{"9 bytes of PTX on sm_90", "driver 12040", "CUDA_ERROR_INVALID_PTX (218)", "line 3; error: mistake; fatal: aborted"}},
		{"long log", "", load("flood"), kernels.ErrDevice, []string{"(218): xxx", strings.Repeat("x", 16<<10)}},
		{"unsupported", "", load("unsupported"), kernels.ErrDevice,
			[]string{"CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222); the driver is older than the kernels; update it"}},
		{"load", "cuModuleLoadDataEx=2", load("good"), kernels.ErrMemory,
			[]string{"cuModuleLoadDataEx(4 bytes of PTX on sm_90, driver 12040): CUDA_ERROR_OUT_OF_MEMORY (2, as the test wants); take fewer rows"}},
		{"empty", "", load(""), kernels.ErrDevice, []string{"empty"}},
		{"no kernel", "", func() error { _, _, err := d.Function(m, "subtract", 0); return err }, kernels.ErrDevice,
			[]string{"cuModuleGetFunction(module 1, subtract)", "CUDA_ERROR_NOT_FOUND (500)"}},
		{"much shared memory", "", func() error { _, _, err := d.Function(m, "add", 1<<20); return err }, kernels.ErrDevice,
			[]string{"cuFuncSetAttribute(add, 1048576 bytes of shared memory; Fake 0 has 232448)"}},
		{"attribute", "cuFuncGetAttribute=1", func() error { _, _, err := d.Function(m, "add", 0); return err }, kernels.ErrDevice, []string{"cuFuncGetAttribute"}},
		{"blocks", "", func() error { _, err := d.Blocks(f, -1, 0); return err }, kernels.ErrDevice,
			[]string{"cuOccupancyMaxActiveBlocksPerMultiprocessor(add, -1 threads, 0 bytes shared)"}},
		{"blocks of no function", "", func() error { _, err := d.Blocks(9, 64, 0); return err }, kernels.ErrDevice, []string{"no function 9"}},
		{"no module", "", func() error { _, _, err := d.Function(9, "add", 0); return err }, kernels.ErrDevice, []string{"no module 9"}},
		{"unload no module", "", func() error { return d.Unload(9) }, kernels.ErrDevice, []string{"no module 9"}},
		{"no card", "", func() error { _, err := OpenDriver(1); return err }, kernels.ErrDevice, []string{"no card cuda:1", "there are 1"}},
		{"no cards", "cuDeviceGetCount=3", func() error { _, err := Cards(); return err }, kernels.ErrDevice, []string{"cuDeviceGetCount()"}},
		{"context", "cuDevicePrimaryCtxRetain=2", func() error { _, err := OpenDriver(0); return err }, kernels.ErrMemory, []string{"cuDevicePrimaryCtxRetain(device 0)"}},
		{"thread", "cuCtxSetCurrent=1", func() error { _, err := OpenDriver(0); return err }, kernels.ErrDevice, []string{"cuCtxSetCurrent(device 0)"}},
		{"enter", "cuCtxSetCurrent=1", d.Enter, kernels.ErrDevice, []string{"cuCtxSetCurrent(device 0)"}},
		{"describe", "cuDeviceGetAttribute=1", func() error { _, err := Cards(); return err }, kernels.ErrDevice, []string{"cuDeviceGetAttribute(attribute "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread() // it is a goroutine of its own
			defer runtime.UnlockOSThread()
			ok(t, d.Enter())
			t.Setenv("FAKE_CUDA_FAIL", c.fail)
			err := c.do()
			if !errors.Is(err, c.kind) {
				t.Fatalf("error %v is not %v", err, c.kind)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q lacks %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
		})
	}

	calls := record(t)
	// A function ends with its module.
	ok(t, d.Launch(good, s), d.Unload(m))
	if err := d.Launch(good, s); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("launch of an unloaded module: %v", err)
	}
	// Nothing to copy is no call.
	calls()
	ok(t, d.CopyIn(p, nil, s), d.CopyOut(nil, p, s), d.Clear(p, 0, s), d.Free(p))
	if all := calls(); !slices.Equal(all, []string{"cuMemFree"}) {
		t.Errorf("empty copies: %q", all)
	}
}

// TestNativeStart starts where the driver does not come up.
func TestNativeStart(t *testing.T) {
	if !inFake(t, "FAKE_CUDA_FAIL=cuInit=100") {
		return
	}
	for _, do := range []func() error{
		func() error { _, err := Cards(); return err },
		func() error { _, err := OpenDriver(0); return err },
	} {
		err := do()
		if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), "cuInit returns CUDA_ERROR_NO_DEVICE (100)") {
			t.Errorf("error %v", err)
		}
	}
}

// TestNativeWithoutLibrary has a file that is no library.
func TestNativeWithoutLibrary(t *testing.T) {
	for _, other := range []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"} {
		if _, err := os.Stat(other); err == nil {
			t.Skip("NOT TESTED: this machine has the library in a second place")
		}
	}
	if os.Getenv("FAKE_CUDA") == "" {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "libcuda.so.1"), []byte("no library"), 0o644); err != nil {
			t.Fatal(err)
		}
		runIn(t, "LD_LIBRARY_PATH="+dir)
		return
	}
	_, err := Cards()
	if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), "libcuda.so.1") {
		t.Errorf("error %v", err)
	}
}
