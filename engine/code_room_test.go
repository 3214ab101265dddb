package engine_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/simt"
)

// thirds is a module with two roots, of which the second one is three times as likely as the first for every row.
func thirds(t *testing.T, typ simt.Type) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("thirds")
	in, out := b.Input("x", simt.F32, simt.Columns, 3), b.Output("ll", typ, simt.Columns, 2)
	x := b.Convert(typ, b.Load(in, 1))
	b.Store(out, 0, x)
	b.Store(out, 1, b.Add(x, b.Float(typ, math.Log(3))))
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCodeThreads evaluates and classifies batches on one thread and on several, with as many rows as launches have, one less and one
// more, and wants the same bits, the same rows computed again, and the error of the first row that has one.
func TestCodeThreads(t *testing.T) {
	const most, threads = 3, 5
	ctx := t.Context()
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Discrete, Categories: 5}, {Kind: dataset.Continuous}, {Kind: dataset.Continuous, Scale: 2}}}
	open := func(threads int, typ simt.Type) *engine.Code {
		t.Helper()
		dev, err := cpu.Open(cpu.Options{Threads: threads, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
		if err != nil {
			t.Fatal(err)
		}
		m := engine.CodeModel{Module: sums(t, typ, 1), Exact: &engine.CodeModel{Module: sums(t, simt.F64, 10)}, Least: -2}
		m.Classes = func(int) (engine.CodeModel, error) { return engine.CodeModel{Module: thirds(t, typ)}, nil }
		c, err := engine.NewCode(ctx, dev, m, engine.CodeOptions{Rows: most, Schema: schema, OwnsDevice: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	batch := func(rows int) *dataset.Batch {
		b := dataset.NewBatch(schema, rows)
		for r := range rows {
			b.Columns[0].Codes.Set(r, r%5)
			b.Columns[1].Values[r] = float32(r%40 - 20)
			b.Columns[2].Values[r] = float32(r) / 8
		}
		return b
	}
	for _, typ := range []simt.Type{simt.F32, simt.F64} {
		one, several := open(1, typ), open(threads, typ)
		for _, rows := range []int{0, 1, most - 1, most, most + 1, most * threads, 4*most*threads - 1, 4 * most * threads, 4*most*threads + 1, 1000} {
			b := batch(rows)
			want, got := make([]float64, rows), make([]float64, rows)
			shares, wantShares := make([]float64, 5*rows), make([]float64, 5*rows)
			for _, x := range []struct {
				c           *engine.Code
				out, shares []float64
			}{{one, want, wantShares}, {several, got, shares}} {
				if err := engine.EvaluateBatch(ctx, x.c, b, x.out); err != nil {
					t.Fatal(err)
				}
				if err := x.c.Classify(ctx, b, 0, x.shares); err != nil {
					t.Fatal(err)
				}
			}
			for i := range want {
				if math.Float64bits(got[i]) != math.Float64bits(want[i]) {
					t.Fatalf("%v, row %d of %d: %v with %d threads, %v with one", typ, i, rows, got[i], threads, want[i])
				}
			}
			for i := range wantShares {
				if share := []float64{0.25, 0.75, 0, 0, 0}[i%5]; shares[i] != wantShares[i] || math.Abs(shares[i]-share) > 1e-6 {
					t.Fatalf("%v, row %d of %d: a class has %v with %d threads, %v with one, want %v", typ, i/5, rows, shares[i], threads, wantShares[i], share)
				}
			}
			if several.Recomputed() != one.Recomputed() || rows == 1000 && one.Recomputed() == 0 {
				t.Errorf("%d rows: %d are computed again with %d threads, %d with one", rows, several.Recomputed(), threads, one.Recomputed())
			}
		}
		for i := range 100 { // the other row is one that another thread works on meanwhile
			first := i % 60
			b := batch(100)
			b.Columns[1].Values[first] = float32(math.Inf(-1))
			b.Columns[0].Codes.Set(first+most, 5)
			want := fmt.Sprintf("row %d, ", first)
			if err := engine.EvaluateBatch(ctx, several, b, make([]float64, 100)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want the error of %s", err, want)
			}
		}
	}
}
