package engine_test

import (
	"context"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/simt"
)

// sums is a module whose output, of f32 or f64, is factor times the sum of a row's cells, 100 for each
// missing one.
func sums(t *testing.T, typ simt.Type, factor float64) *simt.Module {
	t.Helper()
	b := simt.NewBuilder("sums")
	in, out := b.Input("x", simt.F32, simt.Columns, 3), b.Output("ll", typ, simt.Columns, 1)
	total := b.Float(simt.F64, 0)
	for v := range 3 {
		x := b.Load(in, v)
		total = b.Add(total, b.Convert(simt.F64, b.Select(b.Binary(simt.Eq, x, x), x, b.Float(simt.F32, 100))))
	}
	total = b.Mul(total, b.Float(simt.F64, factor))
	if typ == simt.F32 {
		total = b.Convert(typ, total)
	}
	b.Store(out, 0, total)
	m, err := b.Module()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCode evaluates batches of codes and values in launches of few rows, of which some are
// computed again.
func TestCode(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Discrete, Categories: 5}, {Kind: dataset.Continuous}, {Kind: dataset.Continuous, Scale: 2, Offset: 1},
	}}
	ctx := t.Context()
	generic, err := cpu.KernelPath("generic")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ   simt.Type // of the module; that of rows that are computed again is f64
		times int       // that rows may be computed again
	}{{simt.F64, 0}, {simt.F64, 1}, {simt.F32, 0}, {simt.F32, 1}, {simt.F32, 2}} {
		typ, exact := c.typ, c.times > 0
		dev, err := cpu.Open(cpu.Options{Set: generic, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
		if err != nil {
			t.Fatal(err)
		}
		m := engine.CodeModel{Module: sums(t, typ, 1), Least: -2}
		if exact {
			m.Exact = &engine.CodeModel{Module: sums(t, simt.F64, 10), Least: -30}
		}
		if c.times == 2 {
			m.Exact.Exact = &engine.CodeModel{Module: sums(t, simt.F64, 100)}
		}
		both := 0
		code, err := engine.NewCode(ctx, dev, m, engine.CodeOptions{Rows: 4, Schema: schema, OwnsDevice: true})
		if err != nil {
			t.Fatal(err)
		}
		if i := code.Info(); i.Rows != 4 || i.Outputs != 1 || i.Device.KernelPath != "interpreter" || code.Schema() != schema {
			t.Errorf("info %+v", i)
		}
		var want []float64
		again := int64(0)
		batches := []*dataset.Batch{}
		for k, rows := range []int{1, 4, 9, 3} {
			b := dataset.NewBatch(schema, rows)
			for r := range rows {
				b.Columns[0].Codes.Set(r, (r+k)%5)
				b.Columns[1].Values[r] = float32(r - 8)
				sum := float64((r+k)%5) + float64(r-8)
				if r%3 == 0 {
					b.Columns[0].Codes.Set(r, dataset.Missing)
					sum = 100 + float64(r-8)
				}
				if r%2 == 0 {
					b.Columns[2].Values[r] = float32(math.NaN())
					sum += 100
				} else {
					b.Columns[2].Values[r] = 0.5
					sum += 0.5
				}
				if exact && sum < -2 {
					sum *= 10
					again++
					if c.times == 2 && sum < m.Exact.Least {
						sum *= 10
						both++
					}
				}
				if r%2 == 1 {
					sum -= math.Log(2)
				}
				want = append(want, sum)
			}
			batches = append(batches, b)
		}
		var got []float64
		next := func() (*dataset.Batch, error) {
			if len(batches) == 0 {
				return nil, io.EOF
			}
			b := batches[0]
			batches = batches[1:]
			return b, nil
		}
		if err := code.Evaluate(ctx, next, func(out []float64) { got = append(got, out...) }); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) || code.Recomputed() != again || exact && again == 0 || c.times == 2 && (both == 0 || int64(both) == again) {
			t.Fatalf("%d numbers, %d computed again; want %d and %d, %d of them twice", len(got), code.Recomputed(), len(want), again, both)
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 1e-12) {
				t.Errorf("row %d is %v, want %v", i, got[i], want[i])
			}
		}
		for what, spoil := range map[string]func(b *dataset.Batch){
			"infinite":   func(b *dataset.Batch) { b.Columns[1].Values[1] = float32(math.Inf(1)) },
			"a category": func(b *dataset.Batch) { b.Columns[0].Codes.Set(1, 5) },
			"half":       func(b *dataset.Batch) { b.Columns[0] = dataset.Cells{Values: []float32{0, 0.5}} },
			"negative":   func(b *dataset.Batch) { b.Columns[0] = dataset.Cells{Values: []float32{0, -1}} },
			"far":        func(b *dataset.Batch) { b.Columns[0] = dataset.Cells{Values: []float32{0, 1e30}} },
			"few cells":  func(b *dataset.Batch) { b.Columns[2].Values = b.Columns[2].Values[:1] },
			"few":        func(b *dataset.Batch) { b.Columns = b.Columns[:2] },
		} {
			b := dataset.NewBatch(schema, 2)
			spoil(b)
			if err := engine.EvaluateBatch(ctx, code, b, make([]float64, 2)); !errors.Is(err, dataset.ErrFormat) {
				t.Errorf("%s: %v, want ErrFormat", what, err)
			}
		}
		soft := dataset.NewBatch(schema, 2)
		soft.Columns[0].SetSoft(1, &dataset.Evidence{Runs: []dataset.Run{{First: 1, Last: 3, Likelihood: 1}}})
		if err := engine.EvaluateBatch(ctx, code, soft, make([]float64, 2)); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("a set of categories: %v, want ErrSetting", err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := engine.EvaluateBatch(ended, code, dataset.NewBatch(schema, 2), make([]float64, 2)); !errors.Is(err, context.Canceled) {
			t.Errorf("an ended context: %v", err)
		}
		if err := errors.Join(code.Close(), code.Close()); err != nil {
			t.Error(err)
		}
		if dev.InUse() != 0 {
			t.Errorf("%d bytes in use after Close", dev.InUse())
		}
	}
	bare, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.NewCode(ctx, bare, engine.CodeModel{Module: sums(t, simt.F64, 1)}, engine.CodeOptions{Schema: schema}); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("a device without loader: %v, want ErrDevice", err)
	}
	if _, err := engine.NewCode(ctx, bare, engine.CodeModel{Module: sums(t, simt.F64, 1)}, engine.CodeOptions{Schema: &dataset.Schema{Columns: schema.Columns[:2]}}); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("another schema: %v, want ErrDevice", err)
	}
}

