//go:build cuda && cgo

package cuda

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/driver"
)

// native is the CUDA driver on one card. Handles count from 1 in its lists, so a
// wrong one is an error here and not in the driver.
type native struct {
	device    cu.Device
	card      Card
	handle    cu.CUContext  // of the primary context
	memory    map[Ptr]int64 // bytes of each
	host      map[*byte]int // likewise, pinned
	modules   map[Module]*sharedModule
	loaded    Module // the latest handle
	context   *primary
	functions []nativeFunction
	streams   []cu.Stream
	events    []cu.Event
	graphs    map[Graph]driver.Graph
	captured  Graph // the latest handle
}

var _ Driver = (*native)(nil)

// noHandle is the error for a handle that is not one of this driver's.
func noHandle(what string, handle uint64) error {
	return fmt.Errorf("%w: cuda: there is no %s %d", kernels.ErrDevice, what, handle)
}

func (d *native) Card() Card { return d.card }

func (d *native) Enter() error {
	return failure(cu.SetCurrentContext(d.handle), "cuCtxSetCurrent(device %d)", d.card.Ordinal)
}

// Close frees what the driver still holds, and its context. It returns the first
// error, after which the rest is tried all the same.
func (d *native) Close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for i := range d.streams {
		keep(d.Wait(Stream(i + 1)))
	}
	for g := range d.graphs {
		keep(d.FreeGraph(g))
	}
	for i := range d.events {
		keep(failure(cu.DestroyEvent(&d.events[i]), "cuEventDestroy(event %d)", i+1))
	}
	for i := range d.streams {
		keep(failure(d.streams[i].Destroy(), "cuStreamDestroy(stream %d)", i+1))
	}
	for p := range d.memory {
		keep(d.Free(p))
	}
	for p, n := range d.host {
		keep(d.freeHost(p, n))
	}
	for _, m := range d.modules {
		keep(d.context.drop(m))
	}
	d.events, d.streams = nil, nil
	keep(d.context.leave(d.card.Ordinal))
	keep(releaseContext(d.device, d.card.Ordinal))
	return first
}

func (d *native) FreeMemory() (int64, error) {
	free, _, err := cu.MemInfo()
	return free, failure(err, "cuMemGetInfo()")
}

func (d *native) Alloc(bytes int64) (Ptr, error) {
	if bytes <= 0 {
		return 0, fmt.Errorf("%w: cuda: alloc of %d bytes", kernels.ErrDevice, bytes)
	}
	p, err := cu.MemAlloc(bytes)
	if err != nil {
		err = failure(err, "cuMemAlloc(%d bytes)", bytes)
		if free, total, failed := cu.MemInfo(); failed == nil {
			err = fmt.Errorf("%w; %d of %d MiB are free, %d MiB are this program's", err, free>>20, total>>20, d.held()>>20)
		}
		return 0, err
	}
	d.memory[Ptr(p)] = bytes
	return Ptr(p), nil
}

// held returns the bytes that are allocated.
func (d *native) held() int64 {
	var sum int64
	for _, n := range d.memory {
		sum += n
	}
	return sum
}

func (d *native) Free(p Ptr) error {
	if _, ok := d.memory[p]; !ok {
		return noHandle("memory at", uint64(p))
	}
	delete(d.memory, p)
	return failure(cu.MemFree(cu.DevicePtr(p)), "cuMemFree(%#x)", p)
}

func (d *native) AllocHost(bytes int) ([]byte, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("%w: cuda: alloc of %d bytes of the host", kernels.ErrDevice, bytes)
	}
	b, err := driver.AllocHost(bytes)
	if err != nil {
		return nil, failure(err, "cuMemHostAlloc(%d bytes)", bytes)
	}
	d.host[unsafe.SliceData(b)] = bytes
	return b, nil
}

func (d *native) FreeHost(b []byte) error {
	p := unsafe.SliceData(b)
	n, ok := d.host[p]
	if !ok {
		return fmt.Errorf("%w: cuda: %d bytes of the host that AllocHost did not return", kernels.ErrDevice, len(b))
	}
	return d.freeHost(p, n)
}

func (d *native) freeHost(p *byte, n int) error {
	delete(d.host, p)
	return failure(cu.MemFreeHost(unsafe.Pointer(p)), "cuMemFreeHost(%d bytes)", n)
}

