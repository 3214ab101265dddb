package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestWidths reads the last code, a missing cell and code 0 on both sides of the
// border between narrow and wide codes, by every reader.
func TestWidths(t *testing.T) {
	for _, n := range []int{65534, 65535, 65536, 65537, 151936, MaxCategories} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			types := map[string]Type{"*": {Categories: n}}
			s := &Schema{Columns: []Column{{Name: "a", Categories: n}, {Name: "b", Categories: n}}}
			want := []int{n - 1, 0, Missing, n - 2, 1, n - 1}
			b := NewBatch(s, 3)
			for i, c := range want {
				b.Columns[i%2].Codes.Set(i/2, c)
			}
			check := func(what string, src Source, want []int) {
				t.Helper()
				if got := rowsOf(t, src, n > MaxNarrow); !slices.Equal(got, want) {
					t.Errorf("%s: %d, want %d", what, got, want)
				}
			}
			read := func(name string, data []byte, o Options) Source {
				t.Helper()
				src, err := Open(context.Background(), save(t, name, data), o)
				if err != nil {
					t.Fatal(err)
				}
				return src
			}
			csv := written(t, "a.csv", s, b)
			check("csv", read("a.csv", csv, Options{Types: types, Header: HeaderNo}), want)
			check("csv of a model", read("a.csv", csv, Options{Schema: s, Header: HeaderNo}), want)
			check("data", read("a.data", csv, Options{Types: types}), want)
			full := NewBatch(s, 3)
			for i := range want {
				full.Columns[i%2].Codes.Set(i/2, max(0, want[i]))
			}
			dense := slices.Clone(want)
			dense[2] = 0
			check("npy", read("a.npy", written(t, "a.npy", s, full), Options{Types: types}), dense)

			table, err := NewTable(s, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Append(b); err != nil {
				t.Fatal(err)
			}
			check("table", table, want)
			check("slice", table.Slice(1, 3), want[2:])
			cell := 2
			if n > MaxNarrow {
				cell = 4
			}
			if got := table.Bytes(); got != int64(len(want)*cell) {
				t.Errorf("the table takes %d bytes", got)
			}

			var loop Batch
			block, err := AppendBlock(nil, s, b)
			if err == nil {
				err = DecodeBlock(s, block, &loop)
			}
			if err != nil || len(block) != blockFrame+len(want)*cell {
				t.Fatalf("a block of %d bytes: %v", len(block), err)
			}
			again, err := NewTable(s, 0)
			if err == nil {
				err = again.Append(&loop)
			}
			if err != nil {
				t.Fatal(err)
			}
			check("block", again, want)

			sums, err := Summarize(context.Background(), table)
			if err != nil {
				t.Fatal(err)
			}
			if a := sums[0]; a.Observed != 2 || a.Min != 1 || a.Max != float64(n-1) {
				t.Errorf("summary of a: %+v", a)
			}
			for _, bad := range []int{n, 1 << 25} {
				if bad >= b.Columns[0].Codes.Limit() {
					continue
				}
				b.Columns[0].Codes.Set(0, bad)
				if err := table.Append(b); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("code %d of %d categories", bad, n)) {
					t.Errorf("code %d was appended: %v", bad, err)
				}
			}
			for _, bad := range []string{fmt.Sprint(n), "4294967295", "4294967296", "-1"} {
				_, err := Open(context.Background(), save(t, "a.csv", []byte("0,0\n"+bad+",0\n")), Options{Schema: s, Header: HeaderNo})
				if err == nil || !strings.Contains(err.Error(), "a.csv:2:1: "+bad+" is out of range") || !strings.Contains(err.Error(), fmt.Sprintf("0 to %d", n-1)) {
					t.Errorf("cell %s was read: %v", bad, err)
				}
			}
		})
	}
}

// rowsOf returns all cells of a source row by row, and wants codes of one width.
func rowsOf(t *testing.T, src Source, wide bool) []int {
	t.Helper()
	var b Batch
	if err := src.Gather(context.Background(), &b, span(0, src.Rows())); err != nil {
		t.Fatal(err)
	}
	var rows []int
	for r := range b.Rows {
		for i := range b.Columns {
			c := &b.Columns[i].Codes
			if (c.Wide != nil) != wide || (c.Narrow != nil) == wide {
				t.Fatalf("column %d has %d narrow and %d wide codes", i, len(c.Narrow), len(c.Wide))
			}
			rows = append(rows, c.At(r))
		}
	}
	return rows
}

