package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/pce-engine/pce/dataset"
)

// encode writes rows in groups of at most 100.
func encode[T any](t testing.TB, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Zstd))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func load(t testing.TB, content []byte, opts dataset.Options) (dataset.Source, error) {
	t.Helper()
	dataset.Register(".parquet", Format)
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dataset.Open(context.Background(), path, opts)
}

type person struct {
	Age    int32    `parquet:"age"`
	Height *float64 `parquet:"height"`
	Member bool     `parquet:"member"`
	Colour string   `parquet:"colour,dict"`
	Visits uint64   `parquet:"visits"`
	Score  float32  `parquet:"score"`
}

func people(n int) []person {
	out := make([]person, n)
	for i := range out {
		h := float64(i) + 0.5
		out[i] = person{Age: int32(i % 90), Height: &h, Member: i%2 == 1, Colour: []string{"red", "blue"}[i%2], Visits: uint64(i % 7), Score: -1}
	}
	out[1].Height = nil
	out[2].Score = float32(math.NaN())
	return out
}

func TestRead(t *testing.T) {
	const n = 250 // three row groups
	src, err := load(t, encode(t, people(n)...), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range src.Schema().Columns {
		columns = append(columns, fmt.Sprint(c.Name, c.Kind, c.Categories, c.Labels))
	}
	want := "age discrete 90 [] height continuous 0 [] member discrete 2 [] colour discrete 2 [blue red] visits discrete 7 [] score continuous 0 []"
	if got := strings.Join(strings.Fields(strings.NewReplacer("discrete", " discrete ", "continuous", " continuous ", "[", " [").Replace(strings.Join(columns, " "))), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b := new(dataset.Batch)
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	if err := src.Gather(context.Background(), b, rows); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		height, score := src.Schema().Columns[1].Number(b.Columns[1].Values[i]), src.Schema().Columns[5].Number(b.Columns[5].Values[i])
		if b.Columns[0].Codes.At(i) != i%90 || b.Columns[2].Codes.At(i) != i%2 || b.Columns[3].Codes.At(i) != 1-i%2 || b.Columns[4].Codes.At(i) != i%7 ||
			i != 1 && !(math.Abs(height-(float64(i)+0.5)) < 1e-5) || i == 1 && height == height || i != 2 && score != -1 || i == 2 && score == score {
			t.Fatalf("row %d differs", i)
		}
	}
	_, err = load(t, encode(t, people(200)...), dataset.Options{Schema: &dataset.Schema{Columns: []dataset.Column{{Name: "age", Categories: 90}}}})
	if !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), `the header has "height", which is not a variable of the model`) {
		t.Errorf("other schema: %v", err)
	}
}

// TestIntegers: integers that float64 rounds to half-way between two float32 numbers become the nearer one.
func TestIntegers(t *testing.T) {
	type whole struct {
		Signed   int64  `parquet:"signed"`
		Unsigned uint64 `parquet:"unsigned"`
	}
	dataset.Register(".parquet", Format)
	path := filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(path, encode(t, whole{-(1<<55 + 1<<31 + 1), 1<<63 + 1<<39 + 1}), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := dataset.OpenNumbers(path, 2, nil, dataset.ToFloat32, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]float64, 2)
	if _, err := r.Read(t.Context(), got); err != nil || got[0] != -(1<<55+1<<32) || got[1] != 1<<63+1<<40 {
		t.Errorf("%v: %v", got, err)
	}
}

// TestLargeLabels takes large integers as categories by all of their digits, and refuses those that are told apart by digits that
// float64 lacks: as numbers they would be one category.
func TestLargeLabels(t *testing.T) {
	type row struct{ ID int64 }
	opts := dataset.Options{Types: map[string]dataset.Type{"ID": {Labels: true}}}
	src, err := load(t, encode(t, row{1_700_000_000_123_456_789}, row{5}), opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(src.Schema().Columns[0].Labels, " "); got != "1700000000123456789 5" {
		t.Errorf("labels %s", got)
	}
	if _, err := load(t, encode(t, row{1 << 60}, row{1<<60 + 1}), opts); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), `("1.152921504606847e+18", "1152921504606846977")`) {
		t.Errorf("two integers that are one float64: %v", err)
	}
}

// TestMarks wants numbers and texts that are listed as marks to be missing.
func TestMarks(t *testing.T) {
	rows := people(6)
	*rows[3].Height, rows[4].Age, rows[5].Colour = -99.5, 99, "unknown"
	src, err := load(t, encode(t, rows...), dataset.Options{Missing: []string{"-99.5", "99", "unknown", "-1"}})
	if err != nil {
		t.Fatal(err)
	}
	b := dataset.NewBatch(src.Schema(), 6)
	if err := src.Gather(t.Context(), b, []int{0, 1, 2, 3, 4, 5}); err != nil {
		t.Fatal(err)
	}
	for _, cell := range [][2]int{{3, 1}, {4, 0}, {5, 3}, {0, 5}} {
		if !b.Columns[cell[1]].IsMissing(cell[0]) {
			t.Errorf("row %d, column %d is not missing", cell[0], cell[1])
		}
	}
	if b.Columns[1].IsMissing(0) || b.Columns[3].IsMissing(0) {
		t.Error("cells without a mark are missing")
	}
}

