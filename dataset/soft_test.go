package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func softSchema() *Schema {
	return &Schema{Columns: []Column{
		{Name: "colour", Categories: 3, Labels: []string{"red", "green", "a..b"}},
		{Name: "grade", Categories: 4, Labels: []string{"10", "30", "20", "-5"}},
		{Name: "count", Categories: 5},
		{Name: "size", Kind: Continuous, Offset: 10, Scale: 2},
	}}
}

// TestSoftCells reads cells that are written as evidence.
func TestSoftCells(t *testing.T) {
	inf := math.Inf(1)
	runs := func(r ...Run) *Evidence { return &Evidence{Runs: r} }
	for _, tc := range []struct {
		column  int
		cell    string
		want    *Evidence
		problem string
	}{
		{0, "{green|red}", runs(Run{0, 1, 1}), ""},
		{0, "{ a..b | red }", runs(Run{0, 0, 1}, Run{2, 2, 1}), ""},
		{0, "{red}", runs(Run{0, 0, 1}), ""},
		{0, "[0.2|0|0.8]", runs(Run{0, 0, 0.2}, Run{2, 2, 0.8}), ""},
		{0, "[1|1|1]", runs(Run{0, 2, 1}), ""},
		{0, "{}", nil, "empty set"},
		{0, "{blue}", nil, `"blue" is not a category`},
		{0, "[0|0|0]", nil, "all 0"},
		{0, "[1|2]", nil, "2 likelihoods for 3"},
		{0, "[1|-2|3]", nil, "0 or more"},
		{0, "[1|x|3]", nil, "not a likelihood"},
		{0, "[1|1e-30|3]", nil, "factor of 1e+25"},
		{0, "red..green", nil, "not the end of a range"},
		{0, "1..2", nil, "not numbers; write a set"},
		{1, "10..25", runs(Run{0, 0, 1}, Run{2, 2, 1}), ""},
		{1, "..9", runs(Run{3, 3, 1}), ""},
		{1, "-5..-1", runs(Run{3, 3, 1}), ""},
		{1, "40..", nil, "no category lies in"},
		{1, "{10|20}", runs(Run{0, 0, 1}, Run{2, 2, 1}), ""},
		{2, "1..3", runs(Run{1, 3, 1}), ""},
		{2, "1.5..", runs(Run{2, 4, 1}), ""},
		{2, "3..3", runs(Run{3, 3, 1}), ""},
		{2, "4..1e9", runs(Run{4, 4, 1}), ""},
		{2, "5..", nil, "no category"},
		{2, "{0|4}", runs(Run{0, 0, 1}, Run{4, 4, 1}), ""},
		{2, "{0|5}", nil, "out of range"},
		{2, "3..1", nil, "smaller end first"},
		{2, "..", nil, "without ends"},
		{2, "1..2..3", nil, "not the end"},
		{2, "nan..3", nil, "not the end"},
		{3, "30..40", &Evidence{Low: 30, High: 40}, ""},
		{3, "30..", &Evidence{Low: 30, High: inf}, ""},
		{3, " .. -1e3", &Evidence{Low: -inf, High: -1000}, ""},
		{3, "30..30", nil, "whose probability is 0"},
		{3, "1e999..", nil, "not the end"},
		{3, "{30}", nil, "continuous column; write a range"},
		{3, "[1|2]", nil, "continuous column; write a range"},
	} {
		s := newSoftReader(newEncoder(softSchema(), false))
		got, problem := s.read(tc.column, &Value{Kind: String, Text: []byte(tc.cell)})
		if !reflect.DeepEqual(got, tc.want) || (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) {
			t.Errorf("column %d, %s: %+v, %q; want %+v, %q", tc.column, tc.cell, got, problem, tc.want, tc.problem)
		}
		if strings.Contains(problem, "\n") || problem != "" && !strings.Contains(problem, `"`) {
			t.Errorf("%s: the message %q is not a line that quotes the cell", tc.cell, problem)
		}
	}
	// A text that is a category is that category.
	s := newSoftReader(newEncoder(softSchema(), false))
	if e, problem := s.read(0, &Value{Kind: String, Text: []byte("a..b")}); e != nil || problem != "" {
		t.Errorf("a..b is a category, and was read as %v, %q", e, problem)
	}
}

