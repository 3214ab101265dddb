package simt_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// interpret runs a module with the interpreter.
func interpret(t testing.TB, m *simt.Module, rows int, in, out []any) {
	t.Helper()
	p, err := simt.Compile(m, 1)
	if err != nil {
		t.Fatalf("%v\n%s", err, m.Text())
	}
	if err := p.Run(t.Context(), 0, rows, in, out); err != nil {
		t.Fatal(err)
	}
}

// keep makes memory for what parts keep.
func keep(t testing.TB, p *simt.Parts, rows int) []any {
	t.Helper()
	kept, _ := simttest.Buffers(rand.New(rand.NewPCG(1, 1)), &simt.Module{Inputs: p.Kept}, rows)
	return kept
}

// TestSplit runs random modules in parts of a few instructions, one after the other, and wants the bits of the whole
// module.
func TestSplit(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	several, fewer := 0, 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := simttest.Random(t, rng, 20+rng.IntN(150))
		if seed%3 == 0 {
			m = simttest.Short(t, rng, 20+rng.IntN(150))
		}
		limit := 1 + rng.IntN(60)
		p := simt.Split(m, limit)
		if p.Crossings > p.First {
			t.Errorf("seed %d: %d values cross, %d before", seed, p.Crossings, p.First)
		}
		if p.Crossings < p.First {
			fewer++
		}
		if p.Count > 1 {
			several++
		}
		const rows = 37
		in, want := simttest.Buffers(rng, m, rows)
		_, got := simttest.Buffers(rng, m, rows)
		for i := range want {
			copyAll(got[i], want[i])
		}
		kept := keep(t, p, rows)
		interpret(t, m, rows, in, want)
		for _, part := range modules(p) {
			if p.Count == 1 {
				kept = nil
			}
			interpret(t, part, rows, append(in[:len(in):len(in)], kept...), append(got[:len(got):len(got)], kept...))
		}
		for i := range want {
			for k := range rows * m.Outputs[i].Width {
				if g, w := simttest.ElementBits(got[i], k), simttest.ElementBits(want[i], k); g != w {
					t.Fatalf("seed %d, limit %d: output %d, element %d is %#x, want %#x\n%s", seed, limit, i, k, g, w, m.Text())
				}
			}
		}
	}
	if several < int(seeds)/2 || fewer < int(seeds)/10 {
		t.Errorf("of %d modules %d have several parts, and in %d moves helped", seeds, several, fewer)
	}
}

// copyAll copies the elements of a slice to another one of its type.
func copyAll(to, from any) {
	switch from := from.(type) {
	case []float32:
		copy(to.([]float32), from)
	case []float64:
		copy(to.([]float64), from)
	case []int32:
		copy(to.([]int32), from)
	case []int64:
		copy(to.([]int64), from)
	case []uint8:
		copy(to.([]uint8), from)
	case []uint16:
		copy(to.([]uint16), from)
	}
}

