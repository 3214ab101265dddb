package cuda_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator"
)

// accountant is a card that counts what its driver has given out.
type accountant struct {
	*emulator.Emulator
	graphs, events, hosts, loads, unloads int
	shared                                []int // of the functions that were asked for
}

func (a *accountant) Captured(s cuda.Stream) (cuda.Graph, error) {
	g, err := a.Emulator.Captured(s)
	if err == nil {
		a.graphs++
	}
	return g, err
}

func (a *accountant) FreeGraph(g cuda.Graph) error {
	a.graphs--
	return a.Emulator.FreeGraph(g)
}

func (a *accountant) NewEvent() (cuda.Event, error) {
	a.events++
	return a.Emulator.NewEvent()
}

func (a *accountant) AllocHost(n int) ([]byte, error) {
	a.hosts++
	return a.Emulator.AllocHost(n)
}

func (a *accountant) Load(text []byte) (cuda.Module, error) {
	a.loads++
	return a.Emulator.Load(text)
}

func (a *accountant) Unload(m cuda.Module) error {
	a.unloads++
	return a.Emulator.Unload(m)
}

func (a *accountant) Function(m cuda.Module, name string, shared int) (cuda.Function, cuda.FunctionInfo, error) {
	a.shared = append(a.shared, shared)
	return a.Emulator.Function(m, name, shared)
}

// counted opens a device on a new accountant.
func counted(t *testing.T) (*cuda.Device, *accountant) {
	t.Helper()
	a := &accountant{Emulator: emulator.New(emulator.Options{Strict: true})}
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) { return a, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, a
}

// addText is a kernel that adds its control word, times scale, to 32 numbers.
func addText(scale int) []byte {
	return fmt.Appendf(nil, `.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry add(
	.param .u64 control,
	.param .u64 to
)
.maxntid 32, 1, 1
{
	.reg .b32 %%r<8>;
	.reg .b64 %%d<4>;
	ld.param.u64 %%d0, [control];
	ld.param.u64 %%d1, [to];
	mov.u32 %%r0, %%tid.x;
	mul.wide.u32 %%d2, %%r0, 4;
	add.u64 %%d1, %%d1, %%d2;
	ld.global.u32 %%r1, [%%d0];
	ld.global.u32 %%r2, [%%d1];
	mad.lo.u32 %%r2, %%r1, %d, %%r2;
	st.global.u32 [%%d1], %%r2;
	ret;
}
`, scale)
}

// adder is work that adds to a buffer, with its first number as the result.
type adder struct {
	to      *cuda.Buffer
	control cuda.Span
	work    *cuda.Work
	code    *cuda.Code
}