func (d *native) CopyIn(dst Ptr, src []byte, s Stream) error {
	on, err := d.stream(s)
	if err != nil || len(src) == 0 {
		return err
	}
	err = cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), on)
	return failure(err, "cuMemcpyHtoDAsync(to %#x, %d bytes, stream %d)", dst, len(src), s)
}

func (d *native) CopyOut(dst []byte, src Ptr, s Stream) error {
	on, err := d.stream(s)
	if err != nil || len(dst) == 0 {
		return err
	}
	err = cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst)), on)
	return failure(err, "cuMemcpyDtoHAsync(from %#x, %d bytes, stream %d)", src, len(dst), s)
}

func (d *native) Clear(dst Ptr, bytes int64, s Stream) error {
	on, err := d.stream(s)
	if err != nil || bytes == 0 {
		return err
	}
	if bytes < 0 {
		return fmt.Errorf("%w: cuda: clear of %d bytes", kernels.ErrDevice, bytes)
	}
	return failure(cu.MemsetD8Async(cu.DevicePtr(dst), 0, bytes, on), "cuMemsetD8Async(%#x, %d bytes, stream %d)", dst, bytes, s)
}

// nativeFunction is a kernel of a module; its module is 0 once that is unloaded.
type nativeFunction struct {
	function cu.Function
	module   Module
	name     string
	threads  int // most in a block
}

func (d *native) Load(text []byte) (Module, error) {
	if len(text) == 0 {
		return 0, fmt.Errorf("%w: cuda: load of an empty text", kernels.ErrDevice)
	}
	m, err := d.context.load(text)
	if err != nil {
		return 0, failure(err, "cuModuleLoadDataEx(%d bytes of PTX on %s, driver %d)", len(text), d.card.Architecture(), d.card.DriverVersion)
	}
	d.loaded++
	d.modules[d.loaded] = m
	return d.loaded, nil
}

// Unload forgets the module; the context may keep it for the next driver that asks.
func (d *native) Unload(m Module) error {
	shared, ok := d.modules[m]
	if !ok {
		return noHandle("module", uint64(m))
	}
	delete(d.modules, m)
	for i := range d.functions {
		if d.functions[i].module == m {
			d.functions[i].module = 0
		}
	}
	return d.context.drop(shared)
}

func (d *native) Function(m Module, name string, shared int) (Function, FunctionInfo, error) {
	module, ok := d.modules[m]
	if !ok {
		return 0, FunctionInfo{}, noHandle("module", uint64(m))
	}
	f, err := module.Function(name)
	if err != nil {
		return 0, FunctionInfo{}, failure(err, "cuModuleGetFunction(module %d, %s)", m, name)
	}
	if shared > 0 {
		if err := driver.AllowShared(f, shared); err != nil {
			return 0, FunctionInfo{}, failure(err, "cuFuncSetAttribute(%s, %d bytes of shared memory; %s has %d)",
				name, shared, d.card.Name, d.card.SharedMemory)
		}
	}
	var info FunctionInfo
	for _, a := range []struct {
		attribute cu.FunctionAttribute
		to        *int
	}{
		{cu.NumRegs, &info.Registers},
		{cu.LocalSizeBytes, &info.Local},
		{cu.SharedSizeBytes, &info.Shared},
		{cu.FnMaxThreadsPerBlock, &info.MaxThreads},
	} {
		if *a.to, err = f.Attribute(a.attribute); err != nil {
			return 0, FunctionInfo{}, failure(err, "cuFuncGetAttribute(attribute %d, %s)", a.attribute, name)
		}
	}
	d.functions = append(d.functions, nativeFunction{f, m, name, info.MaxThreads})
	return Function(len(d.functions)), info, nil
}

// function returns a function whose module is loaded.
func (d *native) function(f Function) (*nativeFunction, error) {
	if f == 0 || f > Function(len(d.functions)) || d.functions[f-1].module == 0 {
		return nil, noHandle("function", uint64(f))
	}
	return &d.functions[f-1], nil
}

func (d *native) Blocks(f Function, threads, shared int) (int, error) {
	of, err := d.function(f)
	if err != nil {
		return 0, err
	}
	n, err := of.function.MaxActiveBlocksPerMultiProcessor(threads, int64(shared))
	return n, failure(err, "cuOccupancyMaxActiveBlocksPerMultiprocessor(%s, %d threads, %d bytes shared)", of.name, threads, shared)
}