// TestTakes: evidence that a column can have. Runs ascend, do not overlap, and are of its categories, with positive likelihoods.
func TestTakes(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	codes, numbers, counts := &Column{Categories: 5}, &Column{Kind: Continuous}, &Column{Kind: Continuous, Counts: true}
	for _, tc := range []struct {
		column *Column
		e      *Evidence
		want   bool
	}{
		{codes, nil, false}, {codes, &Evidence{}, false}, {codes, &Evidence{Low: 1, High: 2}, false},
		{codes, &Evidence{Runs: []Run{{0, 4, 1}}}, true}, {codes, &Evidence{Runs: []Run{{0, 0, 0.5}, {1, 2, 1}, {4, 4, 3}}}, true},
		{codes, &Evidence{Runs: []Run{{0, 5, 1}}}, false}, {codes, &Evidence{Runs: []Run{{-1, 2, 1}}}, false}, {codes, &Evidence{Runs: []Run{{3, 2, 1}}}, false},
		{codes, &Evidence{Runs: []Run{{0, 2, 1}, {2, 3, 1}}}, false}, {codes, &Evidence{Runs: []Run{{3, 3, 1}, {0, 1, 1}}}, false},
		{codes, &Evidence{Runs: []Run{{0, 2, 0}}}, false}, {codes, &Evidence{Runs: []Run{{0, 2, 1}, {3, 3, -1}}}, false},
		{codes, &Evidence{Runs: []Run{{0, 2, nan}}}, false}, {codes, &Evidence{Runs: []Run{{0, 2, inf}}}, false},
		{codes, &Evidence{Runs: []Run{{0, 0, 1}, {1, 1, 1e-30}}}, false},
		{numbers, &Evidence{Low: 1, High: 2}, true}, {numbers, &Evidence{Low: -inf, High: inf}, true}, {numbers, &Evidence{Low: 1, High: 1}, false},
		{numbers, &Evidence{Low: 2, High: 1}, false}, {numbers, &Evidence{Low: nan, High: 1}, false}, {numbers, &Evidence{Low: 1, High: 2, Runs: []Run{{0, 1, 1}}}, false},
		{counts, &Evidence{Low: 1, High: 1}, true}, {counts, &Evidence{Low: 2, High: 1}, false},
	} {
		if got := tc.column.takes(tc.e); got != tc.want {
			t.Errorf("%+v is taken by a column of kind %v: %t, want %t", tc.e, tc.column.Kind, got, tc.want)
		}
	}
}

// TestEvidenceErrors: a program that makes evidence itself tells its errors by their class.
func TestEvidenceErrors(t *testing.T) {
	codes, numbers := &Column{Categories: 3}, &Column{Kind: Continuous}
	for name, made := range map[string]func() (*Evidence, error){
		"reversed":          func() (*Evidence, error) { return numbers.RangeEvidence(2, 1) },
		"one number":        func() (*Evidence, error) { return numbers.RangeEvidence(1, 1) },
		"no category":       func() (*Evidence, error) { return codes.RangeEvidence(5, 9) },
		"set of numbers":    func() (*Evidence, error) { return numbers.SetEvidence([]int{1}) },
		"empty set":         func() (*Evidence, error) { return codes.SetEvidence(nil) },
		"category":          func() (*Evidence, error) { return codes.SetEvidence([]int{3}) },
		"three likelihoods": func() (*Evidence, error) { return codes.LikelihoodEvidence([]float64{1, 2}) },
		"zeros":             func() (*Evidence, error) { return codes.LikelihoodEvidence([]float64{0, 0, 0}) },
	} {
		if e, err := made(); e != nil || !errors.Is(err, ErrFormat) || strings.Contains(err.Error(), ErrFormat.Error()) {
			t.Errorf("%s: %+v, %v; want an error of class ErrFormat without its text, which says where the cell is", name, e, err)
		}
	}
}

// TestSoftCount takes a range of one count, which has a mass, where leaves read counts alone.
func TestSoftCount(t *testing.T) {
	c := Column{Kind: Continuous, Counts: true}
	if got, err := c.RangeEvidence(11, 11); err != nil || !reflect.DeepEqual(got, &Evidence{Low: 11, High: 11}) {
		t.Errorf("%+v, %v; want the range of 11", got, err)
	}
	c.Counts = false
	if got, err := c.RangeEvidence(11, 11); err == nil {
		t.Errorf("%+v; want an error: numbers have densities", got)
	}
}