func newAdder(t *testing.T, d *cuda.Device) *adder {
	t.Helper()
	b, err := d.Alloc(t.Context(), kernels.Uint32, 32)
	if err != nil {
		t.Fatal(err)
	}
	a := &adder{}
	if a.to, err = d.Own(b); err != nil {
		t.Fatal(err)
	}
	err = d.Do(func(th *cuda.Thread) (err error) {
		if a.code, err = th.Load(addText(1)); err != nil {
			return err
		}
		f, err := th.Function(a.code, "add", 32, 0)
		if err != nil {
			return err
		}
		if a.control, err = th.Alloc(4); err != nil {
			return err
		}
		a.work, err = th.Record(a.control, cuda.Span{At: a.to.At(), Bytes: 4}, func() error {
			return th.Launch(cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 32, Args: []uint64{uint64(a.control.At), uint64(a.to.At())}})
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// start adds n, and finish is called then.
func (a *adder) start(d *cuda.Device, n uint32, finish func()) error {
	return d.Do(func(t *cuda.Thread) error {
		if err := t.Ready(a.work); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(a.work.Control, n)
		_, err := t.Start(a.work, []*cuda.Buffer{a.to}, finish)
		return err
	})
}

// TestWork starts one work again and again, with other control words, and wants each
// start to see its own, its result in time, and what was written before.
func TestWork(t *testing.T) {
	d, _ := counted(t)
	a, b := newAdder(t, d), newAdder(t, d)
	ctx := t.Context()
	var order []uint32
	if err := d.Write(ctx, a.to, 0, slices.Repeat([]uint32{1000}, 32)); err != nil {
		t.Fatal(err)
	}
	sum := uint32(1000)
	for n := range uint32(5) {
		sum += n
		want := sum
		if err := a.start(d, n, func() {
			order = append(order, n)
			if got := binary.LittleEndian.Uint32(a.work.Result); got != want {
				t.Errorf("start %d: result %d, want %d", n, got, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if err := b.start(d, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	err := d.Do(func(th *cuda.Thread) error {
		_, err := th.Start(a.work, nil, nil)
		return err
	})
	if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), "in flight") {
		t.Errorf("start of work in flight: %v", err)
	}
	for _, c := range []struct {
		from *adder
		want uint32
	}{{a, sum}, {b, 5}} {
		got := make([]uint32, 32)
		if err := d.Read(ctx, got, c.from.to, 0); err != nil || !slices.Equal(got, slices.Repeat([]uint32{c.want}, 32)) {
			t.Errorf("%v, %v; want %d", got, err, c.want)
		}
	}
	if !slices.Equal(order, []uint32{0, 1, 2, 3, 4}) {
		t.Errorf("starts finish as %v", order)
	}
}

// TestRecordFails wants a recording that fails to leave the device as it was.
func TestRecordFails(t *testing.T) {
	d, card := counted(t)
	a := newAdder(t, d)
	before := *card
	broken := errors.New("broken")
	for range 40 { // more than the graphs that share an allocation of pinned memory
		err := d.Do(func(th *cuda.Thread) error {
			_, err := th.Record(a.control, cuda.Span{}, func() error { return broken })
			return err
		})
		if !errors.Is(err, broken) {
			t.Fatalf("%v, want what the function returned", err)
		}
	}
	for _, c := range []struct {
		control, result int64
		good            bool
	}{{192, 64, true}, {193, 0, false}, {0, 65, false}, {0, 0, true}} {
		err := d.Do(func(th *cuda.Thread) error {
			s, err := th.Alloc(256)
			if err != nil {
				return err
			}
			w, err := th.Record(cuda.Span{At: s.At, Bytes: c.control}, cuda.Span{At: s.At, Bytes: c.result}, func() error { return nil })
			if err == nil {
				err = th.Drop(w)
			}
			return errors.Join(err, th.Settle(), th.Free(s))
		})
		if c.good != (err == nil) || err != nil && !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%d bytes of control words and %d of a result: %v", c.control, c.result, err)
		}
	}
	if card.graphs != before.graphs || card.hosts != before.hosts || card.events > before.events+1 {
		t.Errorf("%d graphs, %d allocations of the host and %d events; before %d, %d and %d",
			card.graphs, card.hosts, card.events, before.graphs, before.hosts, before.events)
	}
	if err := errors.Join(a.start(d, 7, nil), d.Sync(t.Context())); err != nil {
		t.Errorf("after failures: %v", err)
	}
}

// TestCode wants programs with one text to share its code, which stays for a while
// after the last of them, and no longer.
func TestCode(t *testing.T) {
	d, card := counted(t)
	const idle = 8
	err := d.Do(func(th *cuda.Thread) error {
		load := func(scale int) *cuda.Code {
			c, err := th.Load(addText(scale))
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		unload := func(c *cuda.Code) {
			if err := th.Unload(c); err != nil {
				t.Fatal(err)
			}
		}
		first, again := load(0), load(0)
		if first != again || card.loads != 1 {
			t.Errorf("the same text is loaded %d times", card.loads)
		}
		unload(again)
		for scale := 1; scale <= idle+1; scale++ {
			unload(load(scale))
		}
		if card.unloads != 1 { // that of 1
			t.Errorf("%d texts unloaded with %d idle ones, want 1", card.unloads, idle+1)
		}
		unload(first)
		if load(0) != first || card.loads != idle+2 {
			t.Errorf("code that was just given back is compiled again")
		}
		if unload(load(1)); card.loads != idle+3 {
			t.Errorf("code that was unloaded is still there")
		}
		for scale := 2; scale <= 2+idle; scale++ {
			unload(load(scale)) // none of these may push out what is in use
		}
		for i, c := range []struct{ shared, asked int }{{0, 1}, {0, 1}, {64, 2}, {16, 2}, {65, 3}} {
			if _, err := th.Function(first, "add", 32, c.shared); err != nil || len(card.shared) != c.asked {
				t.Errorf("function %d: asked for with shared memory %v, %v", i, card.shared, err)
			}
		}
		if _, err := th.Function(first, "add", 33, 0); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("blocks of more threads than the kernel has: %v", err)
		}
		if _, err := th.Function(first, "none", 1, 0); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("no such kernel: %v", err)
		}
		if _, err := th.Load([]byte("nonsense")); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("nonsense: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFaultInFree frees memory while a launch is in flight that writes behind the end of its buffer. Free returns no
// error, so the next call that waits does, once; or Close.
func TestFaultInFree(t *testing.T) {
	for _, c := range []struct {
		name string
		next func(d *cuda.Device, a *adder) error
	}{
		{"Read", func(d *cuda.Device, a *adder) error { return d.Read(t.Context(), make([]uint32, 1), a.to, 0) }},
		{"Sync", func(d *cuda.Device, _ *adder) error { return d.Sync(t.Context()) }},
		{"Close", func(d *cuda.Device, _ *adder) error { return d.Close() }},
	} {
		d, err := cuda.Open("emulator", func() (cuda.Driver, error) { return emulator.New(emulator.Options{Strict: true}), nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		a := newAdder(t, d)
		other, err := d.Alloc(t.Context(), kernels.Uint32, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Do(func(th *cuda.Thread) error {
			f, err := th.Function(a.code, "add", 32, 0)
			if err != nil {
				return err
			}
			w, err := th.Record(a.control, cuda.Span{}, func() error {
				return th.Launch(cuda.Launch{Function: f, Grid: [3]int{1, 1, 1}, Block: 32, Args: []uint64{uint64(a.control.At), uint64(a.to.At()) + 64}})
			})
			if err == nil {
				err = th.Ready(w)
			}
			if err == nil {
				_, err = th.Start(w, []*cuda.Buffer{a.to}, nil)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		other.Free()
		var fault *emulator.Fault
		if err := c.next(d, a); !errors.As(err, &fault) || fault.Kernel != "add" {
			t.Errorf("%s after a Free in which a launch failed: %v, want its fault", c.name, err)
		}
		if c.name == "Close" {
			continue
		}
		if err := errors.Join(d.Sync(t.Context()), a.start(d, 1, nil), d.Sync(t.Context())); err != nil {
			t.Errorf("%s: the fault comes twice: %v", c.name, err)
		}
	}
}
