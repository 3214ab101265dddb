package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomBatch returns rows of random cells, a share of them missing.
func randomBatch(s *Schema, rows int, missing float64, rng *rand.Rand) *Batch {
	b := NewBatch(s, rows)
	for i, c := range s.Columns {
		for r := range rows {
			if rng.Float64() < missing {
				continue
			}
			if c.Kind == Discrete {
				b.Columns[i].Codes.Set(r, rng.IntN(c.Categories))
			} else {
				b.Columns[i].Values[r] = rng.Float32()
			}
		}
	}
	return b
}

// sameCell compares a cell of two batches; missing cells are equal.
func sameCell(a, b *Batch, col, ra, rb int) bool {
	ca, cb := &a.Columns[col], &b.Columns[col]
	if ca.Discrete() {
		return ca.Codes.At(ra) == cb.Codes.At(rb)
	}
	x, y := ca.Values[ra], cb.Values[rb]
	return x == y || x != x && y != y
}

func TestTableGather(t *testing.T) {
	discrete := func(k int) Column { return Column{Categories: k} }
	for _, tt := range []struct {
		name    string
		columns []Column
		missing float64
		bytes   int64 // of a row
	}{
		{"bytes", []Column{discrete(2), discrete(255), discrete(7)}, 0.2, 3},
		{"bytes of 256 codes", []Column{discrete(256), discrete(3)}, 0, 2},
		{"256 codes and missing cells", []Column{discrete(256), discrete(3)}, 0.2, 4},
		{"narrow", []Column{discrete(300), discrete(MaxNarrow)}, 0.2, 4},
		{"wide", []Column{discrete(3), discrete(MaxNarrow + 1)}, 0.2, 8},
		{"wide, and values", []Column{{Kind: Continuous}, discrete(MaxCategories), {Kind: Continuous}, discrete(9)}, 0.2, 16},
		{"values", []Column{{Kind: Continuous}, {Kind: Continuous}}, 0.2, 8},
		{"both", []Column{{Kind: Continuous}, discrete(4), {Kind: Continuous}, discrete(9)}, 0.2, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			s := &Schema{Columns: tt.columns}
			table, err := NewTable(s, 0)
			if err != nil {
				t.Fatal(err)
			}
			const rows = 61
			whole := randomBatch(s, rows, tt.missing, rng)
			for lo := 0; lo < rows; lo += 13 { // the first part may have nothing missing, a later one has
				if err := table.Append(whole.Slice(lo, min(lo+13, rows))); err != nil {
					t.Fatal(err)
				}
			}
			if table.Bytes() != tt.bytes*rows {
				t.Errorf("%d bytes, want %d", table.Bytes(), tt.bytes*rows)
			}
			for _, n := range []int{0, 1, 7, 8, 29} {
				want := make([]int, n)
				for i := range want {
					want[i] = rng.IntN(rows)
				}
				got := randomBatch(s, rows, 0, rng) // what it held before must not matter
				if err := table.Gather(context.Background(), got, want); err != nil {
					t.Fatal(err)
				}
				if got.Rows != n {
					t.Fatalf("%d rows, want %d", got.Rows, n)
				}
				for col := range tt.columns {
					for i, r := range want {
						if !sameCell(got, whole, col, i, r) {
							t.Fatalf("%d rows: cell %d of column %d is not that of row %d", n, i, col, r)
						}
					}
				}
			}
			part, got := table.Slice(10, 30), new(Batch)
			if err := part.Gather(context.Background(), got, []int{0, 19}); err != nil {
				t.Fatal(err)
			}
			for col := range tt.columns {
				if !sameCell(got, whole, col, 0, 10) || !sameCell(got, whole, col, 1, 29) {
					t.Errorf("slice differs in column %d", col)
				}
			}
			if err := part.Gather(context.Background(), got, []int{20}); !errors.Is(err, ErrSetting) {
				t.Errorf("row after the slice: %v", err)
			}
		})
	}
}