func (d *native) Launch(l Launch, s Stream) error {
	on, err := d.stream(s)
	if err != nil {
		return err
	}
	f, err := d.function(l.Function)
	if err != nil {
		return err
	}
	if min(l.Grid[0], l.Grid[1], l.Grid[2], l.Block) < 1 || l.Block > f.threads || l.Shared < 0 || len(l.Args) > driver.MaxArgs {
		return fmt.Errorf("%w: cuda: launch of %s with grid %v, block %d of at most %d, %d bytes shared, %d arguments of at most %d",
			kernels.ErrDevice, f.name, l.Grid, l.Block, f.threads, l.Shared, len(l.Args), driver.MaxArgs)
	}
	if err := driver.Launch(f.function, l.Grid, l.Block, l.Shared, on, l.Args); err != nil {
		return failure(err, "cuLaunchKernel(%s, grid %v, block %d, %d bytes shared, %d arguments, stream %d)",
			f.name, l.Grid, l.Block, l.Shared, len(l.Args), s)
	}
	return nil
}

func (d *native) stream(s Stream) (cu.Stream, error) {
	if s == 0 || s > Stream(len(d.streams)) {
		return cu.Stream{}, noHandle("stream", uint64(s))
	}
	return d.streams[s-1], nil
}

func (d *native) event(e Event) (cu.Event, error) {
	if e == 0 || e > Event(len(d.events)) {
		return cu.Event{}, noHandle("event", uint64(e))
	}
	return d.events[e-1], nil
}

func (d *native) NewStream() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return 0, failure(err, "cuStreamCreate()")
	}
	d.streams = append(d.streams, s)
	return Stream(len(d.streams)), nil
}

func (d *native) Wait(s Stream) error {
	on, err := d.stream(s)
	if err != nil {
		return err
	}
	return failure(on.Synchronize(), "cuStreamSynchronize(stream %d)", s)
}

func (d *native) NewEvent() (Event, error) {
	e, err := cu.MakeEvent(cu.DefaultEvent)
	if err != nil {
		return 0, failure(err, "cuEventCreate()")
	}
	d.events = append(d.events, e)
	return Event(len(d.events)), nil
}

func (d *native) Record(e Event, s Stream) error {
	on, err := d.stream(s)
	if err != nil {
		return err
	}
	event, err := d.event(e)
	if err != nil {
		return err
	}
	return failure(event.Record(on), "cuEventRecord(event %d, stream %d)", e, s)
}

func (d *native) WaitEvent(s Stream, e Event) error {
	on, err := d.stream(s)
	if err != nil {
		return err
	}
	event, err := d.event(e)
	if err != nil {
		return err
	}
	return failure(on.Wait(event, 0), "cuStreamWaitEvent(stream %d, event %d)", s, e)
}

func (d *native) Elapsed(from, to Event) (float64, error) {
	first, err := d.event(from)
	if err != nil {
		return 0, err
	}
	last, err := d.event(to)
	if err != nil {
		return 0, err
	}
	milliseconds, err := first.Elapsed(last)
	if err != nil {
		return 0, failure(err, "cuEventElapsedTime(event %d, event %d)", from, to)
	}
	return milliseconds / 1e3, nil
}

func (d *native) Capture(s Stream) error {
	on, err := d.stream(s)
	if err != nil {
		return err
	}
	return failure(driver.Capture(on), "cuStreamBeginCapture(stream %d)", s)
}

func (d *native) Captured(s Stream) (Graph, error) {
	on, err := d.stream(s)
	if err != nil {
		return 0, err
	}
	g, err := driver.Captured(on)
	if err != nil {
		return 0, failure(err, "end of capture and cuGraphInstantiate(stream %d)", s)
	}
	d.captured++
	d.graphs[d.captured] = g
	return d.captured, nil
}

func (d *native) LaunchGraph(g Graph, s Stream) error {
	on, err := d.stream(s)
	if err != nil {
		return err
	}
	graph, ok := d.graphs[g]
	if !ok {
		return noHandle("graph", uint64(g))
	}
	return failure(graph.Launch(on), "cuGraphLaunch(graph %d, stream %d)", g, s)
}

func (d *native) FreeGraph(g Graph) error {
	graph, ok := d.graphs[g]
	if !ok {
		return noHandle("graph", uint64(g))
	}
	delete(d.graphs, g)
	return failure(graph.Destroy(), "cuGraphExecDestroy(graph %d)", g)
}
