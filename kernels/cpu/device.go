package cpu

import (
	"context"
	"fmt"
	"runtime"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/layers"
)

// Options choose how the device runs.
type Options struct {
	Threads int        // 0: as many as the Go runtime may use
	Set     *micro.Set // nil: the fastest, or the one that PCE_CPU names
}

// Device is the CPU as a kernels.Device.
type Device struct {
	threads int
	set     *micro.Set
}

var _ kernels.Device = (*Device)(nil)

// Open returns the CPU device.
func Open(o Options) (*Device, error) {
	d := &Device{threads: o.Threads, set: o.Set}
	if d.threads <= 0 {
		d.threads = runtime.GOMAXPROCS(0)
	}
	if d.set == nil {
		set, err := micro.Select()
		if err != nil {
			return nil, err
		}
		d.set = set
	}
	return d, nil
}

// Info describes the device.
func (d *Device) Info() kernels.Info {
	return kernels.Info{Name: "cpu", KernelPath: d.set.Name, Threads: d.threads, Mixed: mixedBlock(d.set) > 0, MixedBlock: mixedBlock(d.set), MixedUnits: d.set.HalfUnits}
}

// Close releases nothing: buffers are garbage-collected.
func (d *Device) Close() error { return nil }

// Sync returns at once: launches are synchronous.
func (d *Device) Sync(context.Context) error { return nil }

// buffer is memory of one element type, aligned to a cache line.
type buffer struct {
	dtype  kernels.DType
	n      int
	writes int // from outside, so far
	f32    []float32
	f64    []float64
	i64    []int64
	u16    []uint16
	u32    []uint32
}

func (b *buffer) DType() kernels.DType { return b.dtype }
func (b *buffer) Len() int             { return b.n }
func (b *buffer) Free()                { *b = buffer{dtype: b.dtype} }

// Alloc returns n zeroed elements.
func (d *Device) Alloc(_ context.Context, t kernels.DType, n int) (kernels.Buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("%w: cpu: alloc of %d elements", kernels.ErrDevice, n)
	}
	b := &buffer{dtype: t, n: n}
	switch t {
	case kernels.Float32:
		b.f32 = aligned[float32](n)
	case kernels.Float64:
		b.f64 = aligned[float64](n)
	case kernels.Int64:
		b.i64 = aligned[int64](n)
	case kernels.Uint16:
		b.u16 = aligned[uint16](n)
	case kernels.Uint32:
		b.u32 = aligned[uint32](n)
	default:
		return nil, fmt.Errorf("%w: cpu: alloc of unknown type %d", kernels.ErrDevice, t)
	}
	return b, nil
}

// Write copies src to the buffer at offset.
func (d *Device) Write(_ context.Context, dst kernels.Buffer, offset int, src any) error {
	b, err := own(dst)
	if err != nil {
		return err
	}
	b.writes++
	switch s := src.(type) {
	case []float32:
		return move(b, kernels.Float32, offset, len(s), func() { copy(b.f32[offset:], s) })
	case []float64:
		return move(b, kernels.Float64, offset, len(s), func() { copy(b.f64[offset:], s) })
	case []int64:
		return move(b, kernels.Int64, offset, len(s), func() { copy(b.i64[offset:], s) })
	case []uint16:
		return move(b, kernels.Uint16, offset, len(s), func() { copy(b.u16[offset:], s) })
	case []uint32:
		return move(b, kernels.Uint32, offset, len(s), func() { copy(b.u32[offset:], s) })
	}
	return fmt.Errorf("%w: cpu: write from %T", kernels.ErrDevice, src)
}

