package nest

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
)

// adder returns a kernel that adds the first cell and the number of trees that it is told.
func adder(t *testing.T, told bool) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("adder")
	x, sums := b.Input("x", simt.F32, simt.Rows, 2), b.Input("sums", simt.F32, simt.Columns, 2)
	sum := b.Add(b.Load(sums, 0), b.Load(x, 0))
	if told {
		first, end := b.Input("first", simt.I32, simt.Columns, 1), b.Input("end", simt.I32, simt.Columns, 1)
		sum = b.Add(sum, b.Convert(simt.F32, b.Sub(b.Load(end, 0), b.Load(first, 0))))
	}
	total := b.Output("total", simt.F32, simt.Columns, 2)
	b.Store(total, 0, sum)
	b.Store(total, 1, b.Load(sums, 1))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func interpreted(m *simt.Module) (Code, error) { return simt.Compile(m, 2) }

// TestSums: loops give kernels each row, and each tree, once; sums by rows come back by rows, whatever the threads.
func TestSums(t *testing.T) {
	told := func() []Item { return []Item{{Kernel: &Kernel{Code: adder(t, true), Trees: true}}} }
	for name, body := range map[string][]Item{
		"kernel":  told(),
		"threads": {{Kernel: &Kernel{Code: adder(t, true), Trees: true, Parallel: true}}},
		"tiles":   {{Loop: &Loop{Rows: true, Step: 7, Parallel: true, Fetch: true, Body: told()}}},
		"split":   {{Most: 10, Kernel: &Kernel{Code: adder(t, true), Trees: true}}, {Skip: 10, Loop: &Loop{Rows: true, Step: 64, Body: told()}}},
	} {
		m := &Module{Features: 2, Outputs: 2, Trees: 5, Body: body}
		for _, n := range []int{0, 1, 9, 10, 11, 1000} {
			p, err := New(m, 3, interpreted)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				rows, sums := make([]float64, 2*n), make([]float64, 2*n)
				for i := range rows {
					rows[i], sums[i] = float64(i), 0.5
				}
				if err := Sums(t.Context(), p, rows, sums); err != nil {
					t.Fatal(err)
				}
				for r := range n {
					if want := 0.5 + float64(2*r) + 5; sums[2*r] != want || sums[2*r+1] != 0.5 {
						t.Fatalf("%s: row %d of %d: %v, want %v", name, r, n, sums[2*r:2*r+2], want)
					}
				}
			}
		}
	}
	// Trees two at a time: three kernels for five trees, each adds the cell and its trees.
	m := &Module{Features: 2, Outputs: 2, Trees: 5, Body: []Item{{Loop: &Loop{Step: 2, Body: told()}}}}
	p, err := New(m, 1, interpreted)
	if err != nil {
		t.Fatal(err)
	}
	sums := []float64{0, 0}
	if err := Sums(t.Context(), p, []float32{2, 0}, sums); err != nil || sums[0] != 3*2+5 {
		t.Errorf("%v, %v; want 11", sums, err)
	}
}

// TestPrivate: iterations over trees on threads have sums of their own, which are added once, in a call of any number of
// rows, and again in the next call.
func TestPrivate(t *testing.T) {
	told := []Item{{Kernel: &Kernel{Code: adder(t, true), Trees: true}}}
	trees := Item{Loop: &Loop{Step: 2, Parallel: true, Private: true, Body: told}}
	for name, body := range map[string][]Item{"trees": {trees}, "rows around": {{Loop: &Loop{Rows: true, Step: 7, Body: []Item{trees}}}}} {
		for _, m := range []*Module{{Features: 2, Outputs: 2, Trees: 5, Body: body}, {Features: 2, Outputs: 2, Trees: 5000, Body: body}} {
			p, err := New(m, 3, interpreted)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{0, 1, 30, 700} { // 700 rows are two chunks of 5,000 trees
				if n > 100 && m.Trees > 5 && name != "trees" {
					continue
				}
				rows, sums := make([]float32, 2*n), make([]float64, 2*n)
				for i := range rows {
					rows[i], sums[i] = float32(i), 0.5
				}
				if err := Sums(t.Context(), p, rows, sums); err != nil {
					t.Fatal(err)
				}
				for r := range n {
					if want := 0.5 + float64((m.Trees+1)/2*2*r) + float64(m.Trees); math.Abs(sums[2*r]-want) > 1e-3*want || sums[2*r+1] != 0.5 {
						t.Fatalf("%s: row %d of %d: %v, want %v", name, r, n, sums[2*r:2*r+2], want)
					}
				}
			}
		}
	}
}

// TestRefused: modules and slices that do not fit, and calls whose context has ended.
func TestRefused(t *testing.T) {
	kernel := Item{Kernel: &Kernel{Code: adder(t, false)}}
	threads := Item{Loop: &Loop{Rows: true, Step: 8, Parallel: true, Body: []Item{kernel}}}
	for name, m := range map[string]*Module{
		"no features":            {Outputs: 1},
		"neither":                {Features: 2, Outputs: 2, Body: []Item{{}}},
		"both":                   {Features: 2, Outputs: 2, Body: []Item{{Loop: threads.Loop, Kernel: kernel.Kernel}}},
		"inputs":                 {Features: 2, Outputs: 2, Body: []Item{{Kernel: &Kernel{Code: adder(t, false), Trees: true}}}},
		"kept":                   {Features: 2, Outputs: 2, Body: []Item{{Kernel: &Kernel{Code: adder(t, false), Keeps: true}}}},
		"step":                   {Features: 2, Outputs: 2, Body: []Item{{Loop: &Loop{Rows: true}}}},
		"threads within threads": {Features: 2, Outputs: 2, Body: []Item{{Loop: &Loop{Rows: true, Step: 64, Parallel: true, Body: []Item{threads}}}}},
		"threads over trees":     {Features: 2, Outputs: 2, Body: []Item{{Loop: &Loop{Step: 2, Parallel: true}}}},
		"private rows":           {Features: 2, Outputs: 2, Body: []Item{{Loop: &Loop{Rows: true, Step: 2, Parallel: true, Private: true}}}},
		"private without":        {Features: 2, Outputs: 2, Body: []Item{{Loop: &Loop{Step: 2, Private: true}}}},
	} {
		if _, err := New(m, 1, interpreted); !errors.Is(err, ErrModule) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := New(&Module{Features: 2, Outputs: 2, Body: []Item{threads}}, 2, interpreted)
	if err != nil {
		t.Fatal(err)
	}
	if err := Sums(t.Context(), p, make([]float32, 3), make([]float64, 2)); !errors.Is(err, ErrModule) {
		t.Errorf("three cells: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Sums(ended, p, make([]float32, 200), make([]float64, 200)); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
