package cells

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// testSchema has discrete columns, two of them with labels, and a continuous one.
func testSchema() *dataset.Schema {
	return &dataset.Schema{Columns: []dataset.Column{
		{Name: "a", Categories: 2},
		{Name: "b", Categories: 200},
		{Name: "c", Categories: 3, Labels: []string{"low", "mid", "high"}},
		{Name: "d", Categories: 3, Labels: []string{"10", "20", "30"}},
		{Name: "e", Kind: dataset.Continuous, Offset: 1, Scale: 2},
	}}
}

// texts are the contents of a BYTES tensor.
func texts(x ...string) (raw []byte) {
	for _, v := range x {
		raw = oip.AppendText(raw, v)
	}
	return raw
}

// TestTexts: a cell that is text is what it is in a CSV file, or refused as there.
func TestTexts(t *testing.T) {
	s := testSchema()
	s.Missing = []string{"-9", "two words", "20"} // of which two are labels
	s.Columns[2].Labels = []string{"low", "N/A", "two words", " wide"}
	s.Columns[2].Categories = 4
	r := NewReader(s, nil)
	show := func(b *dataset.Batch, v int) string {
		c := &b.Columns[v]
		switch {
		case c.IsMissing(0):
			return "missing"
		case c.Discrete():
			return fmt.Sprint(c.Codes.At(0))
		}
		return fmt.Sprint(c.Values[0])
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	file := func(row []string, v int) (string, error) {
		if err := os.WriteFile(path, []byte(strings.Join(row, ",")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		rows, err := dataset.Open(t.Context(), path, dataset.Options{Schema: s, Header: dataset.HeaderNo})
		if err != nil {
			return "", err
		}
		b := &dataset.Batch{}
		if err := rows.Gather(t.Context(), b, []int{0}); err != nil {
			t.Fatal(err)
		}
		return show(b, v), nil
	}
	kinds := map[string]int{}
	for _, text := range []string{
		"", " ", "NA", "?", "null", "N/A", "n/a", "NaN", " NA", "-9", " -9 ", "190", " 190", "190 ", " 1", "1_0", "0x1p3", "inf", "Infinity", "1e0", "+1", "-0", ".5", "1.5",
		"3.4e38", "-6e38", "1e39", "1e999", "low", " low ", "two words", "wide", " wide", "Low", "10", "20", " 30", "40", "10.0", "1e1", "020", "+30", "1 0",
	} {
		for v := range s.Columns {
			row := make([]string, len(s.Columns))
			row[0], row[v] = "1", text
			want, refused := file(row, v)
			b := dataset.NewBatch(s, 1)
			err := r.Read(b, &oip.Tensor{Name: "x", Datatype: oip.Bytes, Shape: []int64{1, 5}, Raw: texts(row...)}, nil)
			switch {
			case refused != nil && err == nil:
				t.Errorf("column %d: %q is %s; a file has: %v", v, text, show(b, v), refused)
			case refused == nil && (err != nil || show(b, v) != want):
				t.Errorf("column %d: %q is %s, %v; in a file it is %s", v, text, show(b, v), err, want)
			case refused != nil:
				want = "refused"
			}
			kinds[want]++
		}
	}
	if kinds["refused"] < 20 || kinds["missing"] < 20 || kinds["1"] < 5 || len(kinds) < 8 {
		t.Errorf("the files had %v", kinds)
	}
}

// TestNumbers: rows of a query that takes numbers are neither rounded nor bounded, what is not
// observed is NaN, the request's own memory stays as it is, and text and integers are rounded once.
func TestNumbers(t *testing.T) {
	r := NewReader(testSchema(), nil)
	floats64 := func(x ...float64) []byte {
		var raw []byte
		for _, v := range x {
			raw, _ = oip.AppendFloat(raw, oip.FP64, v)
		}
		return raw
	}
	wide := floats64(math.Nextafter(0.1, 1), 1e300, math.Inf(-1), -7, math.NaN())
	// Half-way between two float32 numbers and a little more, which float64 does not hold.
	const above = "1.00000005960464477539062500001"
	integers := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1<<55+1<<31+1), math.MaxUint64) // the first likewise
	for _, c := range []struct {
		tensor oip.Tensor
		mask   []byte
		as     oip.Datatype
		want   string
	}{
		{oip.Tensor{Datatype: oip.FP64, Raw: wide}, nil, oip.FP64, "[0.10000000000000002 1e+300 -Inf -7 NaN]"},
		{oip.Tensor{Datatype: oip.FP64, Raw: wide}, []byte{1, 0, 1, 0, 1}, oip.FP64, "[0.10000000000000002 NaN -Inf NaN NaN]"},
		{oip.Tensor{Datatype: oip.Uint8, Raw: []byte{0, 1, 2, 254, 255}}, nil, oip.FP32, "[0 1 2 254 255]"},
		{oip.Tensor{Datatype: oip.Bytes, Raw: texts("", " ?", "NA", "\t-1e3 ", above)}, nil, oip.FP64, "[NaN NaN NaN -1000 1.0000000596046448]"},
		{oip.Tensor{Datatype: oip.Bytes, Raw: texts("wet", "0x1p3", "0.1", "2", above)}, []byte{0, 0, 1, 1, 1}, oip.FP32, "[NaN NaN 0.10000000149011612 2 1.0000001192092896]"},
		{oip.Tensor{Datatype: oip.FP64}, nil, oip.FP64, "[]"},
		{oip.Tensor{Datatype: oip.Int64, Raw: integers}, nil, oip.FP32, "[3.602880131393126e+16 -1]"},
		{oip.Tensor{Datatype: oip.Uint64, Raw: integers}, []byte{1, 0}, oip.FP32, "[3.602880131393126e+16 NaN]"},
		{oip.Tensor{Datatype: oip.Int64, Raw: integers}, nil, oip.FP64, "[3.602879916644762e+16 -1]"},
	} {
		got, err := r.Numbers(&c.tensor, c.mask, c.as)
		if s := fmt.Sprint(got); err != nil || s != c.want {
			t.Errorf("%s %q as %s: %s, %v; want %s", c.tensor.Datatype, c.tensor.Raw, c.as, s, err, c.want)
		}
	}
	if string(wide) != string(floats64(math.Nextafter(0.1, 1), 1e300, math.Inf(-1), -7, math.NaN())) {
		t.Error("the mask changed the request")
	}
	_, err := r.Numbers(&oip.Tensor{Name: "x", Datatype: oip.Bytes, Raw: texts("1", "2", "3", "4", "5", "6", "7,5", "8", "9", "10")}, nil, oip.FP64)
	if !errors.Is(err, oip.ErrMessage) || !strings.Contains(err.Error(), `row 1, "b": "7,5" is not a number`) {
		t.Errorf("a cell that is no number: %v", err)
	}
}

// TestKeep: the numbers of observed cells are written to each of the rows that complete theirs. Cells that are missing, by
// a mark, NaN or the mask, and labels stay what was found.
func TestKeep(t *testing.T) {
	s := testSchema()
	s.Missing = []string{"-9"}
	r := NewReader(s, nil)
	var raw []byte
	for _, x := range []float64{math.NaN(), 7, 8, 20, 0.1, 1, 2, 3, 10, math.NaN()} {
		raw, _ = oip.AppendFloat(raw, oip.FP64, x)
	}
	for _, c := range []struct {
		tensor oip.Tensor
		mask   []byte
		times  int
		want   string
	}{
		{oip.Tensor{Datatype: oip.FP64, Raw: raw}, nil, 1, "[-1 7 8 20 0.1 1 2 3 10 -1]"},
		{oip.Tensor{Datatype: oip.FP64, Raw: raw}, []byte{1, 1, 1, 1, 1, 0, 1, 1, 0, 1}, 2, "[-1 7 8 20 0.1 -1 7 8 20 0.1 -1 2 3 -1 -1 -1 2 3 -1 -1]"},
		{oip.Tensor{Datatype: oip.Bytes, Raw: texts("0", "", "low", "30", " 0.1", "-9", "NA", "2", "10", "-9")}, nil, 1, "[0 -1 -1 -1 0.1 -1 -1 -1 -1 -1]"},
		{oip.Tensor{Datatype: oip.Bytes, Raw: texts("0", "what", "", "", "0.3", "1", "5", "", "", "0.2")}, []byte{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}, 1, "[-1 -1 -1 -1 -1 1 5 -1 -1 0.2]"},
	} {
		out := make([]float64, 10*c.times)
		for i := range out {
			out[i] = -1
		}
		r.Keep(out, c.times, &c.tensor, c.mask)
		if got := fmt.Sprint(out); got != c.want {
			t.Errorf("%s, %d times: %s, want %s", c.tensor.Datatype, c.times, got, c.want)
		}
	}
}

// TestMarks: a number that is a mark is missing, as in a file of numbers, in columns of all kinds; it is not given back.
func TestMarks(t *testing.T) {
	s := testSchema()
	s.Missing = []string{"-9", "1", "0.1"}
	r := NewReader(s, nil)
	for _, d := range []oip.Datatype{oip.FP64, oip.FP32} {
		for v := range s.Columns {
			for _, mark := range []float64{-9, 1, 0.1} {
				x := &oip.Tensor{Name: "x", Datatype: d, Shape: []int64{1, int64(len(s.Columns))}}
				for i := range s.Columns {
					cell := math.NaN()
					if i == v {
						cell = mark
					}
					x.Raw, _ = oip.AppendFloat(x.Raw, d, cell)
				}
				b := dataset.NewBatch(s, 1)
				if err := r.Read(b, x, nil); err != nil || !b.Columns[v].IsMissing(0) {
					t.Errorf("%s, column %d: %v is not missing (%v)", d, v, mark, err)
				}
				out := []float64{5, 5, 5, 5, 5}
				if r.Keep(out, 1, x, nil); !slices.Equal(out, []float64{5, 5, 5, 5, 5}) {
					t.Errorf("%s, column %d: the mark is given back: %v", d, v, out)
				}
			}
		}
	}
}

// BenchmarkRead is what a batch of rows takes to become columns.
func BenchmarkRead(b *testing.B) {
	for _, columns := range []int{16, 784} {
		b.Run(fmt.Sprintf("columns=%d", columns), func(b *testing.B) {
			const rows = 1024
			x := oip.Tensor{Name: "x", Datatype: oip.Int32, Shape: []int64{rows, int64(columns)}}
			for i := range rows * columns {
				x.Raw = binary.LittleEndian.AppendUint32(x.Raw, uint32(i&1))
			}
			s := &dataset.Schema{Columns: make([]dataset.Column, columns)}
			for i := range s.Columns {
				s.Columns[i].Categories = 2
			}
			r, to := NewReader(s, nil), dataset.NewBatch(s, rows)
			b.SetBytes(int64(len(x.Raw)))
			for b.Loop() {
				if err := r.Read(to, &x, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
