package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// written returns what a writer makes of a batch.
func written(t *testing.T, name string, s *Schema, b *Batch) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, name, s, b.Rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(b.Slice(0, b.Rows/2)), w.Write(b.Slice(b.Rows/2, b.Rows)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestWriteAndRead(t *testing.T) {
	labels := Column{Categories: 3, Labels: []string{"a,b", `say "x"`, " c "}}
	for _, tt := range []struct {
		name    string
		columns []Column
		missing float64
	}{
		{"a.csv", []Column{{Categories: 300}, {Kind: Continuous}, labels}, 0.3},
		{"one.csv", []Column{{Categories: 3}}, 0.5},
		{"a.npy", []Column{{Categories: 256}, {Categories: 2}}, 0},
		{"wide.npy", []Column{{Categories: 257}, {Categories: MaxCategories}}, 0},
		{"both.npy", []Column{{Categories: 300}, {Kind: Continuous}}, 0.3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Schema{Columns: tt.columns}
			b := randomBatch(s, 40, tt.missing, rand.New(rand.NewPCG(3, 4)))
			src, err := Open(context.Background(), save(t, tt.name, written(t, tt.name, s, b)), Options{Schema: s})
			if err != nil {
				t.Fatal(err)
			}
			got := new(Batch)
			if err := src.Gather(context.Background(), got, span(0, src.Rows())); err != nil {
				t.Fatal(err)
			}
			if got.Rows != b.Rows {
				t.Fatalf("%d rows, want %d", got.Rows, b.Rows)
			}
			for r := range b.Rows {
				for col := range b.Columns {
					if !sameCell(got, b, col, r, r) {
						t.Fatalf("row %d, column %d differs", r, col)
					}
				}
			}
		})
	}
}

func TestNPYImagesRead(t *testing.T) {
	s := &Schema{Columns: make([]Column, 12), Image: [3]int{2, 2, 3}}
	for i := range s.Columns {
		s.Columns[i].Categories = 200
	}
	b := randomBatch(s, 5, 0, rand.New(rand.NewPCG(3, 4)))
	b.Columns[4].Codes.Set(2, 199)
	src, err := Open(context.Background(), save(t, "a.npy", written(t, "a.npy", s, b)), Options{})
	if err != nil || !src.Schema().Equal(s) {
		t.Errorf("%v", err)
	}
}

