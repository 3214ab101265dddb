package emulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"unsafe"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator/lanes"
)

// Options say what card to be and what to look for. The zero value is a card of
// compute capability 9.0 that runs everything in order, as late as it can.
type Options struct {
	Major, Minor    int    // compute capability; 0.0 means 9.0
	Multiprocessors int    // 0: 132
	Memory          int64  // bytes; 0: 2 GiB
	SharedMemory    int    // bytes that a block may ask for; 0: 227 KiB
	Threads         int    // goroutines of a launch; 0: GOMAXPROCS
	Seed            uint64 // 0: warps, blocks and graphs in order, streams late; else at random
	Approx          uint64 // 0: ex2, lg2 and rcp.approx round correctly; else a seed for results as far off as a card's may be
	MMA             MMA    // how matrix instructions add
	Strict          bool   // launches outside a graph are refused
	Races           bool   // look for races between blocks; launches take more time and one goroutine
	Resident        int    // blocks at once where they can wait for each other; 0: what the card holds
	Jumps           int    // branches back that a warp may take in a launch; 0: 2^24
}

// MMA says how matrix instructions add; the zero value means exactly, {16, 2} as
// Hopper, {8, 1} as Ampere.
type MMA = lanes.MMA

// Emulator is a cuda.Driver without a card.
type Emulator struct {
	o         Options
	set       *lanes.Set // what computes
	memory    memory
	host      map[*byte][]byte
	modules   map[cuda.Module]*module
	functions map[cuda.Function]*function
	streams   map[cuda.Stream]*stream
	events    map[cuda.Event]*event
	graphs    map[cuda.Graph]*graph
	queues    []*stream  // all streams
	waited    clock      // what the host has waited for
	now       moment     // of the work that is done
	chance    *rand.Rand // which stream works early; nil without a seed
	late      error      // of work that was done early, for the next wait
	handles   uint64
	launches  uint32
	counts    map[string]*Counts
	log       []Record // the last launches
	idle      int      // bytes of places that kernels keep
	closed    bool
}

var _ cuda.Driver = (*Emulator)(nil)

type function struct {
	kernel *kernel
	shared int // bytes of dynamic shared memory allowed
}