// TestWideVocabulary reads texts and labels of more than 65,535 kinds.
func TestWideVocabulary(t *testing.T) {
	const words = 70_000
	var text, lines strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "w%05d ", i)
		fmt.Fprintf(&lines, "w%05d\n", i)
	}
	sizes := []int{65535, 65536, 65534, 65537}
	if testing.Short() {
		sizes = sizes[:2] // both sides of what narrow codes hold
	}
	for _, size := range sizes {
		src, err := Open(context.Background(), save(t, "a.txt", []byte(text.String())), Options{Text: Text{Unit: Word, Length: 1, Vocabulary: size}})
		if err != nil {
			t.Fatal(err)
		}
		got := rowsOf(t, src, size > MaxNarrow)
		want := make([]int, words) // words that come once are in alphabetical order, the rest is <unk>
		for i := range size - 1 {
			want[i] = i + 1
		}
		if !slices.Equal(got, want) {
			t.Errorf("a vocabulary of %d: other codes", size)
		}
	}
	path := save(t, "a.csv", []byte(lines.String()))
	src, err := Open(context.Background(), path, Options{Header: HeaderNo, Types: map[string]Type{"1": {Labels: true}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range rowsOf(t, src, true) {
		if c != i {
			t.Fatalf("label %d has code %d", i, c)
		}
	}
	_, err = Open(context.Background(), path, Options{Header: HeaderNo})
	if err == nil || !strings.Contains(err.Error(), "a.csv:65536:1: more than 65535 different texts; set the column's type to skip, or to label if they are categories") {
		t.Errorf("70,000 texts make a column of labels unasked: %v", err)
	}
	mixed := save(t, "b.csv", []byte("7\n"+lines.String()))
	if _, err = Open(context.Background(), mixed, Options{Header: HeaderNo}); err == nil || !strings.Contains(err.Error(), "more than 65535 different texts") {
		t.Errorf("numbers and 70,000 texts make a column of labels unasked: %v", err)
	}
}

// TestWideIDX reads idx files of 32-bit integers into columns at the border of the widths.
func TestWideIDX(t *testing.T) {
	idx := func(cells ...int) string {
		file := []byte("\x00\x00\x0c\x01")
		file = binary.BigEndian.AppendUint32(file, uint32(len(cells)))
		for _, c := range cells {
			file = binary.BigEndian.AppendUint32(file, uint32(c))
		}
		return save(t, "a.idx", file)
	}
	for _, n := range []int{65534, 65535, 65536, 65537, 151936, MaxCategories} {
		s := &Schema{Columns: []Column{{Categories: n}}}
		want := []int{0, n - 1, n - 2, 255, 256}
		src, err := Open(context.Background(), idx(want...), Options{Schema: s})
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsOf(t, src, n > MaxNarrow); !slices.Equal(got, want) {
			t.Errorf("%d categories: codes %d, want %d", n, got, want)
		}
		for _, bad := range []int{n, 1<<31 - 1, -1} {
			_, err := Open(context.Background(), idx(0, bad), Options{Schema: s})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a.idx:2:1: %d is out of range", bad)) {
				t.Errorf("%d categories: cell %d was read: %v", n, bad, err)
			}
		}
	}
}

// TestNarrowRowsOfWideModels hands rows of few categories out under the schema of
// a model that has more.
func TestNarrowRowsOfWideModels(t *testing.T) {
	model := &Schema{Columns: []Column{{Categories: 70_000}, {Categories: 300}}}
	for _, path := range []string{"builtin:random?rows=37&vars=2&categories=256", "builtin:random?rows=37&vars=2&categories=300"} {
		plain, err := Open(context.Background(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		under, err := Open(context.Background(), path, Options{Schema: model})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := rowsOf(t, under, true), rowsOf(t, plain, false); !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	// Cells of each stored width, missing ones among them.
	for categories, codes := range map[int][]int{3: {2, Missing, 0}, 256: {255, 0, 7}, 65535: {65534, Missing, 255}} {
		s := &Schema{Columns: []Column{{Categories: categories}}}
		table, err := NewTable(s, 0)
		if err != nil {
			t.Fatal(err)
		}
		b := NewBatch(s, len(codes))
		for r, c := range codes {
			b.Columns[0].Codes.Set(r, c)
		}
		if err := table.Append(b); err != nil {
			t.Fatal(err)
		}
		table.schema = &Schema{Columns: []Column{{Categories: 1 << 20}}}
		if got := rowsOf(t, table, true); !slices.Equal(got, codes) {
			t.Errorf("%d categories: %d, want %d", categories, got, codes)
		}
	}
}

// TestCodesAreExact wants every code to be exact where cells are float32.
func TestCodesAreExact(t *testing.T) {
	if last := MaxCategories - 1; int(float32(last)) != last || int(math.Nextafter32(float32(last), math.MaxFloat32)) != MaxCategories {
		t.Errorf("code %d reads as %v", last, float32(last))
	}
}