// TestCodesOfNumbers gives the whole numbers of a scaled column as codes: they are read as they are stored, and no density is scaled.
func TestCodesOfNumbers(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Continuous}, {Kind: dataset.Continuous}, {Kind: dataset.Continuous, Scale: 2, Offset: 1}}}
	generic, err := cpu.KernelPath("generic")
	if err != nil {
		t.Fatal(err)
	}
	dev, err := cpu.Open(cpu.Options{Set: generic, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
	if err != nil {
		t.Fatal(err)
	}
	code, err := engine.NewCode(t.Context(), dev, engine.CodeModel{Module: sums(t, simt.F64, 1)}, engine.CodeOptions{Rows: 4, Schema: schema, OwnsDevice: true})
	if err != nil {
		t.Fatal(err)
	}
	defer code.Close()
	b := dataset.NewBatch(schema, 3)
	b.Columns[0], b.Columns[1] = dataset.Cells{Values: make([]float32, 3)}, dataset.Cells{Values: make([]float32, 3)}
	b.Columns[2] = dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{3, 0, 7}}}
	got := make([]float64, b.Rows)
	if err := engine.EvaluateBatch(t.Context(), code, b, got); err != nil {
		t.Fatal(err)
	}
	for r, want := range []float64{3, 0, 7} {
		if got[r] != want {
			t.Errorf("row %d is %v, want %v", r, got[r], want)
		}
	}
}

