package nest_test

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/nest"
	"github.com/pce-engine/pce/kernels/simt"
)

// adder is a kernel that adds a row's cell and the number of trees that it is told.
func adder(t *testing.T) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("adder")
	x, sums := b.Input("x", simt.F32, simt.Rows, 1), b.Input("sums", simt.F64, simt.Columns, 2)
	first, end := b.Input("first", simt.I32, simt.Columns, 1), b.Input("end", simt.I32, simt.Columns, 1)
	trees := b.Convert(simt.F64, b.Sub(b.Load(end, 0), b.Load(first, 0)))
	total := b.Output("total", simt.F64, simt.Columns, 2)
	b.Store(total, 0, b.Add(b.Load(sums, 0), b.Add(b.Convert(simt.F64, b.Load(x, 0)), trees)))
	b.Store(total, 1, b.Add(b.Load(sums, 1), trees))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestOnDevice runs loops over trees around a kernel on a device, for calls that grow its buffers and for smaller ones
// after them, beyond the rows that are there at a time; and refuses loops over rows and calls after Free.
func TestOnDevice(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	before := dev.InUse()
	kernel := nest.Item{Kernel: &nest.Kernel{Code: adder(t), Trees: true}}
	load := func(k *nest.Kernel) kernels.Module { return k.Code }
	m := &nest.Module{Features: 1, Outputs: 2, Trees: 5, Sum: simt.F64, Body: []nest.Item{{Loop: &nest.Loop{Step: 2, Body: []nest.Item{kernel}}}, kernel}}
	p, err := nest.NewOn(t.Context(), dev, m, load)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{0, 1, 3, 1000, 2, 1<<18 + 7, 1} {
		x, sums := make([]float32, rows), make([]float64, 2*rows)
		for i := range x {
			x[i], sums[2*i+1] = float32(i%100)/4, float64(i)
		}
		if err := nest.Sums(t.Context(), p, x, sums); err != nil {
			t.Fatal(err)
		}
		for i := range x { // three launches of a loop and one more, each adds the cell
			if want := 4*float64(x[i]) + 10; math.Float64bits(sums[2*i]) != math.Float64bits(want) || sums[2*i+1] != float64(i)+10 {
				t.Fatalf("row %d of %d: sums %v, want %v and %v", i, rows, sums[2*i:2*i+2], want, float64(i)+10)
			}
		}
	}
	p.Free()
	p.Free()
	if after := dev.InUse(); after != before {
		t.Errorf("%d bytes in use after Free, %d before", after, before)
	}
	if err := nest.Sums(t.Context(), p, make([]float32, 1), make([]float64, 2)); !errors.Is(err, nest.ErrModule) {
		t.Errorf("a call after Free: %v, want ErrModule", err)
	}
	for name, item := range map[string]nest.Item{
		"tiles of rows":  {Loop: &nest.Loop{Rows: true, Step: 2, Body: []nest.Item{kernel}}},
		"some rows":      {Skip: 1, Kernel: kernel.Kernel},
		"the first rows": {Most: 1, Kernel: kernel.Kernel},
	} {
		if _, err := nest.NewOn(t.Context(), dev, &nest.Module{Features: 1, Outputs: 2, Trees: 5, Sum: simt.F64, Body: []nest.Item{item}}, load); !errors.Is(err, nest.ErrModule) {
			t.Errorf("%s: %v, want ErrModule", name, err)
		}
	}
}