const softFile = `colour,grade,count,size
{red|green},10,1..2,30..40
a..b,..20,3,12
,30,[1|2|0|0|0],14
red,20,1..2,30..40
`

// TestSoftRows reads a file in batches and as a table.
func TestSoftRows(t *testing.T) {
	ctx := context.Background()
	open := func(text string, soft bool) (Reader, error) {
		return OpenReader(ctx, "-", Options{Schema: softSchema(), Soft: soft, KeepText: true, Stdin: strings.NewReader(text)})
	}
	var batches []*Batch
	r, err := open(softFile, true)
	if err != nil {
		t.Fatal(err)
	}
	for {
		b := &Batch{}
		if err := r.Read(ctx, b, 3); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	if len(batches) != 2 || batches[0].Rows != 3 || batches[1].Rows != 1 {
		t.Fatalf("%d batches", len(batches))
	}
	if b := batches[0]; len(b.Columns[2].Soft.Of) != 3 || b.Columns[0].Soft.At(1) != nil || b.Columns[0].Codes.At(1) != 2 ||
		!b.Columns[0].IsMissing(0) || b.Columns[0].Soft.At(2) != nil || b.Columns[0].Text[0] != nil || !bytes.Equal(b.Columns[3].Text[1], []byte("12")) {
		t.Errorf("first batch: %+v", b)
	}
	if a, b := batches[0].Columns[3].Soft.At(0), batches[1].Columns[3].Soft.At(0); a == nil || a != b {
		t.Errorf("the same text is read as %v and as %v", a, b)
	}
	src, err := OpenAll(ctx, []string{"-"}, Options{Schema: softSchema(), Soft: true, KeepText: true, Stdin: strings.NewReader(softFile)})
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if err := src.(*Table).Slice(1, 4).Gather(ctx, &b, []int{2, 0, 2, 1}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []*Evidence{{Runs: []Run{{1, 2, 1}}}, nil, {Runs: []Run{{1, 2, 1}}}, {Runs: []Run{{0, 0, 1}, {1, 1, 2}}}} {
		if got := b.Columns[2].Soft.At(i); !reflect.DeepEqual(got, want) {
			t.Errorf("row %d of the gathered ones: %+v, want %+v", i, got, want)
		}
	}
	if part := b.Slice(2, 4); part.Columns[2].Soft.At(1) == nil || part.Columns[3].Soft.At(0) == nil || part.Columns[3].Soft.At(1) != nil {
		t.Error("a slice of the batch has other evidence")
	}
	if r, err = open(softFile, false); err == nil {
		err = r.Read(ctx, &b, 3)
	}
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), ":2:1:") {
		t.Errorf("read as values: %v", err)
	}
	if r, err = open("colour,grade,count,size\nred,10,1,30\nred,10,9..,30\n", true); err == nil {
		err = r.Read(ctx, &b, 3)
	}
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), ":3:3:") {
		t.Errorf("a range without categories: %v", err)
	}
	// A first row of evidence is data, not a header.
	if r, err = OpenReader(ctx, "-", Options{Schema: &Schema{Columns: []Column{{Categories: 3}, {Categories: 3}}}, Soft: true, Stdin: strings.NewReader("0..1,{1|2}\n")}); err == nil {
		err = r.Read(ctx, &b, 3)
	}
	if err != nil || b.Rows != 1 || b.Columns[0].Soft.At(0) == nil {
		t.Errorf("a first row of evidence: %d rows, %v", b.Rows, err)
	}
	if _, err := OpenReader(ctx, "x.csv", Options{Soft: true}); !errors.Is(err, ErrSetting) {
		t.Errorf("evidence without a schema: %v", err)
	}
}

