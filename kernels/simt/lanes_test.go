package simt_test

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

// TestLoopLanes counts in each lane as far as the lane says, and stores from there.
func TestLoopLanes(t *testing.T) {
	b := simt.NewBuilder("count")
	x := b.Load(b.Input("x", simt.I32, simt.Columns, 1), 0)
	y := b.Output("y", simt.I32, simt.Rows, 2)
	one := b.Int(simt.I32, 1)
	end := b.Loop(1000, []simt.Value{b.Int(simt.I32, 0), x}, func(now []simt.Value) ([]simt.Value, simt.Value) {
		b.Store(y, 1, now[0])
		next := b.Add(now[0], one)
		return []simt.Value{next, b.Sub(now[1], one)}, b.Binary(simt.Lt, next, x)
	})
	b.Store(y, 0, b.Sub(end[0], end[1]))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	p, err := simt.Compile(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	const n = 600
	in, out := make([]int32, n), make([]int32, 2*n)
	for i := range in {
		in[i] = int32(i*37%1100 - 50)
	}
	if err := p.Run(t.Context(), 0, n, []any{in}, []any{out}); err != nil {
		t.Fatal(err)
	}
	for i, x := range in {
		turns := min(max(x, 1), 1000)
		if out[2*i] != 2*turns-x || out[2*i+1] != turns-1 {
			t.Errorf("lane %d, %d: difference %d and last turn %d, want %d and %d", i, x, out[2*i], out[2*i+1], 2*turns-x, turns-1)
		}
	}
}

// TestFMA32 has sums that lie so near a tie of float32 that float64 rounds them to it.
func TestFMA32(t *testing.T) {
	b := simt.NewBuilder("fma")
	in := b.Input("x", simt.F32, simt.Rows, 3)
	y := b.Output("y", simt.F32, simt.Rows, 1)
	b.Store(y, 0, b.FMA(b.Load(in, 0), b.Load(in, 1), b.Load(in, 2)))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	p, err := simt.Compile(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	const tiny = 0x1p-60 // 24929 · 673 is 2^24 + 1, where float32 has even numbers
	for _, c := range [][4]float32{
		{24929, 673, tiny, 1<<24 + 2}, {24929, 673, -tiny, 1 << 24}, {24929, 673, 0, 1 << 24},
		{-24929, 673, -tiny, -1<<24 - 2}, {-24929, 673, tiny, -1 << 24}, {3e38, 3e38, float32(math.Inf(-1)), float32(math.Inf(-1))},
	} {
		out := make([]float32, 1)
		if err := p.Run(t.Context(), 0, 1, []any{c[:3]}, []any{out}); err != nil {
			t.Fatal(err)
		}
		if out[0] != c[3] {
			t.Errorf("%v · %v + %v is %v, want %v", c[0], c[1], c[2], out[0], c[3])
		}
	}
}
