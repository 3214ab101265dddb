package dataset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"slices"
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

// TestKeptIntegers wants all digits of large integers to be kept, also of those that float64 rounds.
func TestKeptIntegers(t *testing.T) {
	for _, n := range []int64{0, -7, 1<<53 - 1, 1<<53 + 1, 1<<60 + 1<<8, 1_700_000_000_123_456_789, math.MinInt64, math.MaxInt64} {
		v := Integer(n)
		if got := string(textOf(&v)); got != fmt.Sprint(n) {
			t.Errorf("%d is kept as %s", n, got)
		}
	}
	v := Integer(uint64(math.MaxUint64))
	if got := string(textOf(&v)); got != "18446744073709551615" {
		t.Errorf("the largest integer is kept as %s", got)
	}
	for x, want := range map[float64]string{0.25: "0.25", 1e-5: "1e-05", 1e20: "100000000000000000000", 1e22: "1e+22"} {
		if got := string(textOf(&Value{Kind: Number, Number: x})); got != want {
			t.Errorf("%v is kept as %s, want %s", x, got, want)
		}
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
		{"a.idx", []byte("\x00\x00\x08\x01\x00\x00\x00\x01\x03"), Options{Schema: s}, "a.idx: row has 1 cells for 2 variables; give one cell per variable"},
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

// TestInfinitiesSkipped reads an array with an infinite number in a column that is skipped, which no other column may have, whatever its
// type, nor one of plain numbers.
func TestInfinitiesSkipped(t *testing.T) {
	s := &Schema{Columns: []Column{{Kind: Continuous}, {Kind: Continuous}}}
	b := NewBatch(s, 2)
	b.Columns[0].Values[0], b.Columns[0].Values[1] = 1, 2
	b.Columns[1].Values[1] = float32(math.Inf(-1))
	path := save(t, "a.npy", written(t, "a.npy", s, b))
	skip := map[string]Type{"2": {Skip: true}}
	src, err := Open(t.Context(), path, Options{Types: skip})
	if err != nil || src.Rows() != 2 {
		t.Fatalf("a skipped column: %v", err)
	}
	if _, err := Open(t.Context(), path, Options{Types: skip, Schema: src.Schema()}); err != nil {
		t.Errorf("under a schema: %v", err)
	}
	const want = "a.npy:2:2: -Inf is not a finite number; replace it"
	for _, opts := range []Options{
		{}, {Types: map[string]Type{"2": {}}}, {Types: map[string]Type{"2": {Labels: true}}}, {Types: map[string]Type{"2": {Kind: Continuous}}},
		{Schema: s}, {Schema: &Schema{Columns: []Column{{Kind: Continuous}, {Categories: 2, Labels: []string{"1", "2"}}}}},
	} {
		if _, err := Open(t.Context(), path, opts); err == nil || message(t, err, path) != want {
			t.Errorf("%+v: %v, want %s", opts, err, want)
		}
	}
	r, err := OpenNumbers(path, 2, nil, ToFloat64, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(t.Context(), make([]float64, 4)); err == nil || message(t, err, path) != want {
		t.Errorf("numbers: %v, want %s", err, want)
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
	_, errText := NewWriter(&out, "a.txt", s, 2)
	bad := NewBatch(s, 1)
	bad.Columns[0].Codes.Set(0, 3)
	for want, err := range map[string]error{
		`a cell of "a" is missing`:                      npy.Write(NewBatch(s, 1)),
		"1 of 2 rows were written":                      npy.Close(),
		"code 3 of \"a\", which has 3 categories":       csv.Write(bad),
		"code 3 of \"a\"":                               codes.Write(bad),
		"row 1 of 1 numbers written to a file of 1 x 2": numbers.Write([]float64{1}),
		"0 of 1 rows were written":                      numbers.Close(),
		"a.doc: output files end in .csv, .npy, .png for images, or .txt for text": errExt,
		"a.txt: the rows are not text; write .csv":                                 errText,
		"a.png: output files of numbers end in .csv or .npy":                       errExt2,
		"the rows are not images; write .csv or .npy":                              errPNG,
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
	// Three images across, two down, each 2 x 2 dots of 4 x 4 pixels with a margin of 2.
	if got := img.Bounds().Max; got.X != 32 || got.Y != 22 {
		t.Fatalf("size %v", got)
	}
	for _, tt := range []struct {
		x, y int
		want string
	}{
		{0, 0, "404040"}, {2, 2, "3048a0"}, {9, 9, "3048a0"}, {10, 2, "404040"},
		{12, 12, "ffffff"}, {15, 15, "ffffff"}, {16, 12, "7f7f7f"}, {12, 16, "ffffff"}, {16, 16, "3048a0"}, {19, 19, "3048a0"}, {22, 12, "404040"},
	} {
		if got := pixel(img, tt.x, tt.y); got != tt.want {
			t.Errorf("pixel (%d, %d) is %s, want %s", tt.x, tt.y, got, tt.want)
		}
	}
}

func pixel(img image.Image, x, y int) string {
	r, g, b, _ := img.At(x, y).RGBA()
	return fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)
}

// TestBeside wants samples on the left and real rows on the right, on a light ground.
func TestBeside(t *testing.T) {
	s := &Schema{Columns: make([]Column, 6), Image: [3]int{2, 1, 3}}
	for i := range s.Columns {
		s.Columns[i].Categories = 256
	}
	drawn, real := NewBatch(s, 5), NewBatch(s, 3)
	for v := range s.Columns {
		for r := range 5 {
			drawn.Columns[v].Codes.Set(r, 10*r+v)
		}
		for r := range 3 {
			real.Columns[v].Codes.Set(r, 100+10*r+v)
		}
	}
	var out bytes.Buffer
	if err := WriteBeside(&out, s, drawn, s, real); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	// Cells are 4 wide and 8 high; three across and two lines, then two across. The panels
	// are surrounded by 8 pixels each.
	if got := img.Bounds().Max; got.X != 8+3*6-2+8+8+2*6-2+8+2 || got.Y != 8+2*10-2+8 {
		t.Fatalf("size %v", got)
	}
	for _, tt := range []struct {
		x, y int
		want string
	}{
		{7, 7, "404040"}, {8, 8, "000102"}, {11, 11, "000102"}, {8, 12, "030405"}, {12, 8, "404040"}, {14, 8, "0a0b0c"}, {20, 8, "141516"},
		{8, 18, "1e1f20"}, {14, 18, "28292a"}, {20, 18, "404040"}, {33, 0, "404040"}, {34, 0, "dedede"},
		{42, 8, "646566"}, {48, 8, "6e6f70"}, {42, 18, "78797a"}, {48, 18, "dedede"},
	} {
		if got := pixel(img, tt.x, tt.y); got != tt.want {
			t.Errorf("pixel (%d, %d) is %s, want %s", tt.x, tt.y, got, tt.want)
		}
	}
	if err := WriteBeside(&out, s, drawn, s, NewBatch(s, 0)); !errors.Is(err, ErrSetting) {
		t.Errorf("no real rows: %v", err)
	}
}

// TestBesideCodes draws a model of numbers beside the codes that it was trained on: the
// largest code is white in both panels.
func TestBesideCodes(t *testing.T) {
	s := &Schema{Columns: []Column{{Kind: Continuous}, {Kind: Continuous}}, Image: [3]int{1, 2, 1}}
	codes := &Schema{Columns: []Column{{Categories: 5}, {Categories: 5}}, Image: [3]int{1, 2, 1}}
	drawn, real := NewBatch(s, 1), NewBatch(codes, 1)
	drawn.Columns[0].Values[0], drawn.Columns[1].Values[0] = 2, 9
	real.Columns[0].Codes.Set(0, 4)
	real.Columns[1].Codes.Set(0, Missing)
	var out bytes.Buffer
	if err := WriteBeside(&out, s, drawn, codes, real); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	for x, want := range map[int]string{8: "808080", 12: "ffffff", 34: "ffffff", 38: "3048a0"} {
		if got := pixel(img, x, 8); got != want {
			t.Errorf("pixel %d is %s, want %s", x, got, want)
		}
	}
	if err := WriteBeside(&out, s, drawn, codes, NewBatch(&Schema{Columns: codes.Columns[:1]}, 1)); !errors.Is(err, ErrSetting) {
		t.Errorf("a row of one column: %v", err)
	}
}

// TestPictureOfNumbers: images of numbers have the shades of what is drawn, 255 or 1 at most, but for the few draws far beyond; of bins the last
// edge is white, and beside real rows the largest number of these.
func TestPictureOfNumbers(t *testing.T) {
	s := &Schema{Columns: []Column{{Kind: Continuous}, {Kind: Continuous, Offset: 100, Scale: 50}}, Image: [3]int{1, 2, 1}}
	drawn := func(s *Schema, white float64, far float64) *Batch { // the first row is grey and white, all but two of the others black
		b := NewBatch(s, 400)
		for r := range b.Rows {
			for i := range b.Columns {
				b.Columns[i].Values[r] = s.Columns[i].Standard(0)
			}
			if r > 380 {
				b.Columns[0].Values[r] = s.Columns[0].Standard(white)
			}
		}
		b.Columns[0].Values[0] = s.Columns[0].Standard(white / 2)
		b.Columns[1].Values[0] = s.Columns[1].Standard(white)
		b.Columns[0].Values[1] = s.Columns[0].Standard(far)
		b.Columns[1].Values[1] = s.Columns[1].Standard(-far)
		return b
	}
	check := func(name string, picture []byte, left int, want ...string) {
		t.Helper()
		img, err := png.Decode(bytes.NewReader(picture))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range want { // dots of 4 pixels, and the second image 10 behind the first
			if got := pixel(img, left+10*(i/2)+4*(i%2), left); got != want {
				t.Errorf("%s: dot %d is %s, want %s", name, i, got, want)
			}
		}
	}
	check("bytes", written(t, "a.png", s, drawn(s, 255, 900)), 2, "808080", "ffffff", "ffffff", "000000")
	check("shares", written(t, "a.png", s, drawn(s, 1, 1.75)), 2, "808080", "ffffff", "ffffff", "000000")
	bins := &Schema{Columns: slices.Clone(s.Columns), Image: s.Image}
	bins.Columns[0].Edges, bins.Columns[1].Edges = []float64{0, 100}, []float64{0, 510}
	check("bins", written(t, "a.png", bins, drawn(bins, 255, 255)), 2, "404040", "7f7f7f", "808080", "000000")
	var out bytes.Buffer
	if err := WriteBeside(&out, s, drawn(s, 100, 900), s, drawn(s, 200, 0)); err != nil {
		t.Fatal(err)
	}
	check("beside", out.Bytes(), 8, "404040", "808080", "ffffff", "000000")
}

// TestUsual: what is white is found in dots of all columns, however many images there are: the first column, as of a border, is black
// in every one.
func TestUsual(t *testing.T) {
	for _, shape := range [][2]int{{2250, 784}, {2300, 784}, {2350, 784}, {60_000, 16}, {64_000, 16}} {
		rows, columns := shape[0], shape[1]
		p := &picture{white: make([]float64, columns)}
		dots := make([]float32, columns)
		for col := range dots {
			if col%28 > 0 {
				dots[col] = 200
			}
		}
		for range rows {
			p.later = append(p.later, drawing{dots: dots})
		}
		if got := p.usual(); got != 200 {
			t.Errorf("%d images of %d dots: %v is white, want 200", rows, columns, got)
		}
	}
}

// TestCompletionPicture wants a line for each given row: the row with its missing dots
// in blue, then its completions with the evidence tinted.
func TestCompletionPicture(t *testing.T) {
	s := &Schema{Columns: []Column{{Categories: 2}, {Categories: 2}}, Image: [3]int{1, 2, 1}}
	given, filled := NewBatch(s, 4), NewBatch(s, 4) // two completions of two rows
	for r := range 4 {
		given.Columns[0].Codes.Set(r, 1)
		filled.Columns[0].Codes.Set(r, 1)
		given.Columns[1].Codes.Set(r, 0)
		filled.Columns[1].Codes.Set(r, 0)
	}
	for _, r := range []int{0, 1} { // the first row lacks its second dot; the other nothing
		given.Columns[1].Codes.Set(r, Missing)
	}
	filled.Columns[1].Codes.Set(0, 1)
	var out bytes.Buffer
	w, err := NewCompletionWriter(&out, s, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, ErrSetting) {
		t.Errorf("closed too early: %v", err)
	}
	if err := errors.Join(w.Write(given, filled), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(given, filled); !errors.Is(err, ErrSetting) {
		t.Errorf("too many rows: %v", err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Max; got.X != 2+3*10 || got.Y != 2+2*6 {
		t.Fatalf("size %v", got)
	}
	const white, black, tinted, tintedBlack, missing = "ffffff", "000000", "ffd39f", "5f3400", "3048a0"
	for _, tt := range []struct {
		line, column, dot int
		want              string
	}{
		{0, 0, 0, white}, {0, 0, 1, missing}, {0, 1, 0, tinted}, {0, 1, 1, white}, {0, 2, 0, tinted}, {0, 2, 1, black},
		{1, 0, 0, white}, {1, 0, 1, black}, {1, 1, 0, tinted}, {1, 1, 1, tintedBlack}, {1, 2, 0, tinted}, {1, 2, 1, tintedBlack},
	} {
		if got := pixel(img, 2+10*tt.column+4*tt.dot+1, 2+6*tt.line+1); got != tt.want {
			t.Errorf("line %d, column %d, dot %d: %s, want %s", tt.line, tt.column, tt.dot, got, tt.want)
		}
	}
	out.Reset()
	if w, err = NewCompletionWriter(&out, s, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(given.Slice(0, 1), filled.Slice(0, 1)), w.Close()); err != nil {
		t.Fatal(err)
	}
	if img, err = png.Decode(&out); err != nil {
		t.Fatal(err)
	}
	for k, want := range []string{white, missing, tinted, white} {
		if got := pixel(img, 2+10*(k/2)+4*(k%2)+1, 3); got != want {
			t.Errorf("one completion: dot %d is %s, want %s", k, got, want)
		}
	}
}

// TestPictureBounds shrinks the dots of large pictures, and refuses those that are too
// large without that.
func TestPictureBounds(t *testing.T) {
	s := &Schema{Columns: make([]Column, 1<<20), Image: [3]int{1 << 10, 1 << 10, 1}}
	for _, tc := range []struct{ down, across, dot int }{
		{1, 1, 4}, {3, 5, 4}, {4, 4, 3}, {8, 7, 2}, {15, 16, 1}, {16, 16, 0}, {math.MaxInt, math.MaxInt, 0},
	} {
		p := &picture{schema: s, down: tc.down, columns: tc.across, across: []int{tc.across}}
		if got := p.largestDot(); got != tc.dot {
			t.Errorf("%d x %d images: dots of %d, want %d", tc.down, tc.across, got, tc.dot)
		}
	}
	small := &Schema{Columns: make([]Column, 3*32*32), Image: [3]int{32, 32, 3}}
	// Images of one line, which a report shows.
	wide := &Schema{Columns: make([]Column, 7000), Image: [3]int{1, 7000, 1}}
	for shown, dot := range map[bool]int{false: 4, true: 2} {
		w, err := newGrid(io.Discard, wide, 25, shown)
		if err != nil {
			t.Fatal(err)
		}
		if p := w.(*pngWriter).picture; p.dot != dot {
			t.Errorf("shown %t: dots of %d in %v, want %d", shown, p.dot, p.Bounds(), dot)
		}
	}
	if !FitsBeside(small, 4096, 4096) || FitsBeside(s, 4096, 1) {
		t.Error("what fits beside real rows is told wrong")
	}
	// As many samples as a run may end with, beside as many rows.
	if p, err := newPicture(small, 64, 64, 64); err != nil || p.dot != 3 || max(p.Bounds().Dx(), p.Bounds().Dy()) > maxPictureSide {
		t.Errorf("4096 samples of 32 x 32 dots: dots of %d in %v, %v", p.dot, p.Bounds(), err)
	}
	if _, err := newPicture(s, 16, 16); !errors.Is(err, ErrSetting) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a picture that is too large: %v", err)
	}
	if _, err := newPNGWriter(io.Discard, s, math.MaxInt); !errors.Is(err, ErrSetting) {
		t.Errorf("endless images: %v", err)
	}
}