func TestBadArrays(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 3}, {Kind: Continuous}}}
	b := NewBatch(s, 2)
	b.Columns[0].Codes.Set(1, 2)
	b.Columns[1].Values[0] = float32(math.Inf(1))
	data := written(t, "a.npy", s, b)
	for _, tt := range []struct {
		name string
		in   []byte
		opts Options
		want string
	}{
		{"a.npy", data, Options{}, "a.npy:1:2: +Inf is not a finite number; replace it"},
		{"a.npy", data[:len(data)-1], Options{}, "a.npy:1:2: +Inf is not a finite number; replace it"},
		{"a.npy", data[:130], Options{}, "a.npy: ends after 0 of the 2 rows of its header; the file is cut short"},
		{"a.npy", nil, Options{}, "a.npy: does not begin like a .npy file; write it with numpy.save"},
		{"a-idx1-ubyte", []byte("\x00\x00\x08\x01\x00\x00\x00\x00"), Options{}, "a-idx1-ubyte: has no rows; give a file with at least one"},
		{"a.idx", []byte("\x00\x00\x08\x01\x00\x00\x00\x01\x03"), Options{Schema: &Schema{Columns: []Column{{Categories: 3}}}}, "a.idx:1:1: 3 is out of range for column 1, whose categories are 0 to 2; fix the cell or give the column more categories when training"},
		{"a.idx", []byte("\x00\x00\x0d\x01\x00\x00\x00\x01\x7f\xc0\x00\x00"), Options{Schema: &Schema{Columns: []Column{{Categories: 3}}}, NoMissing: true}, "a.idx:1:1: cell of column 1 is missing; fill it or allow missing cells"},
		{"a.idx", []byte("\x00\x00\x08\x01\x00\x00\x00\x01\x03"), Options{Schema: s}, "a.idx: row has 1 cells for 2 variables; give one cell a variable"},
	} {
		path := save(t, tt.name, tt.in)
		_, err := Open(context.Background(), path, tt.opts)
		if err == nil {
			t.Errorf("no error, want %s", tt.want)
		} else if got := message(t, err, path); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestWritersRefuse(t *testing.T) {
	s := &Schema{Columns: []Column{{Name: "a", Categories: 3}}}
	var out bytes.Buffer
	npy, err := NewWriter(&out, "a.npy", s, 2)
	if err != nil {
		t.Fatal(err)
	}
	codes, err := NewWriter(&out, "a.npy", s, 1)
	if err != nil {
		t.Fatal(err)
	}
	csv, err := NewWriter(&out, "a.csv", s, 2)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := NewNumberWriter(&out, "a.csv", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, errExt := NewWriter(&out, "a.doc", s, 2)
	_, errExt2 := NewNumberWriter(&out, "a.png", 1, 2)
	_, errPNG := NewWriter(&out, "a.png", s, 2)
	bad := NewBatch(s, 1)
	bad.Columns[0].Codes.Set(0, 3)
	for want, err := range map[string]error{
		`a cell of "a" is missing`:                                  npy.Write(NewBatch(s, 1)),
		"1 of 2 rows were written":                                  npy.Close(),
		"code 3 of \"a\", which has 3 categories":                   csv.Write(bad),
		"code 3 of \"a\"":                                           codes.Write(bad),
		"row 1 of 1 numbers written to a file of 1 x 2":             numbers.Write([]float64{1}),
		"0 of 1 rows were written":                                  numbers.Close(),
		"a.doc: output files end in .csv, .npy, or .png for images": errExt,
		"a.png: output files of numbers end in .csv or .npy":        errExt2,
		"rows of image shape [0 0 0] cannot be drawn":               errPNG,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestNumberWriter(t *testing.T) {
	rows := [][]float64{{0.1, -1e-300}, {math.Inf(-1), 12345678}}
	var csv, npy bytes.Buffer
	for path, out := range map[string]*bytes.Buffer{"a.csv": &csv, "a.npy": &npy} {
		w, err := NewNumberWriter(out, path, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(rows[0]), w.Write(rows[1]), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := csv.String(), "0.1,-1e-300\n-Inf,1.2345678e+07\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := npy.Bytes(); len(got) != 128+32 || fmt.Sprintf("%x", got[128:136]) != "9a9999999999b93f" {
		t.Errorf("%d bytes, %x", len(got), got)
	}
}

func TestPicture(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 2}, {Categories: 3}, {Kind: Continuous}, {Kind: Continuous}}, Image: [3]int{2, 2, 1}}
	b := NewBatch(s, 5)
	b.Columns[0].Codes.Set(4, 1)
	b.Columns[1].Codes.Set(4, 1)
	b.Columns[2].Values[4] = 7
	img, err := png.Decode(bytes.NewReader(written(t, "a.png", s, b)))
	if err != nil {
		t.Fatal(err)
	}
	// Three images across, two down, each 2 x 2 with a margin of 2.
	if got := img.Bounds().Max; got.X != 14 || got.Y != 10 {
		t.Fatalf("size %v", got)
	}
	for _, tt := range []struct {
		x, y int
		want uint32
	}{{0, 0, 64}, {2, 2, 128}, {6, 6, 255}, {7, 6, 127}, {6, 7, 255}, {7, 7, 128}, {10, 6, 64}} {
		if r, g, _, _ := img.At(tt.x, tt.y).RGBA(); r>>8 != tt.want || g != r {
			t.Errorf("pixel (%d, %d) is %d, want %d", tt.x, tt.y, r>>8, tt.want)
		}
	}
}