// Read copies from the buffer at offset to dst.
func (d *Device) Read(_ context.Context, dst any, src kernels.Buffer, offset int) error {
	b, err := own(src)
	if err != nil {
		return err
	}
	switch s := dst.(type) {
	case []float32:
		return move(b, kernels.Float32, offset, len(s), func() { copy(s, b.f32[offset:]) })
	case []float64:
		return move(b, kernels.Float64, offset, len(s), func() { copy(s, b.f64[offset:]) })
	case []int64:
		return move(b, kernels.Int64, offset, len(s), func() { copy(s, b.i64[offset:]) })
	case []uint16:
		return move(b, kernels.Uint16, offset, len(s), func() { copy(s, b.u16[offset:]) })
	case []uint32:
		return move(b, kernels.Uint32, offset, len(s), func() { copy(s, b.u32[offset:]) })
	}
	return fmt.Errorf("%w: cpu: read to %T", kernels.ErrDevice, dst)
}

func own(b kernels.Buffer) (*buffer, error) {
	c, ok := b.(*buffer)
	if !ok {
		return nil, fmt.Errorf("%w: cpu: buffer of another device (%T)", kernels.ErrDevice, b)
	}
	return c, nil
}

func move(b *buffer, t kernels.DType, offset, n int, do func()) error {
	if b.dtype != t || offset < 0 || n > b.n-offset {
		return fmt.Errorf("%w: cpu: copy of %d elements of type %d at %d of a buffer of %d of type %d", kernels.ErrDevice, n, t, offset, b.n, b.dtype)
	}
	do()
	return nil
}

// kernel is an entry point of a loaded program.
type kernel struct {
	name string
	exec *executor
}

func (k *kernel) KernelName() string { return k.name }

// Load plans a program for this device and makes its workspace.
func (d *Device) Load(_ context.Context, m kernels.Module) (map[string]kernels.Kernel, error) {
	mod, ok := m.(layers.Module)
	if !ok {
		return nil, fmt.Errorf("%w: cpu: module of kind %q; want a tensor program", kernels.ErrDevice, m.ModuleKind())
	}
	if mod.Rows < 1 || mod.Rows > 1<<20 {
		return nil, fmt.Errorf("%w: cpu: %d rows a launch, want 1..%d", kernels.ErrDevice, mod.Rows, 1<<20)
	}
	x := newExecutor(mod, d.set, d.threads)
	ks := make(map[string]kernels.Kernel)
	for _, name := range []string{kernels.Forward, kernels.Sample, kernels.Inspect} {
		ks[name] = &kernel{name, x}
	}
	if mod.Train {
		ks[kernels.Backward] = &kernel{kernels.Backward, x}
		ks[kernels.Step] = &kernel{kernels.Step, x}
		ks[kernels.Update] = &kernel{kernels.Update, x}
	}
	return ks, nil
}

// Launch runs a kernel and returns when it has finished.
func (d *Device) Launch(_ context.Context, k kernels.Kernel, rows int, args ...kernels.Arg) error {
	kn, ok := k.(*kernel)
	if !ok || len(args) != 1 {
		return fmt.Errorf("%w: cpu: launch of %T with %d arguments", kernels.ErrDevice, k, len(args))
	}
	if rows < 1 || rows > kn.exec.rowsMax {
		return fmt.Errorf("%w: cpu: launch of %s on %d rows, want 1..%d", kernels.ErrDevice, kn.name, rows, kn.exec.rowsMax)
	}
	switch a := args[0].(type) {
	case *kernels.ForwardArgs:
		return kn.exec.forward(rows, a)
	case *kernels.BackwardArgs:
		return kn.exec.backward(rows, a)
	case *kernels.StepArgs:
		if err := kn.exec.forward(rows, &a.ForwardArgs); err != nil {
			return err
		}
		return kn.exec.backward(rows, &kernels.BackwardArgs{Params: a.Params, Codes: a.Codes, Values: a.Values, Flows: a.Flows, Rule: a.Rule})
	case *kernels.UpdateArgs:
		return kn.exec.update(a)
	case *kernels.SampleArgs:
		return kn.exec.sample(rows, a)
	case *kernels.InspectArgs:
		return kn.exec.inspect(rows, a)
	}
	return fmt.Errorf("%w: cpu: launch of %s with %T", kernels.ErrDevice, kn.name, args[0])
}
