package x86

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// same is sameWith without options.
func same(t testing.TB, rng *rand.Rand, m *simt.Module, rows, lo, hi int) bool {
	t.Helper()
	return sameWith(t, rng, m, Options{}, rows, lo, hi)
}

// sameWith is sameAs with the instructions of the machine.
func sameWith(t testing.TB, rng *rand.Rand, m *simt.Module, o Options, rows, lo, hi int) bool {
	t.Helper()
	return sameAs(t, rng, m, Path(), o, rows, lo, hi)
}

// sameAs runs rows lo to hi of a module by native code of a set of instructions and by the interpreter, and reports the first
// element that differs.
func sameAs(t testing.TB, rng *rand.Rand, m *simt.Module, set string, o Options, rows, lo, hi int) bool {
	t.Helper()
	p, err := CompileWith(m, 1, set, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Free()
	run, err := simt.Compile(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := simttest.Buffers(rng, m, rows)
	// Outputs hold something, which rows that the program does not store keep.
	seed := rng.Uint64()
	filled := func() []any {
		all, _ := simttest.Buffers(rand.New(rand.NewPCG(seed, 0)), &simt.Module{Inputs: m.Outputs}, rows)
		return all
	}
	got, want := filled(), filled()
	if err := p.Run(t.Context(), lo, hi, in, got); err != nil {
		t.Fatal(err)
	}
	if err := run.Run(t.Context(), lo, hi, in, want); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		q := m.Outputs[i]
		for k := range rows * q.Width {
			if g, w := simttest.ElementBits(got[i], k), simttest.ElementBits(want[i], k); g != w {
				row, col := k%rows, k/rows
				if q.Layout == simt.Rows {
					row, col = k/q.Width, k%q.Width
				}
				t.Errorf("rows %d to %d of %d: %s, row %d, column %d has the bits %#x, want %#x", lo, hi, rows, q.Name, row, col, g, w)
				return false
			}
		}
	}
	return true
}

func needCode(t testing.TB) {
	t.Helper()
	if Path() == "" {
		t.Skip("SKIPPED: native code wants Linux and a processor with AVX2 and FMA; the interpreter's own tests run in kernels/simt")
	}
}

// TestRandom compares random programs with the interpreter.
func TestRandom(t *testing.T) {
	needCode(t)
	programs := 1000
	if testing.Short() {
		programs = 300
	}
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		m := simttest.Random(t, rng, 1+rng.IntN(120))
		rows := 1 + rng.IntN(40)
		lo := rng.IntN(rows)
		if !same(t, rng, m, rows, lo, lo+1+rng.IntN(rows-lo)) {
			t.Fatalf("seed %d:\n%s", seed, m.Text())
		}
	}
}

// TestRandomParts compares random programs in parts with the interpreter, in tiles of as few rows as there are.
func TestRandomParts(t *testing.T) {
	needCode(t)
	defer func(n int) { keptBytes = n }(keptBytes)
	keptBytes = 1
	programs := 600
	if testing.Short() {
		programs = 100
	}
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 4))
		m := simttest.Random(t, rng, 30+rng.IntN(120))
		switch seed % 3 {
		case 0:
			m = simttest.Short(t, rng, 30+rng.IntN(120))
		case 1:
			m = simttest.Numbers(t, rng, 30+rng.IntN(120))
		}
		rows := 1 + rng.IntN(300)
		lo := rng.IntN(rows)
		if limit := 1 + rng.IntN(60); !sameWith(t, rng, m, Options{Part: limit}, rows, lo, lo+1+rng.IntN(rows-lo)) {
			t.Fatalf("seed %d, parts of %d:\n%s", seed, limit, m.Text())
		}
	}
}

// sets returns the sets of instructions that this machine has.
func sets() []string {
	if Path() == avx512.name {
		return []string{avx2.name, avx512.name}
	}
	return []string{avx2.name}
}

// TestRandomShapes compares random programs of each shape with the interpreter.
func TestRandomShapes(t *testing.T) {
	needCode(t)
	for _, s := range []struct {
		shape
		draw func(testing.TB, *rand.Rand, int) *simt.Module
	}{{avx2, simttest.Short}, {avx2q, simttest.Numbers}, {avx512, simttest.Short}, {avx512q, simttest.Numbers}} {
		t.Run(fmt.Sprintf("%s of %d", s.name, s.lanes), func(t *testing.T) {
			if s.evex && Path() != avx512.name {
				t.Skip("SKIPPED: wants AVX-512 with VBMI")
			}
			randomShape(t, s.shape, s.draw)
		})
	}
}

func randomShape(t *testing.T, s shape, draw func(testing.TB, *rand.Rand, int) *simt.Module) {
	programs := 1000
	if testing.Short() {
		programs = 200
	}
	for seed := range programs {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		m := draw(t, rng, 1+rng.IntN(120))
		if shapeOf(m, s.name) != s {
			t.Fatalf("seed %d has no code of %d lanes:\n%s", seed, s.lanes, m.Text())
		}
		rows := 1 + rng.IntN(90)
		lo := rng.IntN(rows)
		if o := (Options{Gathers: seed%3 == 0}); !sameAs(t, rng, m, s.name, o, rows, lo, lo+1+rng.IntN(rows-lo)) {
			t.Fatalf("seed %d, %+v:\n%s", seed, o, m.Text())
		}
	}
}

// FuzzBackEnds compares random programs with the interpreter.
func FuzzBackEnds(f *testing.F) {
	f.Add(uint64(1), uint8(50), uint8(9))
	f.Fuzz(func(t *testing.T, seed uint64, size, rows uint8) {
		needCode(t)
		rng := rand.New(rand.NewPCG(seed, 2))
		m := simttest.Random(t, rng, 1+int(size))
		switch seed % 3 {
		case 1:
			m = simttest.Short(t, rng, 1+int(size))
		case 2:
			m = simttest.Numbers(t, rng, 1+int(size))
		}
		n := 1 + int(rows)
		lo := rng.IntN(n)
		if !same(t, rng, m, n, lo, lo+rng.IntN(n-lo+1)) {
			t.Fatalf("%s", m.Text())
		}
	})
}