// TestSplitSizes: parts are within the limit, a hundredth apart, and a chain of which one value lives at a time has one
// crossing for each cut, in a single column.
func TestSplitSizes(t *testing.T) {
	for _, length := range []int{1, 9, 10, 11, 20, 21, 1000, 1003} {
		b := simt.NewBuilder("chain")
		in, out := b.Input("kept_f32", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
		y := b.Load(in, 0)
		for i := range length - 2 {
			y = b.Add(y, y)
			_ = i
		}
		b.Store(out, 0, y)
		m, err := b.Module()
		if err != nil {
			t.Fatal(err)
		}
		const limit = 10
		p := simt.Split(m, limit)
		parts := (len(m.Body) + limit - 1) / limit
		if p.Count != parts || p.Crossings != parts-1 || (parts > 1) != (len(p.Kept) == 1) {
			t.Errorf("%d instructions: %d parts, %d crossings, %v is kept", len(m.Body), p.Count, p.Crossings, p.Kept)
		}
		for i, part := range modules(p) {
			if err := part.Verify(); err != nil {
				t.Error(err)
			}
			if n := len(part.Body); n > limit+2 { // what is fetched and kept comes on top
				t.Errorf("%d instructions: part %d has %d", len(m.Body), i, n)
			}
		}
		if parts > 1 && p.Kept[0].Width > 2 {
			t.Errorf("%d instructions: %s has %d columns", len(m.Body), fmt.Sprint(p.Kept[0].Type), p.Kept[0].Width)
		}
	}
}

// TestSplitBalance: moves leave parts within a hundredth of their share, and within the limit.
func TestSplitBalance(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := simt.NewBuilder("sums")
	in, out := b.Input("x", simt.F32, simt.Columns, 4), b.Output("y", simt.F32, simt.Columns, 1)
	list := []simt.Value{b.Load(in, 0), b.Load(in, 1), b.Load(in, 2), b.Load(in, 3)}
	for len(list) < 5000 {
		recent := list[max(0, len(list)-60):]
		list = append(list, b.FMA(recent[rng.IntN(len(recent))], recent[rng.IntN(len(recent))], recent[rng.IntN(len(recent))]))
	}
	b.Store(out, 0, list[len(list)-1])
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	const limit = 600
	p := simt.Split(m, limit)
	if p.Count != (len(m.Body)+limit-1)/limit || 10*p.Crossings > 9*p.First {
		t.Errorf("%d parts; %d values cross, %d before", p.Count, p.Crossings, p.First)
	}
	share := (len(m.Body) + p.Count - 1) / p.Count
	for i, part := range modules(p) {
		n := 0
		for _, in := range part.Body {
			if in.Op == simt.FMA {
				n++
			}
		}
		if n > share+share/100 || i > 0 && i < p.Count-1 && n < share-p.Count*share/100 {
			t.Errorf("part %d has %d sums, the share is %d", i, n, share)
		}
	}
}

// TestSplitFull has values that are all read in the other part: only as many move there as it has room for.
func TestSplitFull(t *testing.T) {
	const n = 300
	b := simt.NewBuilder("pairs")
	in, out := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
	x := b.Load(in, 0)
	var list []simt.Value
	for i := range n {
		list = append(list, b.Mul(x, b.Float(simt.F32, float64(i))))
	}
	y := x
	for _, v := range list {
		y = b.Sub(y, v)
	}
	b.Store(out, 0, y)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	p := simt.Split(m, len(m.Body)*51/100)
	if p.Count != 2 || p.Crossings >= p.First {
		t.Fatalf("%d parts, %d crossings, %d before", p.Count, p.Crossings, p.First)
	}
	for i, part := range modules(p) {
		sums := 0
		for _, in := range part.Body {
			if in.Op == simt.Mul || in.Op == simt.Sub {
				sums++
			}
		}
		if sums > len(m.Body)/2+len(m.Body)/200 {
			t.Errorf("part %d has %d operations", i, sums)
		}
	}
}

// TestSplitMemory reads an input behind stores to an output in the same memory: parts do so in the same order.
func TestSplitMemory(t *testing.T) {
	b := simt.NewBuilder("in place")
	in, out := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
	before := b.Load(in, 0)
	y := before
	for range 30 {
		y = b.Add(y, before)
	}
	b.Store(out, 0, y)
	other := b.Input("again", simt.F32, simt.Columns, 1)
	after := b.Load(other, 0)
	for range 30 {
		y = b.Add(y, after)
	}
	b.Store(out, 0, b.Add(y, before))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1 << 10, 20, 7, 1} {
		x := []float32{1, 2, 0.5}
		p := simt.Split(m, limit)
		kept := keep(t, p, len(x))
		for _, part := range modules(p) {
			interpret(t, part, len(x), append([]any{x, x}, kept...), append([]any{x}, kept...))
		}
		// 31 x, and 30 times that, and x again.
		if want := []float32{31*31 + 1, 2 * (31*31 + 1), (31*31 + 1) / 2.0}; x[0] != want[0] || x[1] != want[1] || x[2] != want[2] {
			t.Errorf("parts of %d: %v, want %v", limit, x, want)
		}
	}
}

// TestSplitManyReaders has a value that most instructions read, in many parts: counting these parts takes as long as there are readers,
// where minutes would show that each reader is compared with those before it.
func TestSplitManyReaders(t *testing.T) {
	const readers, limit = 400_000, 1000
	b := simt.NewBuilder("class")
	in, out := b.Input("x", simt.I32, simt.Columns, 1), b.Output("y", simt.I32, simt.Columns, 1)
	x := b.Unary(simt.Not, b.Load(in, 0))
	y := x
	for range readers {
		y = b.Add(y, x)
	}
	b.Store(out, 0, y)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	p := simt.Split(m, limit)
	if parts := (len(m.Body) + limit - 1) / limit; p.Count != parts || p.First != 2*(parts-1) || p.Crossings != 2*(parts-1) {
		t.Errorf("%d parts, %d and %d values cross; want %d, and twice one less", p.Count, p.First, p.Crossings, parts)
	}
}

// TestSplitMoves has an operation on an input that would move behind a store to an output in the same memory, as only a later part reads
// its result.
func TestSplitMoves(t *testing.T) {
	b := simt.NewBuilder("in place")
	in, out := b.Input("x", simt.F32, simt.Columns, 1), b.Output("y", simt.F32, simt.Columns, 1)
	before := b.Unary(simt.Neg, b.Load(in, 0))
	b.Store(out, 0, b.Float(simt.F32, 4))
	after := b.Load(b.Input("again", simt.F32, simt.Columns, 1), 0)
	y := after
	for range 250 {
		y = b.Add(y, after)
	}
	b.Store(out, 0, b.Add(y, before))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{1, 2, 0.5}
	p := simt.Split(m, 150)
	kept := keep(t, p, len(x))
	for _, part := range modules(p) {
		interpret(t, part, len(x), append([]any{x, x}, kept...), append([]any{x}, kept...))
	}
	if x[0] != 251*4-1 || x[1] != 251*4-2 || x[2] != 251*4-0.5 {
		t.Errorf("%d parts: %v, want %d less what there was", p.Count, x, 251*4)
	}
}

// modules returns the modules of all parts.
func modules(p *simt.Parts) (list []*simt.Module) {
	for part := range p.Count {
		list = append(list, p.Module(part))
	}
	return list
}
