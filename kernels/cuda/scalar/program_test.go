package scalar_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/scalar"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
)

func open(t *testing.T, o scalar.Options, seed uint64) *cuda.Device {
	t.Helper()
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) {
		return emulator.New(emulator.Options{Seed: seed, Strict: true}), nil
	}, cuda.Loaders{simt.Kind: executor.LoadWith(o)})
	check(t, err)
	return d
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// chain is a module that adds two columns and then multiplies often: more than one part, where parts
// have 16 instructions.
func chain(t *testing.T) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("chain")
	in, other := b.Input("x", simt.F32, simt.Columns, 2), b.Input("i", simt.I32, simt.Columns, 1)
	out := b.Output("y", simt.F32, simt.Columns, 1)
	x, y := b.Load(in, 0), b.Load(in, 1)
	sum := b.Add(x, y)
	first := sum
	for range 40 {
		sum = b.FMA(sum, b.Float(simt.F32, 0.5), b.Mul(first, x))
	}
	table := b.Table(simt.F32, []uint64{0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000, 0x40C00000, 0x40E00000, 0x41000000})
	b.Store(out, 0, b.Add(sum, b.Gather(table, b.Load(other, 0))))
	m, err := b.Module()
	check(t, err)
	return m
}

// TestProgram runs code on one block of rows and on many, for more sets of buffers than are kept, in
// one kernel and in parts whose scratch memory has room for fewer rows than a run; and looks at what
// it leaves alone, refuses and gives back.
func TestProgram(t *testing.T) {
	for seed, part := range []int{0, 16} {
		t.Run(fmt.Sprintf("part=%d", part), func(t *testing.T) {
			testProgram(t, scalar.Options{Threads: 32, Part: part, MaxScratch: 4 << 10}, uint64(seed))
		})
	}
}

func testProgram(t *testing.T, o scalar.Options, seed uint64) {
	const most = 1100
	ctx := t.Context()
	m := chain(t)
	d, foreign := open(t, o, seed), open(t, o, 0)
	defer foreign.Close()
	empty := d.InUse()
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, d, m)
	check(t, err)
	if parts, _, rows := executor.Inside(p); (o.Part != 0) != (parts > 1) || o.Part != 0 && (rows == 0 || rows >= most) {
		t.Fatalf("%d kernels, scratch memory for %d rows", parts, rows)
	}
	x, i := make([]float32, 2*most), make([]int32, most)
	for k := range x {
		x[k] = float32(k%17) / 16
	}
	for k := range i {
		i[k] = int32(k%11 - 1)
	}
	want := make([]float32, most)
	run, err := simt.Compile(m, 1)
	check(t, err)
	check(t, run.Run(ctx, 0, most, []any{x, i}, []any{want}))
	alloc := func(d *cuda.Device, typ kernels.DType, n int) kernels.Buffer {
		b, err := d.Alloc(ctx, typ, n)
		check(t, err)
		return b
	}
	in := []kernels.Buffer{alloc(d, kernels.Float32, 2*most), alloc(d, kernels.Int32, most)}
	check(t, d.Write(ctx, in[0], 0, x))
	check(t, d.Write(ctx, in[1], 0, i))
	var outs []kernels.Buffer
	for k, rows := range []int{1, 31, 32, 33, 64, 65, 200, 512, 513, most, most - 1, 1, 2, 3, 5, 9, 17, 1000, most} {
		out := alloc(d, kernels.Float32, most)
		outs = append(outs, out)
		if k%5 == 4 { // one that is known
			out = outs[0]
		}
		check(t, d.Write(ctx, out, 0, make([]float32, most)))
		check(t, p.Run(ctx, rows, in, []kernels.Buffer{out}))
		got := make([]float32, most)
		check(t, d.Read(ctx, got, out, 0))
		for r := range got {
			if r < rows && got[r] != want[r] || r >= rows && got[r] != 0 {
				t.Fatalf("run of %d rows: row %d is %v, want %v", rows, r, got[r], want[r])
			}
		}
	}
	if _, n, _ := executor.Inside(p); n != executor.MostWorks {
		t.Errorf("%d graphs are kept, want %d", n, executor.MostWorks)
	}
	// Runs of other numbers of rows follow each other without a wait of the host: each has its own.
	for range 2 { // the first makes graphs, and waits for those whose place they take
		for k, rows := range []int{70, 300, 1, most} {
			check(t, d.Write(ctx, outs[k], 0, make([]float32, most)))
			check(t, p.Run(ctx, rows, in, outs[k:k+1]))
		}
	}
	check(t, d.Write(ctx, outs[5], 0, []float32{1})) // all copies to the card come before this one, which is waited for
	check(t, d.Read(ctx, make([]float32, 1), outs[5], 0))
	for k, rows := range []int{70, 300, 1, most} {
		got := make([]float32, most)
		check(t, d.Read(ctx, got, outs[k], 0))
		if !slices.Equal(got[:rows], want[:rows]) || slices.ContainsFunc(got[rows:], func(x float32) bool { return x != 0 }) {
			t.Errorf("run %d of several, of %d rows, has other results", k, rows)
		}
	}
	out := outs[:1]
	other, short := alloc(foreign, kernels.Float32, most), alloc(d, kernels.Float32, 10)
	for what, err := range map[string]error{
		"no rows":           p.Run(ctx, 0, in, out),
		"too many rows":     p.Run(ctx, most+1, in, out),
		"one input":         p.Run(ctx, 1, in[:1], out),
		"no output":         p.Run(ctx, 1, in, nil),
		"a short column":    p.Run(ctx, 11, in, []kernels.Buffer{short}),
		"of another type":   p.Run(ctx, 1, []kernels.Buffer{in[0], in[0]}, out),
		"of another device": p.Run(ctx, 1, in, []kernels.Buffer{other}),
		"no module of code": func() error { _, err := executor.Load(ctx, d, wrong{}); return err }(),
	} {
		if !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%s: %v, want ErrDevice", what, err)
		}
	}
	check(t, p.Run(ctx, most, in, out)) // may be in flight when it is freed
	p.Free()
	p.Free()
	if err := p.Run(ctx, 1, in, out); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("after Free: %v, want ErrDevice", err)
	}
	for _, b := range append(append(outs, in...), short) {
		b.Free()
	}
	if after := d.InUse(); after != empty {
		t.Errorf("%d bytes in use in the end, %d at the start", after, empty)
	}
	check(t, d.Close())
}

