package dataset

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset/ndarray"
)

// numbers makes a .npy file of float64 rows.
func numbers(t *testing.T, rows [][]float64) string {
	t.Helper()
	s := &Schema{Columns: make([]Column, len(rows[0]))}
	b := &Batch{}
	for i := range s.Columns {
		s.Columns[i].Kind = Continuous
	}
	b.Resize(s, len(rows))
	for r, row := range rows {
		for i, x := range row {
			b.Columns[i].Values[r] = float32(x)
		}
	}
	return save(t, "numbers.npy", written(t, "numbers.npy", s, b))
}

// TestKeptCodes writes the labels of codes that an array has beside numbers, as other rows of the file have labels.
func TestKeptCodes(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 3, Labels: []string{"Oslo", "Paris", "Rome"}}, {Kind: Continuous}, {Categories: 4}}}
	src, err := Open(t.Context(), numbers(t, [][]float64{{2, 0.25, 3}, {0, 1.5, 0}}), Options{Schema: s, KeepText: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &Batch{}
	if err := src.Gather(t.Context(), b, []int{0, 1}); err != nil {
		t.Fatal(err)
	}
	if got, want := string(written(t, "a.csv", s, b)), "Rome,0.25,3\nOslo,1.5,0\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBlanksAroundLabels finds labels with blanks around them, as Parquet files have them, in a table in text, which keeps none
// around its cells, where no other label and no mark is meant.
func TestBlanksAroundLabels(t *testing.T) {
	labels := []string{" Private", "Self", " Self", " NA", "\ta b ", " twice", "twice ", " "}
	s := &Schema{Columns: []Column{{Name: "work", Categories: len(labels), Labels: labels}}}
	for cell, want := range map[string]string{
		" Private": "0", "Private": "0", `" Private"`: "0", "Self": "1", " Self": "1", `" Self"`: "2", "NA": "-", " NA": "-", `" NA"`: "3", "a b": "4", `" twice"`: "5", `"twice "`: "6", `" "`: "7",
	} {
		src, err := Open(t.Context(), save(t, "a.csv", []byte("work\n"+cell+"\n")), Options{Schema: s})
		if err != nil {
			t.Errorf("%q: %v", cell, err)
			continue
		}
		if got := strings.Fields(show(t, src)); got[len(got)-1] != want {
			t.Errorf("%q is %s, want %s", cell, got[len(got)-1], want)
		}
	}
	for _, cell := range []string{"twice", "private"} {
		if _, err := Open(t.Context(), save(t, "a.csv", []byte("work\n"+cell+"\n")), Options{Schema: s}); err == nil || !strings.Contains(err.Error(), "is not a category") {
			t.Errorf("%q: %v", cell, err)
		}
	}
}

// TestNumbersAreLabels wants a number of a file that does not write text to be the
// category with that label, in inference and under a schema, and to be written as
// that number again. Categories of other texts have their codes in such files.
func TestNumbersAreLabels(t *testing.T) {
	ctx := context.Background()
	path := numbers(t, [][]float64{{10, 0}, {2, 1}, {-1.5, 2}, {10, 1}})
	src, err := Open(ctx, path, Options{Types: map[string]Type{"1": {Labels: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := src.Schema().Columns[0].Labels, []string{"-1.5", "10", "2"}; !slices.Equal(got, want) {
		t.Fatalf("labels %q, want %q", got, want)
	}
	b := &Batch{}
	if err := src.Gather(ctx, b, []int{0, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	var codes []int
	for r := range b.Rows {
		codes = append(codes, b.Columns[0].Codes.At(r))
	}
	if want := []int{1, 2, 0, 1}; !slices.Equal(codes, want) {
		t.Errorf("codes %v, want %v", codes, want)
	}
	r, err := ndarray.OpenNPY(bytes.NewReader(written(t, "out.npy", src.Schema(), b)))
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float64, 2)
	for n, want := range []string{"[10 0]", "[2 1]", "[-1.5 2]", "[10 1]"} {
		if err := r.Next(row); err != nil || fmt.Sprint(row) != want {
			t.Errorf("row %d is written as %v, %v; want %s", n, row, err, want)
		}
	}
	if _, err := Open(ctx, numbers(t, [][]float64{{3, 0}}), Options{Schema: src.Schema()}); err == nil {
		t.Error("a number that is not a label was taken for one")
	}

	for _, other := range []string{"x\n", "07\n"} {
		want := `column 1 has numbers without text, as of .npy, beside labels that are not all different numbers (`
		_, err := OpenAll(ctx, []string{numbers(t, [][]float64{{7}, {5}}), save(t, "other.csv", []byte(other))}, Options{Header: HeaderNo, Types: map[string]Type{"1": {Labels: true}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("numbers beside the text %q: %v", other, err)
		}
	}
	texts := &Schema{Columns: []Column{{Categories: 3, Labels: []string{"07", "7", "x"}}, {Categories: 3}}}
	if src, err = Open(ctx, numbers(t, [][]float64{{2, 0}, {0, 1}}), Options{Schema: texts}); err != nil {
		t.Fatal(err)
	}
	if err := src.Gather(ctx, b, []int{0, 1}); err != nil || b.Columns[0].Codes.At(0) != 2 || b.Columns[0].Codes.At(1) != 0 {
		t.Errorf("codes %v, %v; want those of the file", b.Columns[0].Codes, err)
	}
}

// TestLabelsOfLargeNumbers wants numbers with and without text to have the same labels, and each
// kind of file to be read under the labels of the other, also under those that older models have.
func TestLabelsOfLargeNumbers(t *testing.T) {
	ctx, opts := context.Background(), Options{Header: HeaderNo, Types: map[string]Type{"1": {Labels: true}}}
	npy := numbers(t, [][]float64{{1e6}, {math.Copysign(0, -1)}, {0}, {2.5}, {1 << 60}})
	csv := save(t, "a.csv", []byte("1000000\n0\n0\n2.5\n1.152921504606847e+18\n"))
	older := &Schema{Columns: []Column{{Categories: 4, Labels: []string{"0", "1.152921504606847e+18", "1e+06", "2.5"}}}}
	for _, path := range []string{npy, csv} {
		src, err := Open(ctx, path, opts)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := src.Schema().Columns[0].Labels, []string{"0", "1.152921504606847e+18", "1000000", "2.5"}; !slices.Equal(got, want) {
			t.Errorf("%s: labels %q, want %q", path, got, want)
		}
		for _, s := range []*Schema{src.Schema(), older} {
			for _, other := range []string{npy, csv} {
				src, err := Open(ctx, other, Options{Header: HeaderNo, Schema: s})
				if err != nil {
					t.Fatal(err)
				}
				if got := rowsOf(t, src, false); !slices.Equal(got, []int{2, 0, 0, 3, 1}) {
					t.Errorf("%s under %q: codes %d", other, s.Columns[0].Labels, got)
				}
			}
		}
	}
	if _, err := Open(ctx, save(t, "b.csv", []byte("3e6\n")), Options{Header: HeaderNo, Schema: older}); err == nil {
		t.Error("a number that is not a label was taken for one")
	}
}