// TestGatheredSoft adds evidence to two batches of one table: neither gets what was added to the other.
func TestGatheredSoft(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 9}}}
	set := func(code int) *Evidence {
		e, err := s.Columns[0].SetEvidence([]int{code})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	rows := NewBatch(s, 4)
	for r := range 3 {
		rows.Columns[0].SetSoft(r, set(r))
	}
	table, err := NewTable(s, 0)
	if err == nil {
		err = table.Append(rows)
	}
	if err != nil {
		t.Fatal(err)
	}
	var batches [2]Batch
	for i := range batches {
		if err := table.Gather(t.Context(), &batches[i], []int{0, 1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		batches[i].Columns[0].SetSoft(3, set(7+i))
	}
	for i := range batches {
		if got := batches[i].Columns[0].Soft.At(3); got.Likelihood(7+i) != 1 {
			t.Errorf("batch %d has %+v, want category %d", i, got, 7+i)
		}
	}
}

// TestHasSoft wants a part of a batch to have evidence where one of its rows does.
func TestHasSoft(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 9}}}
	e, err := s.Columns[0].SetEvidence([]int{3})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 3)
	b.Columns[0].SetSoft(1, e)
	for _, c := range []struct {
		lo, hi int
		want   bool
	}{{0, 3, true}, {0, 1, false}, {1, 2, true}, {2, 3, false}} {
		if got := b.Slice(c.lo, c.hi).HasSoft(); got != c.want {
			t.Errorf("rows %d to %d: %v, want %v", c.lo, c.hi-1, got, c.want)
		}
	}
}

// FuzzSoft wants evidence that is in order, or a message, whatever a cell says.
func FuzzSoft(f *testing.F) {
	for _, s := range []string{"{red|a..b}", "[0.2|0|0.8]", "1..2", "..", "[]", "{|}", "-1e308..1e308", "[1e308|1e308|1e-308]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		s := newSoftReader(newEncoder(softSchema(), false))
		for col := range s.enc.schema.Columns {
			e, problem := s.read(col, &Value{Kind: String, Text: []byte(cell)})
			if e == nil {
				continue
			}
			if problem != "" {
				t.Fatalf("%q: %v and %q", cell, e, problem)
			}
			c := &s.enc.schema.Columns[col]
			if c.Kind == Continuous {
				if !(e.Low < e.High) || e.Runs != nil {
					t.Fatalf("%q: %+v", cell, e)
				}
				continue
			}
			last := -1
			for _, r := range e.Runs {
				if r.First <= last || r.Last < r.First || r.Last >= c.Categories || !(r.Likelihood > 0) || math.IsInf(r.Likelihood, 0) {
					t.Fatalf("%q: %+v", cell, e)
				}
				last = r.Last
			}
			if last < 0 || !(e.Largest() > 0) || e.Likelihood(e.Runs[0].First) != e.Runs[0].Likelihood || e.Likelihood(c.Categories) != 0 {
				t.Fatalf("%q: %+v", cell, e)
			}
		}
	})
}

// TestAppendToSlice: rows that are added to a slice of a table have their own texts and evidence, and the table keeps its.
func TestAppendToSlice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("1,{0|2}\n02,1\n+3,0..1\n4,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Schema{Columns: []Column{{Kind: Continuous}, {Categories: 3}}}
	src, err := Open(t.Context(), path, Options{Schema: s, KeepText: true, Soft: true})
	if err != nil {
		t.Fatal(err)
	}
	whole := src.(*Table)
	shown := func(table *Table) (rows []string) {
		t.Helper()
		var b Batch
		if err := table.Gather(t.Context(), &b, span(0, table.Rows())); err != nil {
			t.Fatal(err)
		}
		for r := range b.Rows {
			row := fmt.Sprintf("%v %q", b.Columns[0].Values[r], b.Columns[0].Text[r])
			if e := b.Columns[1].Soft.At(r); e != nil {
				row += fmt.Sprint(" ", e.Runs)
			}
			rows = append(rows, row)
		}
		return rows
	}
	before := shown(whole)
	for _, part := range []*Table{whole.Slice(0, 2), whole.Slice(1, 3), whole.Slice(0, 4)} {
		want := append(shown(part), before[2], before[3])
		var last Batch
		if err := whole.Gather(t.Context(), &last, []int{2, 3}); err != nil {
			t.Fatal(err)
		}
		if err := part.Append(&last); err != nil {
			t.Fatal(err)
		}
		if got := shown(part); !slices.Equal(got, want) {
			t.Errorf("the slice has %q, want %q", got, want)
		}
		if err := whole.Append(&last); err != nil {
			t.Fatal(err)
		}
		before = append(before, before[2], before[3])
		if got := shown(whole); !slices.Equal(got, before) {
			t.Errorf("the table has %q, want %q", got, before)
		}
		if got := shown(part); !slices.Equal(got, want) {
			t.Errorf("then the slice has %q, want %q", got, want)
		}
	}
}
