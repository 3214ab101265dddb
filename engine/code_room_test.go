package engine_test

import (
	"fmt"
	"math"
	"runtime"
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

// manyClasses is a model of rows of a column of that many codes and two numbers: the first number times code/codes is the
// log-likelihood of each code.
func manyClasses(t *testing.T, codes int) (*dataset.Schema, engine.CodeModel) {
	t.Helper()
	b := simt.NewBuilder("many")
	in, out := b.Input("x", simt.F32, simt.Columns, 3), b.Output("ll", simt.F64, simt.Columns, codes)
	x := b.Convert(simt.F64, b.Load(in, 1))
	for k := range codes {
		b.Store(out, k, b.Mul(x, b.Float(simt.F64, float64(k)/float64(codes))))
	}
	many, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Discrete, Categories: codes}, {Kind: dataset.Continuous}, {Kind: dataset.Continuous}}}
	return schema, engine.CodeModel{Module: sums(t, simt.F64, 1), Classes: func(int) (engine.CodeModel, error) { return engine.CodeModel{Module: many}, nil }}
}

// TestCodeOfManyClasses classifies rows by a column of many codes, which takes them in small launches: one of 2,048 rows would have 82
// million bytes of results. Rows that fill no launch, and a batch of another model before and after, count as ever.
func TestCodeOfManyClasses(t *testing.T) {
	const codes, rows, most = 5000, 100, 40 << 20
	ctx := t.Context()
	schema, m := manyClasses(t, codes)
	dev, err := cpu.Open(cpu.Options{Threads: 2, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.NewCode(ctx, dev, m, engine.CodeOptions{Schema: schema, OwnsDevice: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	batch := dataset.NewBatch(schema, rows)
	for r := range rows {
		batch.Columns[0].Codes.Set(r, 0)
		batch.Columns[1].Values[r], batch.Columns[2].Values[r] = float32(r), 0
	}
	sum := func(when string) {
		t.Helper()
		ll := make([]float64, rows)
		if err := engine.EvaluateBatch(ctx, c, batch, ll); err != nil {
			t.Fatal(err)
		}
		for r, x := range ll {
			if x != float64(r) {
				t.Fatalf("%s classes, row %d is %v", when, r, x)
			}
		}
	}
	sum("before")
	p := make([]float64, rows*codes)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := c.Classify(ctx, batch, 0, p); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > most {
		t.Errorf("%d bytes for %d rows of %d classes, want at most %d", got, rows, codes, most)
	}
	for r := range rows {
		first, last := p[r*codes], p[r*codes+codes-1]
		if ratio := math.Log(last / first); !(math.Abs(ratio-float64(r)*(codes-1)/codes) < 1e-9) {
			t.Errorf("row %d: shares %v and %v of the first class and the last one", r, first, last)
		}
	}
	sum("after")
}
