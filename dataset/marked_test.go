package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset/ndarray"
)

// TestMarksOfNumbers wants the rows of an array and those of a table in text to be the same
// ones under marks of missing cells: when they are told, under a schema, in batches, and for
// what reads plain numbers.
func TestMarksOfNumbers(t *testing.T) {
	rows := [][]float64{{0, -9.9, 1e9}, {1, 2.5, 3}, {-1, 0.25, 4.5}, {1, 7, 0.5}, {0, 1.5, -1}}
	marks := []string{"-1", "1e9", "1000000000", "-9.9", "none"}
	var text strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&text, "%v,%v,%v\n", row[0], row[1], row[2])
	}
	table := save(t, "rows.csv", []byte(strings.ReplaceAll(text.String(), "1e+09", "1e9")))
	for _, d := range []ndarray.DType{{Kind: 'f', Size: 8}, {Kind: 'f', Size: 4}} {
		var array bytes.Buffer
		if err := ndarray.WriteNPYHeader(&array, d, len(rows), 3); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			for _, x := range row {
				array.Write(element(d, x))
			}
		}
		path := save(t, "rows.npy", array.Bytes())
		want, err := Open(t.Context(), table, Options{Missing: marks})
		if err != nil {
			t.Fatal(err)
		}
		opts := Options{Missing: marks}
		for range 2 { // as the file tells, then under the schema
			src, err := Open(t.Context(), path, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := show(t, src), show(t, want); got != want || !strings.Contains(got, "-,") {
				t.Errorf("%v: %s, want %s", d, got, want)
			}
			a, errA := Digest(t.Context(), src)
			b, errB := Digest(t.Context(), want)
			if errA != nil || errB != nil || a != b {
				t.Errorf("%v: the digests differ (%v, %v)", d, errA, errB)
			}
			opts = Options{Schema: want.Schema()}
		}
		r, err := OpenNumbers(path, 3, nil, ToFloat64, Options{Missing: marks})
		if err != nil {
			t.Fatal(err)
		}
		cells := make([]float64, 15)
		if n, err := r.Read(t.Context(), cells); n != 5 || err != nil && err != io.EOF || cells[1] == cells[1] || cells[2] == cells[2] || cells[6] == cells[6] || cells[14] == cells[14] {
			t.Errorf("%v: %v (%d rows, %v), want NaN for marks", d, cells, n, err)
		}
		r.Close()
	}
}

// TestMarksOfBuiltin wants the rows of a builtin source to be those of a file with the same numbers under marks: when these are
// told, which the schema keeps, and under a schema that has them.
func TestMarksOfBuiltin(t *testing.T) {
	const path = "builtin:random?rows=20&vars=3&categories=4&seed=2"
	plain, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w, err := NewWriter(&text, "rows.csv", plain.Schema(), 20)
	if err != nil {
		t.Fatal(err)
	}
	b := new(Batch)
	if err := errors.Join(plain.Gather(t.Context(), b, span(0, 20)), w.Write(b), w.Close()); err != nil {
		t.Fatal(err)
	}
	file := save(t, "rows.csv", text.Bytes())
	marked, err := Open(t.Context(), path, Options{Missing: []string{"0", "none"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := marked.Schema().Missing; !slices.Equal(got, []string{"0", "none"}) {
		t.Errorf("the schema keeps the marks %v", got)
	}
	for _, opts := range []Options{{Missing: []string{"0", "none"}}, {Schema: marked.Schema()}} {
		src, err := Open(t.Context(), path, opts)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Open(t.Context(), file, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := show(t, src), show(t, want); got != want || !strings.Contains(got, "-,") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestMarksOfTables wants marks in the labels and numbers of a table, and the same table where there are none.
func TestMarksOfTables(t *testing.T) {
	s := &Schema{Columns: []Column{
		{Categories: 3, Labels: []string{"low", "none", "top"}}, {Categories: 2, Labels: []string{"1.0", "2"}}, {Kind: Continuous, Offset: 1, Scale: 2}, {Categories: 300},
	}}
	table, err := NewTable(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(s, 3)
	for n := range 3 {
		b.Columns[0].Codes.Set(n, n)
		b.Columns[1].Codes.Set(n, n%2)
		b.Columns[2].Values[n] = s.Columns[2].Standard(float64(n))
		b.Columns[3].Codes.Set(n, n)
	}
	if err := table.Append(b); err != nil {
		t.Fatal(err)
	}
	marked, err := table.withMarks(t.Context(), []string{"none", "1"}, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := marked.Gather(t.Context(), b, span(0, 3)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for n := range 3 {
		for i := range b.Columns {
			got = append(got, fmt.Sprint(b.Columns[i].IsMissing(n)))
		}
	}
	if want := "false true false false true false true true false true false false"; strings.Join(got, " ") != want {
		t.Errorf("missing cells %v, want %s", got, want)
	}
	if same, err := table.withMarks(t.Context(), []string{"500.5"}, &Options{}); err != nil || same == table {
		t.Errorf("a column of numbers is looked at: %v", err)
	}
	if _, err := table.withMarks(t.Context(), []string{"none"}, &Options{NoMissing: true}); err == nil || !strings.Contains(err.Error(), "row 2: cell of column 1 is missing") {
		t.Errorf("a marked cell where none may be missing: %v", err)
	}
	if same, err := table.withMarks(t.Context(), []string{"what"}, &Options{}); err != nil || same != table {
		t.Errorf("a mark that no cell has: another table, %v", err)
	}
}

// TestMarkedNumbers wants a mark to be its number and, if it is a fraction, that of float32, and nothing beside them.
func TestMarkedNumbers(t *testing.T) {
	got := MarkedNumbers([]string{"none", "-9.9", "999999999", "1e-50", "1e9", "2147483647", "?", " -7 "})
	want := map[float64]bool{-9.9: true, float64(float32(-9.9)): true, 999999999: true, 1e-50: true, 1e9: true, 2147483647: true, -7: true}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := MarkedNumbers([]string{"none"}); got != nil {
		t.Errorf("%v of no numbers", got)
	}
}

// TestMarksKeepImages wants rows of bytes to be images with marks, too.
func TestMarksKeepImages(t *testing.T) {
	var array bytes.Buffer
	if err := ndarray.WriteNPYHeader(&array, ndarray.DType{Kind: 'u', Size: 1}, 2, 2, 2); err != nil {
		t.Fatal(err)
	}
	array.Write([]byte{0, 1, 2, 255, 2, 1, 0, 0})
	src, err := Open(t.Context(), save(t, "images.npy", array.Bytes()), Options{Missing: []string{"255"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := src.Schema(); s.Image != [3]int{2, 2, 1} || s.Columns[0].Categories != 3 {
		t.Errorf("images of %v with %d shades, want 2 x 2 with 3", s.Image, s.Columns[0].Categories)
	}
	// Rows without a pixel are none.
	src, err = Open(t.Context(), save(t, "images.npy", array.Bytes()), Options{Types: map[string]Type{"2": {Skip: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if s := src.Schema(); s.Image != [3]int{} || len(s.Columns) != 3 {
		t.Errorf("images of %v, %d columns, want 3 columns without a shape", s.Image, len(s.Columns))
	}
}
