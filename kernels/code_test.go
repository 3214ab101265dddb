package kernels_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
)

// sumKind is a second kind of module, beside the tensor programs of circuits.
const sumKind = "sum of columns"

// sumModule becomes a kernels.CodeProgram that adds two columns of float32.
type sumModule struct{ rows int } // the most of a call

func (sumModule) ModuleKind() string { return sumKind }

// columns checks the arguments of a call of a sumModule's program.
func (m sumModule) columns(rows int, in, out []kernels.Buffer) error {
	if rows < 1 || rows > m.rows || len(in) != 2 || len(out) != 1 {
		return fmt.Errorf("%w: sum of %d columns in %d for %d rows; want 2 in 1 for 1..%d", kernels.ErrDevice, len(in), len(out), rows, m.rows)
	}
	for _, b := range append(in[:2:2], out...) {
		if b.DType() != kernels.Float32 || b.Len() < rows {
			return fmt.Errorf("%w: sum of %d rows: a column has %d elements of %v", kernels.ErrDevice, rows, b.Len(), b.DType())
		}
	}
	return nil
}

// errFreed is the answer to calls after Free.
var errFreed = fmt.Errorf("%w: sum of columns: the program was freed", kernels.ErrDevice)

// cpuSum is the program on the CPU.
type cpuSum struct {
	sumModule
	dev *cpu.Device // nil once it is freed
}

func loadCPUSum(_ context.Context, d *cpu.Device, m kernels.Module) (kernels.Program, error) {
	return &cpuSum{m.(sumModule), d}, nil
}

func (p *cpuSum) Free() { p.dev = nil }

func (p *cpuSum) Run(_ context.Context, rows int, in, out []kernels.Buffer) error {
	if p.dev == nil {
		return errFreed
	}
	if err := p.columns(rows, in, out); err != nil {
		return err
	}
	var columns [3][]float32
	for i, b := range append(in[:2:2], out...) {
		own, err := p.dev.Own(b)
		if err != nil {
			return err
		}
		columns[i] = cpu.Elements[float32](own)
	}
	for r := range rows {
		columns[2][r] = columns[0][r] + columns[1][r]
	}
	return nil
}

// TestSecondKindOnCPU loads and runs a kind of program that is no circuit's.
func TestSecondKindOnCPU(t *testing.T) {
	open := func(t *testing.T) kernels.Device {
		d, err := cpu.Open(cpu.Options{Loaders: cpu.Loaders{sumKind: loadCPUSum}})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	testSecondKind(t, open)
}

// tensorModule is a module of the first kind, for a device that has no loader for it.
type tensorModule struct{}

func (tensorModule) ModuleKind() string { return "tensor" }

// testSecondKind runs the program on one block of rows and on several, in order, and
// looks at what it leaves alone, refuses and gives back.
func testSecondKind(t *testing.T, open func(t *testing.T) kernels.Device) {
	const most = 300
	ctx := t.Context()
	dev, other := open(t), open(t)
	defer other.Close()
	usage := dev.(kernels.Usage)
	empty := usage.InUse()
	if _, err := dev.Load(ctx, tensorModule{}); !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), sumKind) {
		t.Errorf("a tensor program: %v, want ErrDevice and the kind that is loaded", err)
	}
	p, err := kernels.LoadAs[kernels.CodeProgram](ctx, dev, sumModule{most})
	if err != nil {
		t.Fatal(err)
	}
	alloc := func(d kernels.Device, kind kernels.DType, n int) kernels.Buffer {
		t.Helper()
		b, err := d.Alloc(ctx, kind, n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var columns [4]kernels.Buffer
	var want [4][]float32
	for i := range columns {
		columns[i], want[i] = alloc(dev, kernels.Float32, most), make([]float32, most)
		for r := range most {
			want[i][r] = float32((i+1)*(r+1)) / 8
		}
		if err := dev.Write(ctx, columns[i], 0, want[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range []struct{ rows, x, y, out int }{{1, 0, 1, 2}, {127, 1, 2, 3}, {128, 3, 3, 2}, {129, 2, 1, 0}, {most, 0, 3, 1}, {most, 1, 1, 1}} {
		if err := p.Run(ctx, call.rows, []kernels.Buffer{columns[call.x], columns[call.y]}, []kernels.Buffer{columns[call.out]}); err != nil {
			t.Fatal(err)
		}
		for r := range call.rows {
			want[call.out][r] = want[call.x][r] + want[call.y][r]
		}
	}
	for i, b := range columns {
		got := make([]float32, most)
		if err := dev.Read(ctx, got, b, 0); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[i]) {
			t.Errorf("column %d is %v, want %v", i, got, want[i])
		}
	}
	in, out := columns[:2], columns[2:3]
	foreign := alloc(other, kernels.Float32, most)
	short, wrong := alloc(dev, kernels.Float32, most-1), alloc(dev, kernels.Int32, most)
	for what, err := range map[string]error{
		"no rows":            p.Run(ctx, 0, in, out),
		"too many rows":      p.Run(ctx, most+1, in, out),
		"one column":         p.Run(ctx, 1, in[:1], out),
		"no column out":      p.Run(ctx, 1, in, nil),
		"a short column":     p.Run(ctx, most, in, []kernels.Buffer{short}),
		"a column of int32":  p.Run(ctx, 1, []kernels.Buffer{columns[0], wrong}, out),
		"of another device":  p.Run(ctx, 1, []kernels.Buffer{columns[0], foreign}, out),
		"into what it lacks": p.Run(ctx, 1, in, []kernels.Buffer{foreign}),
	} {
		if !errors.Is(err, kernels.ErrDevice) {
			t.Errorf("%s: %v, want ErrDevice", what, err)
		}
	}
	if err := p.Run(ctx, most, in, out); err != nil { // may be in flight when it is freed
		t.Error(err)
	}
	p.Free()
	p.Free()
	got := make([]float32, most)
	if err := dev.Read(ctx, got, out[0], 0); err != nil {
		t.Fatal(err)
	}
	for r := range most {
		if sum := want[0][r] + want[1][r]; got[r] != sum {
			t.Fatalf("row %d is %v after Free, want %v", r, got[r], sum)
		}
	}
	if err := p.Run(ctx, 1, in, out); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("after Free: %v, want ErrDevice", err)
	}
	for _, b := range append(columns[:], short, wrong) {
		b.Free()
	}
	if after := usage.InUse(); after != empty {
		t.Errorf("%d bytes in use in the end, %d at the start", after, empty)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
