package cpu_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
)

// TestCode runs a program of a row and a column input on one and on several threads, and
// looks at what it refuses and gives back.
func TestCode(t *testing.T) {
	b := simt.NewBuilder("test")
	x, n := b.Input("x", simt.F32, simt.Columns, 2), b.Input("n", simt.U8, simt.Rows, 3)
	y := b.Output("y", simt.F64, simt.Columns, 1)
	b.Store(y, 0, b.Convert(simt.F64, b.Add(b.Load(x, 1), b.Convert(simt.F32, b.Load(n, 2)))))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	const most = 2000
	generic, err := cpu.KernelPath("generic")
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 2, 5, -2} {
		o := cpu.Options{Threads: threads, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}}
		path := x86.Path()
		if path != "" {
			path = "avx2" // code of AVX-512 loads no rows of 24 bits
		}
		if os.Getenv("PCE_CPU") == "generic" {
			path = ""
		}
		if threads < 0 {
			o.Threads, o.Set, path = -threads, generic, ""
		}
		if path == "" {
			path = "interpreter"
		}
		d, err := cpu.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		p, err := kernels.LoadAs[kernels.CodeProgram](ctx, d, m)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.(interface{ Path() string }).Path(); got != path {
			t.Errorf("%d threads: the code runs by %s, want %s", threads, got, path)
		}
		alloc := func(kind kernels.DType, n int) kernels.Buffer {
			buf, err := d.Alloc(ctx, kind, n)
			if err != nil {
				t.Fatal(err)
			}
			return buf
		}
		in := []kernels.Buffer{alloc(kernels.Float32, 2*most), alloc(kernels.Uint8, 3*most)}
		out := []kernels.Buffer{alloc(kernels.Float64, most)}
		for r := range most {
			if err := errors.Join(d.Write(ctx, in[0], most+r, []float32{float32(r) / 4}), d.Write(ctx, in[1], 3*r+2, []uint8{uint8(r)})); err != nil {
				t.Fatal(err)
			}
		}
		done := 0
		for _, rows := range []int{1, 511, 512, 513, 1025, 1537, most} {
			if err := p.Run(ctx, rows, in, out); err != nil {
				t.Fatal(err)
			}
			done = rows
			got := make([]float64, most)
			if err := d.Read(ctx, got, out[0], 0); err != nil {
				t.Fatal(err)
			}
			for r, v := range got {
				want := float64(r)/4 + float64(uint8(r))
				if r >= done {
					want = 0
				}
				if v != want {
					t.Fatalf("%d threads, %d rows: row %d is %v, want %v", threads, rows, r, v, want)
				}
			}
		}
		for what, err := range map[string]error{
			"no rows":       p.Run(ctx, 0, in, out),
			"too many rows": p.Run(ctx, most+1, in, out),
			"no input":      p.Run(ctx, 1, nil, out),
			"other type":    p.Run(ctx, 1, []kernels.Buffer{in[1], in[0]}, out),
			"no such type":  p.Run(ctx, 1, []kernels.Buffer{alloc(kernels.Uint32, 2*most), in[1]}, out),
		} {
			if !errors.Is(err, kernels.ErrDevice) {
				t.Errorf("%s: %v, want ErrDevice", what, err)
			}
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := p.Run(ended, most, in, out); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context: %v", err)
		}
		before := d.InUse()
		p.Free()
		p.Free()
		if d.InUse() >= before {
			t.Errorf("%d bytes in use after Free, %d before", d.InUse(), before)
		}
		if err := p.Run(ctx, 1, in, out); !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("after Free: %v, want ErrDevice", err)
		}
	}
}