func TestTableAppendRefuses(t *testing.T) {
	s := &Schema{Columns: []Column{{Name: "a", Categories: 3}}}
	table, err := NewTable(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 1)
	b.Columns[0].Codes.Set(0, 3)
	want := `dataset: bad data: "a" has code 3 of 3 categories`
	if err := table.Append(b); err == nil || err.Error() != want || !errors.Is(err, ErrFormat) {
		t.Errorf("got %v, want %s", err, want)
	}
	if table.Rows() != 0 || table.Bytes() != 0 {
		t.Error("the table changed")
	}
}

func TestReaderOfSource(t *testing.T) {
	src, err := Open(context.Background(), "builtin:random?rows=10&vars=3&categories=5&seed=4", Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, b := new(Batch), new(Batch)
	if err := src.Gather(context.Background(), all, span(0, 10)); err != nil {
		t.Fatal(err)
	}
	r := NewReader(src)
	at := 0
	for _, want := range []int{4, 4, 2} {
		if err := r.Read(context.Background(), b, 4); err != nil || b.Rows != want {
			t.Fatalf("%d rows and %v, want %d", b.Rows, err, want)
		}
		for i := range b.Rows {
			for col := range 3 {
				if !sameCell(b, all, col, i, at+i) {
					t.Errorf("row %d, column %d differs", at+i, col)
				}
			}
		}
		at += b.Rows
	}
	if err := r.Read(context.Background(), b, 4); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

func TestSummarize(t *testing.T) {
	s := &Schema{Columns: []Column{{Kind: Continuous}, {Categories: 4}, {Categories: 2}}}
	table, err := NewTable(s, 4)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 4)
	copy(b.Columns[0].Values, []float32{1e6, 1e6 + 2, 1e6 + 4})
	copy(b.Columns[1].Codes.Narrow, []uint16{3, 0, 3, 0})
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	got, err := Summarize(context.Background(), table)
	if err != nil {
		t.Fatal(err)
	}
	want := []Summary{{3, 1e6 + 2, 8.0 / 3, 1e6, 1e6 + 4, 1e6 + 2, 2 / quartiles}, {4, 1.5, 2.25, 0, 3, 1.5, 3 / quartiles}, {}}
	for i := range want {
		// Exact up to the rounding of a few float64 operations.
		if d := got[i].Variance - want[i].Variance; !(d <= 1e-9 && d >= -1e-9) {
			t.Errorf("column %d: variance %v, want %v", i, got[i].Variance, want[i].Variance)
		}
		got[i].Variance, want[i].Variance = 0, 0
		if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			t.Errorf("column %d: %v, want %v", i, got[i], want[i])
		}
	}
}

// TestSummarizeNumbers wants labels that are numbers to count as these, and other categories by their codes.
func TestSummarizeNumbers(t *testing.T) {
	s := &Schema{Columns: []Column{
		{Categories: 3, Labels: []string{"-10", "20", "50"}}, {Categories: 3, Labels: []string{"a", "b", "c"}},
		{Categories: 2, Labels: []string{"1e300", "2"}}, {Kind: Continuous, Offset: 100, Scale: 10}, {Categories: 2, Labels: []string{"7", "8"}},
	}}
	table, err := NewTable(s, 4)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 4)
	for i := range 3 {
		copy(b.Columns[i].Codes.Narrow, []uint16{1, 0, 1})
	}
	copy(b.Columns[3].Values, []float32{1, -1, 1})
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	got, err := SummarizeNumbers(context.Background(), table)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][5]float64{{3, 10, 200, -10, 20}, {3, 2. / 3, 2. / 9, 0, 1}, {3, 2. / 3, 2. / 9, 0, 1}, {3, 310. / 3, 800. / 9, 90, 110}, {}} {
		for k, x := range []float64{float64(got[i].Observed), got[i].Mean, got[i].Variance, got[i].Min, got[i].Max} {
			if math.Abs(x-want[k]) > 1e-9 {
				t.Errorf("column %d: %+v, want %v", i, got[i], want)
				break
			}
		}
	}
}