// TestEmptyTexts wants empty texts to be missing, as empty cells of other tables are, but for a schema that has one as a category.
func TestEmptyTexts(t *testing.T) {
	type row struct{ A string }
	file := encode(t, row{"x"}, row{""}, row{"y"}, row{"x"})
	for want, opts := range map[string]dataset.Options{
		"x - y x": {},
		"x  y x":  {Schema: &dataset.Schema{Columns: []dataset.Column{{Categories: 3, Labels: []string{"", "x", "y"}}}}},
	} {
		src, err := load(t, file, opts)
		if err != nil {
			t.Fatal(err)
		}
		var b dataset.Batch
		if err := src.Gather(t.Context(), &b, []int{0, 1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for r := range b.Rows {
			if code := b.Columns[0].Codes.At(r); code == dataset.Missing {
				got = append(got, "-")
			} else {
				got = append(got, src.Schema().Columns[0].Labels[code])
			}
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
	type number struct{ A *string }
	empty, dataPath := "", filepath.Join(t.TempDir(), "a.parquet")
	if err := os.WriteFile(dataPath, encode(t, number{&empty}, number{}), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := dataset.OpenNumbers(dataPath, 1, nil, dataset.ToFloat64, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]float64, 2)
	if n, err := r.Read(t.Context(), got); err != nil || n != 2 || got[0] == got[0] || got[1] == got[1] {
		t.Errorf("%d rows of numbers %v, %v; want two missing cells", n, got, err)
	}
}

// TestCustomaryMarks wants texts such as NA to be missing, as they are in a table in text, unless the schema has them as labels.
func TestCustomaryMarks(t *testing.T) {
	type row struct{ A string }
	texts := []string{"x", "NA", "?", "n/a", "Null", "NaN", "y", "NAN?", "none"}
	var rows []row
	for _, text := range texts {
		rows = append(rows, row{text})
	}
	file := encode(t, rows...)
	labels := &dataset.Schema{Columns: []dataset.Column{{Categories: 6, Labels: []string{"x", "y", "NAN?", "none", "NA", "?"}}}}
	for want, opts := range map[string]dataset.Options{
		"x - - - - - y NAN? none":  {},
		"x NA ? - - - y NAN? none": {Schema: labels},
		"x - ? - - - y NAN? none":  {Schema: labels, Missing: []string{"NA"}},
	} {
		src, err := load(t, file, opts)
		if err != nil {
			t.Fatal(err)
		}
		var b dataset.Batch
		if err := src.Gather(t.Context(), &b, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for r := range b.Rows {
			text := "-"
			if code := b.Columns[0].Codes.At(r); code != dataset.Missing {
				text = src.Schema().Columns[0].Labels[code]
			}
			got = append(got, text)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}

// TestWideCodes reads integers at the border of the two widths of codes.
func TestWideCodes(t *testing.T) {
	type row struct{ A int64 }
	for _, n := range []int{65534, 65535, 65536, 65537, 151936, dataset.MaxCategories} {
		opts := dataset.Options{Schema: &dataset.Schema{Columns: []dataset.Column{{Name: "A", Categories: n}}}}
		want := []int{0, n - 1, n - 2, 255, 256}
		var rows []row
		for _, c := range want {
			rows = append(rows, row{int64(c)})
		}
		src, err := load(t, encode(t, rows...), opts)
		if err != nil {
			t.Fatal(err)
		}
		var b dataset.Batch
		if err := src.Gather(context.Background(), &b, []int{0, 1, 2, 3, 4}); err != nil {
			t.Fatal(err)
		}
		codes := &b.Columns[0].Codes
		if wide := n > dataset.MaxNarrow; (codes.Wide != nil) != wide || (codes.Narrow != nil) == wide {
			t.Errorf("%d categories: %d narrow and %d wide codes", n, len(codes.Narrow), len(codes.Wide))
		}
		for i, c := range want {
			if codes.At(i) != c {
				t.Errorf("%d categories: row %d has code %d, want %d", n, i, codes.At(i), c)
			}
		}
		for _, bad := range []int64{int64(n), 1<<32 + 1, -1} {
			_, err := load(t, encode(t, row{0}, row{bad}), opts)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a.parquet:2:1: %d is out of range", bad)) {
				t.Errorf("%d categories: cell %d was read: %v", n, bad, err)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	good := encode(t, people(10)...)
	damaged := bytes.Clone(good)
	for i := 40; i < 80; i++ {
		damaged[i] ^= 0xff
	}
	type nested struct {
		A struct {
			B int32
		}
	}
	type repeated struct{ A []int32 }
	type decimal struct {
		A int64 `parquet:"A,decimal(2:10)"`
	}
	type infinite struct{ A float64 }
	type lz4 struct {
		A int64
		B int64 `parquet:"B,lz4"`
	}
	for _, tt := range []struct {
		in   []byte
		want string
	}{
		{nil, "is this a Parquet file?"},
		{[]byte("PAR1 and no more PAR1"), "is this a Parquet file?"},
		{good[:len(good)/2], "is this a Parquet file?"},
		{[]byte("PAR1\x29\xfc\xff\xff\xff\x07\x00\x07\x00\x00\x00PAR1"), "its footer makes no sense"}, // a list of 2^31-1 columns
		{damaged, "damaged"},
		{encode(t, nested{}), `column "A" is nested or repeated; convert it or write the file without it`},
		{encode(t, repeated{}), `column "A" is nested or repeated; convert it or write the file without it`},
		{encode(t, decimal{}), `column "A" is decimal; convert it or write the file without it`},
		{encode(t, lz4{}), `a.parquet: column "B" is packed with LZ4, which is not read; write the file with snappy or zstd`},
		{encode(t, infinite{}, infinite{math.Inf(1)}), "a.parquet:2:1: +Inf is not a finite number; replace it"},
		{encode[infinite](t), "has no rows"},
	} {
		_, err := load(t, tt.in, dataset.Options{})
		if !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// TestNumbersAsTexts reads texts that are numbers as numbers where a column is of numbers, by its type or by a schema, and as texts where
// nothing says so. An infinite number may be in a column that is skipped.
func TestNumbersAsTexts(t *testing.T) {
	type row struct {
		A string  `parquet:"a"`
		B float64 `parquet:"b"`
	}
	in := encode(t, row{"1.5", math.Inf(1)}, row{"-2", 0}, row{"?", 1})
	types := map[string]dataset.Type{"a": {Kind: dataset.Continuous}, "b": {Skip: true}}
	numbers, err := load(t, in, dataset.Options{Types: types})
	if err != nil {
		t.Fatal(err)
	}
	under, err := load(t, in, dataset.Options{Types: map[string]dataset.Type{"b": {Skip: true}}, Schema: numbers.Schema()})
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range []dataset.Source{numbers, under} {
		b, c := new(dataset.Batch), &src.Schema().Columns[0]
		if err := src.Gather(t.Context(), b, []int{0, 1, 2}); err != nil {
			t.Fatal(err)
		}
		v := b.Columns[0].Values
		if v[0] != c.Standard(1.5) || v[1] != c.Standard(-2) || v[2] == v[2] {
			t.Errorf("%v, want 1.5, -2 and a missing cell", v)
		}
	}
	texts, err := load(t, in, dataset.Options{Types: map[string]dataset.Type{"b": {Skip: true}}})
	if err != nil || len(texts.Schema().Columns[0].Labels) != 2 {
		t.Errorf("%v, want two labels", err)
	}
	if _, err := load(t, encode(t, row{"1.5", 0}, row{"x", 0}), dataset.Options{Types: types}); !errors.Is(err, dataset.ErrFormat) || !strings.Contains(err.Error(), `"x" is not a number`) {
		t.Errorf("%v, want an error about x", err)
	}
}

// TestEmptyGroups reads the rows around groups without any, which have a dictionary and no page of values.
func TestEmptyGroups(t *testing.T) {
	type row struct {
		B int32 `parquet:"b,dict"`
	}
	good := encode(t, row{0}, row{1}, row{1}, row{0})
	file, err := parquet.OpenFile(bytes.NewReader(good), int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	meta := *file.Metadata()
	whole := meta.RowGroups[0]
	chunk := whole.Columns[0]
	chunk.MetaData.NumValues, chunk.MetaData.DataPageOffset, chunk.MetaData.DictionaryPageOffset, chunk.MetaData.TotalCompressedSize = 0, 0, 4, 15
	empty := format.RowGroup{Columns: []format.ColumnChunk{chunk}}
	for want, groups := range map[string][]format.RowGroup{
		"0110":     {empty, empty, whole, empty},
		"01100110": {whole, empty, whole},
	} {
		meta.RowGroups, meta.NumRows = groups, int64(len(want))
		footer := marshal(t, &meta)
		edited := append(bytes.Clone(good), footer...)
		edited = append(binary.LittleEndian.AppendUint32(edited, uint32(len(footer))), "PAR1"...)
		if got, err := cells(t, edited); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(encode(f, people(10)...))
	f.Add(ofPages(f, format.Int32, 1, format.Uncompressed, inDifferences(1, 2, math.MinInt32, math.MaxInt32)))
	f.Add(ofPages(f, format.Boolean, 2, format.Snappy, page{cells: 9, levels: []byte{9 << 1, 1}, encoding: format.RLE, values: []byte{9 << 1, 1}}))
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, err := load(t, in, dataset.Options{MaxBytes: 1 << 24}); err != nil && !errors.Is(err, dataset.ErrFormat) {
			t.Fatal(err)
		}
	})
}
