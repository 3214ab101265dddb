package scalar_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/scalar"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// open opens an emulator that looks for races between blocks and does its work at any time, with a
// loader of code under options, which has scratch memory for the few rows of tests.
func open(t testing.TB, o scalar.Options, seed uint64) *cuda.Device {
	t.Helper()
	o.MaxScratch = 1 << 20
	d, err := cuda.Open("emulator", func() (cuda.Driver, error) {
		return emulator.New(emulator.Options{Seed: seed, Strict: true, Threads: 1}), nil
	}, cuda.Loaders{simt.Kind: executor.LoadWith(o)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// upload makes buffers of slices.
func upload(t testing.TB, d kernels.Device, slices []any) []kernels.Buffer {
	t.Helper()
	var all []kernels.Buffer
	for _, s := range slices {
		dtype, n, _, ok := kernels.View(s)
		if !ok {
			t.Fatalf("no buffer holds a %T", s)
		}
		b, err := d.Alloc(t.Context(), dtype, n)
		check(t, err)
		check(t, d.Write(t.Context(), b, 0, s))
		all = append(all, b)
	}
	return all
}

// same runs the first rows of a module on an emulator and by the interpreter, and reports the first
// element that differs. The buffers have room for more rows, which no one may touch.
func same(t testing.TB, rng *rand.Rand, d *cuda.Device, m *simt.Module, rows, room int) bool {
	t.Helper()
	in, _ := simttest.Buffers(rng, m, room)
	return compare(t, d, rng.Uint64(), m, in, rows, room)
}

// compare is same with given inputs.
func compare(t testing.TB, d *cuda.Device, seed uint64, m *simt.Module, in []any, rows, room int) bool {
	t.Helper()
	filled := func() []any { // outputs hold something, which rows that are not stored keep
		all, _ := simttest.Buffers(rand.New(rand.NewPCG(seed, 0)), &simt.Module{Inputs: m.Outputs}, room)
		return all
	}
	got, want := filled(), filled()
	run, err := simt.Compile(m, 1)
	check(t, err)
	check(t, run.Run(t.Context(), 0, rows, in, want))
	p, err := kernels.LoadAs[kernels.CodeProgram](t.Context(), d, m)
	check(t, err)
	defer p.Free()
	ins, outs := upload(t, d, in), upload(t, d, got)
	for _, b := range append(ins, outs...) {
		defer b.Free()
	}
	check(t, p.Run(t.Context(), rows, ins, outs))
	for i, b := range outs {
		check(t, d.Read(t.Context(), got[i], b, 0))
	}
	for i := range want {
		q := m.Outputs[i]
		for k := range room * q.Width {
			if g, w := simttest.ElementBits(got[i], k), simttest.ElementBits(want[i], k); g != w {
				row, col := k%room, k/room
				if q.Layout == simt.Rows {
					row, col = k/q.Width, k%q.Width
				}
				t.Errorf("%d rows of %d: %s, row %d, column %d has the bits %#x, want %#x", rows, room, q.Name, row, col, g, w)
				return false
			}
		}
	}
	return true
}

// switches are options that must all give the same bits.
var switches = []scalar.Options{
	{},
	{Threads: 32, Cascade: -1, Staging: scalar.Always},
	{Threads: 512, Cascade: 256, Staging: scalar.Never, Major: 9},
	{Threads: 64, Cascade: 9, Staging: scalar.Always, Part: 16},
	{Threads: 256, Part: 30},
	{Threads: 32, Cascade: -1, Shared: true},
	{Threads: 64, Part: 50, Roll: scalar.Always},
}

// TestRandom compares random programs with the interpreter, under every switch.
func TestRandom(t *testing.T) {
	programs := 240
	if testing.Short() {
		programs = 32
	}
	var devices []*cuda.Device
	for i, o := range switches {
		devices = append(devices, open(t, o, uint64(i)))
	}
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 11))
		random := simttest.Random
		if seed%4 == 3 {
			random = simttest.Short
		}
		m := random(t, rng, 1+rng.IntN(120))
		rows := 1 + rng.IntN(70)
		k := seed / 4 % len(switches)
		if !same(t, rng, devices[k], m, rows, rows+rng.IntN(3)) {
			t.Fatalf("seed %d, %+v:\n%s", seed, switches[k], m.Text())
		}
	}
}

// FuzzBackEnds compares random programs with the interpreter.
func FuzzBackEnds(f *testing.F) {
	f.Add(uint64(1), uint8(50), uint8(9))
	f.Fuzz(func(t *testing.T, seed uint64, size, rows uint8) {
		rng := rand.New(rand.NewPCG(seed, 12))
		m := simttest.Random(t, rng, 1+int(size))
		if o := switches[seed%uint64(len(switches))]; !same(t, rng, open(t, o, seed%3), m, 1+int(rows), 2+int(rows)) {
			t.Fatalf("%+v:\n%s", o, m.Text())
		}
	})
}