// New returns a card with nothing on it.
func New(o Options) *Emulator {
	if o.Major == 0 && o.Minor == 0 {
		o.Major = 9
	}
	if o.Multiprocessors <= 0 {
		o.Multiprocessors = 132
	}
	if o.Memory <= 0 {
		o.Memory = 2 << 30
	}
	if o.SharedMemory <= 0 {
		o.SharedMemory = 227 << 10
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Jumps <= 0 {
		o.Jumps = maxJumps
	}
	return &Emulator{
		o:         o,
		set:       lanes.Sets()[0],
		memory:    memory{limit: o.Memory, races: o.Races},
		host:      map[*byte][]byte{},
		modules:   map[cuda.Module]*module{},
		functions: map[cuda.Function]*function{},
		streams:   map[cuda.Stream]*stream{},
		events:    map[cuda.Event]*event{},
		graphs:    map[cuda.Graph]*graph{},
		waited:    clock{},
		counts:    map[string]*Counts{},
	}
}

// handle returns a number that no other handle has.
func (e *Emulator) handle() uint64 {
	e.handles++
	return e.handles
}

// Card describes the card that the options ask for.
func (e *Emulator) Card() cuda.Card {
	return cuda.Card{
		Name: "emulator", Major: e.o.Major, Minor: e.o.Minor, Memory: e.o.Memory,
		Multiprocessors: e.o.Multiprocessors, SharedMemory: e.o.SharedMemory, Clock: 1_000_000,
	}
}

// Enter lets any thread make the next calls, one at a time.
func (e *Emulator) Enter() error { return nil }

// recording refuses a call while a stream is captured, as a driver does with those that
// may wait for the card.
func (e *Emulator) recording(call string) error {
	for _, s := range e.queues {
		if s.capture != nil {
			return refused("%s while stream %d is being captured", call, s.id)
		}
	}
	return nil
}

// FreeMemory returns the bytes that are not allocated.
func (e *Emulator) FreeMemory() (int64, error) { return e.memory.limit - e.memory.used, nil }

// Alloc makes memory whose bytes count as not written.
func (e *Emulator) Alloc(bytes int64) (cuda.Ptr, error) {
	if err := e.recording("Alloc"); err != nil {
		return 0, err
	}
	a, err := e.memory.alloc(bytes)
	if err != nil {
		return 0, err
	}
	return cuda.Ptr(a.base), nil
}

// Free gives memory back. Its addresses are not used again, so that kernels which
// still use them are found.
func (e *Emulator) Free(p cuda.Ptr) error {
	if err := e.recording("Free"); err != nil {
		return err
	}
	return e.memory.free(p)
}

// pinned has memory of the host that was given back, a *[]byte each: every device that opens asks for the same megabytes, and clearing
// them takes longer than most programs of tests. As from a driver, it holds what was there before.
var pinned sync.Pool

// AllocHost returns memory of the host.
func (e *Emulator) AllocHost(bytes int) ([]byte, error) {
	if err := e.recording("AllocHost"); err != nil {
		return nil, err
	}
	if bytes <= 0 {
		return nil, refused("AllocHost of %d bytes; ask for at least one", bytes)
	}
	var b []byte
	if given, _ := pinned.Get().(*[]byte); given != nil && cap(*given) >= bytes {
		b = (*given)[:bytes]
	} else {
		b = make([]byte, bytes)
	}
	e.host[unsafe.SliceData(b)] = b
	return b, nil
}

// FreeHost gives back what AllocHost returned.
func (e *Emulator) FreeHost(b []byte) error {
	if err := e.recording("FreeHost"); err != nil {
		return err
	}
	whole, ok := e.host[unsafe.SliceData(b)]
	if !ok {
		return refused("FreeHost of %d bytes that AllocHost did not return", len(b))
	}
	delete(e.host, unsafe.SliceData(b))
	pinned.Put(&whole)
	return nil
}

// Function finds a kernel and allows it dynamic shared memory. How many registers
// it takes is not known here.
func (e *Emulator) Function(h cuda.Module, name string, shared int) (cuda.Function, cuda.FunctionInfo, error) {
	m, ok := e.modules[h]
	if !ok {
		return 0, cuda.FunctionInfo{}, refused("Function %s of module %d, which is not loaded", name, h)
	}
	k, ok := m.kernels[name]
	if !ok {
		return 0, cuda.FunctionInfo{}, refused("Function: no kernel %s in module %d", name, h)
	}
	if shared < 0 || k.static+shared > e.o.SharedMemory {
		return 0, cuda.FunctionInfo{}, refused("Function %s with %d bytes of dynamic shared memory and %d of its own; a block may have %d",
			name, shared, k.static, e.o.SharedMemory)
	}
	f := cuda.Function(e.handle())
	e.functions[f] = &function{k, shared}
	m.functions = append(m.functions, f)
	info := cuda.FunctionInfo{Shared: k.static, MaxThreads: 1024}
	if k.threads > 0 {
		info.MaxThreads = k.threads
	}
	return f, info, nil
}

// Blocks goes by threads and shared memory: how many registers a kernel takes is not
// known here.
func (e *Emulator) Blocks(h cuda.Function, threads, shared int) (int, error) {
	f, ok := e.functions[h]
	if !ok {
		return 0, refused("Blocks of function %d, which does not exist", h)
	}
	if threads < 1 || threads > 1024 || shared < 0 || shared > f.shared {
		return 0, refused("Blocks of %s with %d threads and %d bytes of dynamic shared memory, of which it is allowed %d", f.kernel.name, threads, shared, f.shared)
	}
	return e.each((threads+31)/32*32, f.kernel.static+shared), nil
}

// Launch puts a kernel on a stream, or records it where that is captured.
func (e *Emulator) Launch(l cuda.Launch, s cuda.Stream) error {
	f, ok := e.functions[l.Function]
	if !ok {
		return refused("Launch of function %d, which does not exist", l.Function)
	}
	st, err := e.stream("Launch", s)
	if err != nil {
		return err
	}
	if e.o.Strict && st.capture == nil {
		return refused("launch of %s outside a graph", f.kernel.name)
	}
	l.Args = append([]uint64(nil), l.Args...)
	if _, err := e.check(f, &l); err != nil {
		return err
	}
	e.do(st, func(inGraph bool) error {
		run, err := e.check(f, &l)
		if err != nil {
			return err
		}
		e.note(Record{f.kernel.name, l.Grid, l.Block, l.Shared, inGraph})
		return e.run(run)
	})
	return nil
}

// CopyIn copies from the host.
func (e *Emulator) CopyIn(dst cuda.Ptr, src []byte, s cuda.Stream) error {
	st, err := e.stream("CopyIn", s)
	if err != nil {
		return err
	}
	e.do(st, func(bool) error {
		return e.transfer("CopyIn", dst, int64(len(src)), writes, func() error { return e.memory.copyIn(dst, src) })
	})
	return nil
}

// CopyOut copies to the host. Bytes that were never written arrive as 0xa5.
func (e *Emulator) CopyOut(dst []byte, src cuda.Ptr, s cuda.Stream) error {
	st, err := e.stream("CopyOut", s)
	if err != nil {
		return err
	}
	e.do(st, func(bool) error {
		return e.transfer("CopyOut", src, int64(len(dst)), reads, func() error { return e.memory.copyOut(dst, src) })
	})
	return nil
}

// Clear sets bytes to zero.
func (e *Emulator) Clear(dst cuda.Ptr, bytes int64, s cuda.Stream) error {
	st, err := e.stream("Clear", s)
	if err != nil {
		return err
	}
	e.do(st, func(bool) error {
		return e.transfer("Clear", dst, bytes, writes, func() error { return e.memory.zero(dst, bytes) })
	})
	return nil
}

// transfer moves bytes of the card's memory, and notes it.
func (e *Emulator) transfer(call string, at cuda.Ptr, bytes int64, how uint8, move func() error) error {
	if err := move(); err != nil || bytes == 0 {
		return err
	}
	return e.touch(e.memory.find(uint64(at)), how, fmt.Sprintf("%s of %d bytes", call, bytes))
}

// Leaks reports memory that is still allocated, for tests of a driver's user.
func (e *Emulator) Leaks() error {
	var errs []error
	var last *allocation
	for _, a := range e.memory.slots {
		if !a.freed && a != last {
			errs = append(errs, fmt.Errorf("emulator: %d bytes at %#x were not freed", a.size, a.base))
		}
		last = a
	}
	for _, b := range e.host {
		errs = append(errs, fmt.Errorf("emulator: %d bytes of host memory were not freed", len(b)))
	}
	return errors.Join(errs...)
}

// Close does what is left to do and ends the use of the card and of the host's memory.
func (e *Emulator) Close() error {
	if e.closed {
		return refused("Close: closed before")
	}
	e.closed = true
	for _, s := range e.queues {
		for s.capture == nil && len(s.queue) > 0 && e.late == nil {
			e.late = e.advance(s)
		}
	}
	for _, b := range e.host {
		pinned.Put(&b)
	}
	clear(e.host)
	return e.late
}