// TestCodeThreads runs code on so many threads that the rows are divided among fewer of them.
func TestCodeThreads(t *testing.T) {
	b := simt.NewBuilder("negative")
	x, y := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
	b.Store(y, 0, b.Unary(simt.Neg, b.Load(x, 0)))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	d, err := cpu.Open(cpu.Options{Threads: 4000, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, d, m)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Free()
	const rows = 2_048_001 // 4,000 shares of 513 are more than that
	list := make([]float32, rows)
	for r := range list {
		list[r] = float32(r)
	}
	buffer, err := d.Alloc(ctx, kernels.Float32, rows)
	if err != nil {
		t.Fatal(err)
	}
	bufs := []kernels.Buffer{buffer}
	if err := errors.Join(d.Write(ctx, buffer, 0, list), p.Run(ctx, rows, bufs, bufs), d.Read(ctx, list, buffer, 0)); err != nil {
		t.Fatal(err)
	}
	for r, v := range list {
		if v != -float32(r) {
			t.Fatalf("row %d: %v", r, v)
		}
	}
}

// TestPlanCode wants plans with room for what calls take on each kernel path, of values that are needed at a time, of parts that keep many
// of them, of a branch that machine code is made for, and of one that it is too long for.
func TestPlanCode(t *testing.T) {
	for _, c := range []struct {
		name         string
		values, live int
		branch       bool
	}{{"constants", 3000, 1, false}, {"values", 3000, 900, false}, {"parts", 60_000, 6000, false}, {"a short branch", 3000, 900, true}, {"a long branch", 450_000, 40, true}} {
		if testing.Short() && c.values > 100_000 { // it takes seconds until machine code for it is refused
			continue
		}
		b := simt.NewBuilder("plan")
		x, y := b.Input("x", simt.F64, simt.Columns, 1), b.Output("y", simt.F64, simt.Columns, 1)
		sums := func() []simt.Value {
			list := []simt.Value{b.Load(x, 0)}
			for i := range c.values {
				old := list[max(0, len(list)-c.live)]
				list = append(list, b.FMA(list[len(list)-1], b.Float(simt.F64, 1+1/float64(i+2)), old))
			}
			return list[len(list)-1:]
		}
		var v simt.Value
		if c.branch {
			first := b.Load(x, 0)
			v = b.If(b.Binary(simt.Eq, first, first), sums, func() []simt.Value { return []simt.Value{first} })[0]
		} else {
			v = sums()[0]
		}
		b.Store(y, 0, v)
		m, err := b.Module()
		if err != nil {
			t.Fatal(err)
		}
		run, err := simt.Compile(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range cpu.KernelPaths() {
			code, err := cpu.CompileCode(m, path, 1)
			if err != nil {
				t.Fatal(err)
			}
			call, program, err := cpu.PlanCode(m, path)
			if err != nil || call < code.Bytes() || program != run.ProgramBytes() {
				t.Errorf("%s, %s: planned were %d bytes of a call and %d of the program, %v; a call takes %d", c.name, path, call, program, err, code.Bytes())
			}
			if native := code.Path() != "interpreter"; native != (call < run.Bytes()) || !native && call != run.Bytes() {
				t.Errorf("%s, %s: planned were %d bytes of a call by %s, of the interpreter %d", c.name, path, call, code.Path(), run.Bytes())
			}
			code.Free()
		}
	}
}

// TestPlanBranches wants plans with room for what parts keep for each other where most instructions are within branches, none of which is a
// part's length.
func TestPlanBranches(t *testing.T) {
	b := simt.NewBuilder("branches")
	x, y := b.Input("x", simt.F64, simt.Columns, 1), b.Output("y", simt.F64, simt.Columns, 1)
	v := b.Load(x, 0)
	for range 200 {
		first := v
		v = b.If(b.Binary(simt.Lt, first, b.Float(simt.F64, 3)), func() []simt.Value {
			sum := first
			for i := range 200 {
				sum = b.FMA(sum, b.Float(simt.F64, 1+1/float64(i+2)), first)
			}
			return []simt.Value{sum}
		}, func() []simt.Value { return []simt.Value{first} })[0]
	}
	b.Store(y, 0, v)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cpu.KernelPaths() {
		code, err := cpu.CompileCode(m, path, 1)
		if err != nil {
			t.Fatal(err)
		}
		if call, _, err := cpu.PlanCode(m, path); err != nil || call < code.Bytes() {
			t.Errorf("%s: planned were %d bytes of a call, %v; a call takes %d", path, call, err, code.Bytes())
		}
		code.Free()
	}
}