// TestCodeOfBytes evaluates and classifies rows by modules that read bytes, with rows that a module computes again, that the host
// does, and with none. Rows of zeros are not a number at first. The host counts a missing cell as 300, a module as its byte.
func TestCodeOfBytes(t *testing.T) {
	nan := float32(math.NaN())
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Kind: dataset.Discrete, Categories: 255}, {Kind: dataset.Continuous}, {Kind: dataset.Continuous, Scale: 2, Offset: 1}, {Kind: dataset.Discrete, Categories: 400},
	}}
	const variables = 4
	module := func(cell, typ simt.Type, roots int, factor float64) *simt.Module {
		b := simt.NewBuilder("sums of bytes")
		in, out := b.Input("x", cell, simt.Columns, variables), b.Output("ll", typ, simt.Columns, roots)
		total := b.Int(simt.I32, 0)
		for v := range variables {
			total = b.Add(total, b.Convert(simt.I32, b.Load(in, v)))
		}
		for k := range roots {
			ll := b.Mul(b.Convert(typ, total), b.Float(typ, factor*float64(1+k)))
			if factor == 1 {
				ll = b.Select(b.Binary(simt.Eq, total, b.Int(simt.I32, 0)), b.Binary(simt.Div, ll, ll), ll)
			}
			b.Store(out, k, ll)
		}
		m, err := b.Module()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const least = 517 // above the sum of 0, a missing cell, 7 and 254
	cells := []struct {
		number float32 // of all columns
		bytes  [variables]float64
	}{
		{0, [variables]float64{0, 0, 0, 0}},
		{nan, [variables]float64{255, 255, 255, 255}},
		{7, [variables]float64{7, 7, 7, 7}},
		{254, [variables]float64{254, 254, 254, 254}},
		{253, [variables]float64{253, 253, 253, 253}},
	}
	cellOf := func(row, variable int) int { return (row/(1+variable*variable) + variable) % len(cells) }
	again := func(x []float32, pitch, rows int, ll []float64) {
		for r := range rows {
			ll[r] = 0
			for v := range variables {
				if c := x[v*pitch+r]; c != c {
					ll[r] += 300
				} else {
					ll[r] += float64(c)
				}
			}
			ll[r] *= 10
		}
	}
	for _, name := range []string{"exact", "again", "neither"} {
		for _, typ := range []simt.Type{simt.F32, simt.F64} {
			dev, err := cpu.Open(cpu.Options{Threads: 3, Loaders: cpu.Loaders{simt.Kind: cpu.LoadCode}})
			if err != nil {
				t.Fatal(err)
			}
			m := engine.CodeModel{Module: module(simt.U8, typ, 1, 1), Least: least}
			switch name {
			case "exact":
				m.Exact = &engine.CodeModel{Module: module(simt.U8, simt.F64, 1, 10)}
			case "again":
				m.Again = again
			}
			const leastOfClasses = 600 // of the sum, for rows that a second module of two roots computes
			m.Classes = func(int) (engine.CodeModel, error) {
				of := engine.CodeModel{Module: module(simt.U8, typ, 2, 1.0/1024)}
				if name == "exact" {
					of.Exact, of.Least = &engine.CodeModel{Module: module(simt.U8, simt.F64, 2, 3.0/1024)}, 2*leastOfClasses/1024.
				}
				return of, nil
			}
			c, err := engine.NewCode(t.Context(), dev, m, engine.CodeOptions{Rows: 70, Schema: schema, OwnsDevice: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, rows := range []int{0, 1, 70, 71, 1000} {
				b := &dataset.Batch{Rows: rows, Columns: make([]dataset.Cells, variables)}
				want := make([]float64, rows)
				twice, before := int64(0), c.Recomputed()
				for r := range rows {
					missing := 0.0
					for v := range variables {
						one := cells[cellOf(r, v)]
						b.Columns[v].Values = append(b.Columns[v].Values, one.number)
						if want[r] += one.bytes[v]; one.number != one.number {
							missing++
						}
					}
					switch {
					case name != "neither" && want[r] < least:
						if twice++; name == "again" {
							want[r] += missing * (300 - 255)
						}
						want[r] *= 10
					case want[r] == 0:
						want[r] = math.NaN()
					}
					if cell := b.Columns[2].Values[r]; cell == cell {
						want[r] -= math.Log(2)
					}
				}
				got := make([]float64, rows)
				if err := engine.EvaluateBatch(t.Context(), c, b, got); err != nil {
					t.Fatal(err)
				}
				for r := range got {
					if !(math.Abs(got[r]-want[r]) <= 1e-9) && (got[r] == got[r] || want[r] == want[r]) {
						t.Fatalf("%s, %v: row %d of %d is %v, want %v", name, typ, r, rows, got[r], want[r])
					}
				}
				if n := c.Recomputed() - before; n != twice {
					t.Errorf("%s, %v: %d rows of %d are computed again, want %d", name, typ, n, rows, twice)
				}
				for _, variable := range []int{-1, 1, variables} {
					if err := c.Classify(t.Context(), b, variable, nil); !errors.Is(err, dataset.ErrSetting) {
						t.Errorf("%s, %v: classes of variable %d: %v, want ErrSetting", name, typ, variable, err)
					}
				}
				p := make([]float64, 255*rows)
				if err := c.Classify(t.Context(), b, 0, p); err != nil {
					t.Fatal(err)
				}
				for r := range rows {
					sum := 255.0 // what column 0 says does not count
					for v := 1; v < variables; v++ {
						sum += cells[cellOf(r, v)].bytes[v]
					}
					if name == "exact" && sum < leastOfClasses {
						sum *= 3
					}
					if share := 1 / (1 + math.Exp(sum/1024)); math.Abs(p[255*r]-share) > 1e-6 || p[255*r+2] != 0 {
						t.Fatalf("%s, %v: row %d of %d has class 0 with %v, want %v", name, typ, r, rows, p[255*r], share)
					}
				}
			}
			for threads := range 4 {
				host := int64(max(1, threads)) * 4 * 70 * variables // Again's cells, of which a module of float32 has none
				if more := m.RowBytes(70, threads) - (engine.CodeModel{Module: m.Module}).RowBytes(70, threads); more != host && name == "again" || more != 0 && name != "again" {
					t.Errorf("%s: rows of %d threads take %d bytes more", name, threads, more)
				}
			}
			before := dev.InUse()
			m.Classes, m.Exact = nil, &engine.CodeModel{Module: module(simt.F32, simt.F64, 1, 1)}
			if _, err := engine.NewCode(t.Context(), dev, m, engine.CodeOptions{Schema: schema}); !errors.Is(err, kernels.ErrDevice) {
				t.Errorf("modules that read cells of two types: %v, want ErrDevice", err)
			}
			m.Exact.Module = module(simt.U8, simt.F64, 2, 1)
			if _, err := engine.NewCode(t.Context(), dev, m, engine.CodeOptions{Schema: schema}); !errors.Is(err, kernels.ErrDevice) {
				t.Errorf("two roots where rows of one are computed again: %v, want ErrDevice", err)
			}
			if after := dev.InUse(); after != before {
				t.Errorf("%d bytes in use, %d after modules that were refused", before, after)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