// TestTableOfCodes: rows that are added to a table in the caller's memory leave what lies behind its codes alone.
func TestTableOfCodes(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 3}, {Categories: 3}}}
	codes := []byte{0, 1, 2, 0, 1, 1}
	table, err := TableOf(s, codes[:4])
	if err != nil {
		t.Fatal(err)
	}
	more := NewBatch(s, 1)
	more.Columns[0].Codes.Set(0, 2)
	more.Columns[1].Codes.Set(0, 2)
	if err := table.Append(more); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(codes, []byte{0, 1, 2, 0, 1, 1}) {
		t.Errorf("the caller's bytes have become %v", codes)
	}
}

// TestReaderOfNoRows: a reader of a source that is asked for no rows has its rows yet, as one of a file has.
func TestReaderOfNoRows(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 3}}}
	table, err := TableOf(s, []byte{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	r, b := NewReader(table), new(Batch)
	for _, max := range []int{0, 2, 0, 2} {
		if err := r.Read(t.Context(), b, max); err != nil || b.Rows > max {
			t.Fatalf("asked for %d rows: %d rows, %v", max, b.Rows, err)
		}
	}
	if err := r.Read(t.Context(), b, 2); err != io.EOF || b.Rows != 0 {
		t.Errorf("after the last: %d rows, %v; want io.EOF", b.Rows, err)
	}
}

// TestAppendWiderCodes: a builtin source under the schema of a model, which has more categories, takes rows of all of these.
func TestAppendWiderCodes(t *testing.T) {
	for _, categories := range []int{4, 256, 1000} {
		for _, of := range []int{256, 300, MaxNarrow, MaxNarrow + 1, 100_000} {
			if of < categories {
				continue
			}
			s := &Schema{Columns: []Column{{Categories: of}}}
			src, err := Open(t.Context(), fmt.Sprintf("builtin:random?rows=3&vars=1&categories=%d", categories), Options{Schema: s})
			if err != nil {
				t.Fatal(err)
			}
			table, more := src.(*Table), NewBatch(s, 5)
			want := make([]int, 3)
			codes := func() []int {
				t.Helper()
				var b Batch
				if err := table.Gather(t.Context(), &b, span(0, table.Rows())); err != nil {
					t.Fatal(err)
				}
				all := make([]int, b.Rows)
				for r := range all {
					all[r] = b.Columns[0].Codes.At(r)
				}
				return all
			}
			copy(want, codes())
			for r, code := range []int{of - 1, Missing, 255, 0, max(of-2, 0)} {
				more.Columns[0].Codes.Set(r, code)
				want = append(want, code)
			}
			if err := table.Append(more); err != nil {
				t.Fatal(err)
			}
			if got := codes(); !slices.Equal(got, want) {
				t.Errorf("%d categories of %d: codes %v, want %v", categories, of, got, want)
			}
		}
	}
}

// TestSliceBeyondRows wants slices of rows that a table or a batch does not have to panic, also where memory has room for more rows: these
// would be of zeros, or those of an earlier use.
func TestSliceBeyondRows(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 3}, {Kind: Continuous}}}
	table, err := NewTable(s, 100)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 9)
	b.Resize(s, 4)
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		lo, hi int
		fine   bool
	}{{0, 4, true}, {4, 4, true}, {1, 3, true}, {0, 5, false}, {-1, 2, false}, {3, 2, false}, {5, 5, false}} {
		for name, slice := range map[string]func(){
			"table": func() { table.Slice(tt.lo, tt.hi) },
			"batch": func() { b.Slice(tt.lo, tt.hi) },
		} {
			func() {
				defer func() {
					if p := recover(); (p == nil) != tt.fine {
						t.Errorf("%s: rows %d to %d of 4: %v", name, tt.lo, tt.hi, p)
					}
				}()
				slice()
			}()
		}
	}
}