// wrong is no module of code.
type wrong struct{}

func (wrong) ModuleKind() string { return simt.Kind }

// TestMemory refuses a program that the card has no room for, and leaves nothing there.
func TestMemory(t *testing.T) {
	b := simt.NewBuilder("large")
	table := make([]uint64, 1<<20)
	for i := range table {
		table[i] = uint64(i)
	}
	b.Store(b.Output("y", simt.F64, simt.Columns, 1), 0, b.Gather(b.Table(simt.F64, table), b.Load(b.Input("x", simt.I32, simt.Columns, 1), 0)))
	m, err := b.Module()
	check(t, err)
	if n, err := executor.Bytes(m); err != nil || n != 8<<20 {
		t.Errorf("Bytes: %d, %v, want %d", n, err, 8<<20)
	}
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) { return emulator.New(emulator.Options{Memory: 4 << 20}), nil }, cuda.Loaders{simt.Kind: executor.Load})
	check(t, err)
	defer d.Close()
	before := d.InUse()
	if _, err := d.Load(t.Context(), m); !errors.Is(err, kernels.ErrMemory) {
		t.Errorf("%v, want ErrMemory", err)
	}
	if after := d.InUse(); after != before {
		t.Errorf("%d bytes in use, %d before", after, before)
	}
}

// moody is a card whose driver refuses a launch of a graph, or says that a wait has failed, a number of times.
type moody struct {
	*emulator.Emulator
	launches, waits int
}

var errMoody = errors.New("not now")

func (m *moody) LaunchGraph(g cuda.Graph, s cuda.Stream) error {
	if m.launches > 0 {
		m.launches--
		return errMoody
	}
	return m.Emulator.LaunchGraph(g, s)
}

func (m *moody) Wait(s cuda.Stream) error {
	err := m.Emulator.Wait(s)
	if m.waits > 0 {
		m.waits--
		return errors.Join(errMoody, err)
	}
	return err
}

// TestRefused has a launch refused while the one before is in flight, and a wait before a graph is dropped, and wants
// later runs to be right.
func TestRefused(t *testing.T) {
	const most, few = 200, 40
	ctx := t.Context()
	card, m := &moody{Emulator: emulator.New(emulator.Options{Strict: true})}, chain(t)
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) { return card, nil }, cuda.Loaders{simt.Kind: executor.Load})
	check(t, err)
	defer d.Close()
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, d, m)
	check(t, err)
	x, i, want := make([]float32, 2*most), make([]int32, most), make([]float32, most)
	for k := range x {
		x[k] = float32(k%17) / 16
	}
	run, err := simt.Compile(m, 1)
	check(t, err)
	check(t, run.Run(ctx, 0, most, []any{x, i}, []any{want}))
	alloc := func(typ kernels.DType, n int) kernels.Buffer {
		b, err := d.Alloc(ctx, typ, n)
		check(t, err)
		return b
	}
	in := []kernels.Buffer{alloc(kernels.Float32, 2*most), alloc(kernels.Int32, most)}
	check(t, d.Write(ctx, in[0], 0, x))
	check(t, d.Write(ctx, in[1], 0, i))
	outs := make([]kernels.Buffer, executor.MostWorks+4)
	for k := range outs {
		outs[k] = alloc(kernels.Float32, most)
	}
	start := func(k, rows int) error { return p.Run(ctx, rows, in, outs[k:k+1]) }
	compare := func(k, rows int) {
		t.Helper()
		got := make([]float32, most)
		check(t, d.Read(ctx, got, outs[k], 0))
		if !slices.Equal(got[:rows], want[:rows]) || slices.ContainsFunc(got[rows:], func(x float32) bool { return x != 0 }) {
			t.Errorf("run %d, of %d rows, has other results", k, rows)
		}
	}
	check(t, start(0, most))
	card.launches = 1
	if err := start(1, most); !errors.Is(err, errMoody) {
		t.Errorf("%v, want what the driver says", err)
	}
	check(t, start(2, few))
	compare(0, most)
	compare(2, few)

	next := 3
	for ; ; next++ {
		if _, n, _ := executor.Inside(p); n == executor.MostWorks {
			break
		}
		check(t, start(next, most))
	}
	card.waits = 1
	if err := start(next, most); !errors.Is(err, errMoody) {
		t.Errorf("%v, want what the driver says", err)
	}
	for k := next; k < len(outs); k++ {
		check(t, start(k, most))
	}
	for k := next; k < len(outs); k++ {
		compare(k, most)
	}
	p.Free()
}
