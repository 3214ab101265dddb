package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readNumbers reads all rows of a file, most at a time.
func readNumbers(t *testing.T, path string, columns int, names []string, round Rounding, most int) ([]float64, error) {
	t.Helper()
	r, err := OpenNumbers(path, columns, names, round, Options{Stdin: strings.NewReader("7,8\n")})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []float64
	dst := make([]float64, most*columns)
	for {
		n, err := r.Read(context.Background(), dst)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, dst[:n*columns]...)
	}
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || x != x && y != y })
}

func TestNumberReader(t *testing.T) {
	dir, nan := t.TempDir(), math.NaN()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct {
		path  string
		names []string
		round Rounding
		want  []float64
	}{
		"plain":       {file("a.csv", "1,2.5\n-3e2,nan\n,?\n"), nil, ToFloat64, []float64{1, 2.5, -300, nan, nan, nan}},
		"no last end": {file("b.csv", "1,2\n3,4"), nil, ToFloat64, []float64{1, 2, 3, 4}},
		"names":       {file("c.csv", "y,x\n1,2\n"), []string{"x", "y"}, ToFloat64, []float64{2, 1}},
		"one name":    {file("d.csv", "y\n1\n"), []string{"x", "y"}, ToFloat64, []float64{nan, 1}},
		"blanks":      {file("blanks.csv", "y , x\n1,2\n"), []string{" x", "y "}, ToFloat64, []float64{2, 1}},
		"blank, year": {file("year.csv", "2019, b\n1,2\n"), []string{" b", "2019"}, ToFloat64, []float64{2, 1}},
		"years":       {file("years.csv", "2019, 2025\n1,2\n"), []string{"2019", " 2025"}, ToFloat64, []float64{1, 2}},
		"same names":  {file("same.csv", "b, b\n1,2\n"), []string{" b", " b"}, ToFloat64, []float64{1, 2}},
		"kept blanks": {file("kept.csv", "\" x\",x\n1,2\n"), []string{"x", " x"}, ToFloat64, []float64{2, 1}},
		"standard":    {"-", nil, ToFloat64, []float64{7, 8}},
		// 1 + 2^-24 + 2^-60 is above half-way to the next float32; as float64 it is half-way
		"once": {file("e.csv", "1.0000000596046448,1.00000005960464477540\n0.1,1e-46\n"), nil, ToFloat32, []float64{1.0000001192092896, 1.0000001192092896, float64(float32(0.1)), 0}},
		"either": {file("g.csv", "1.0000000596046448,1.000000059604644775390625\n0.1,1e-46\n1.0000001788139342,2.1019476964872256e-45\n"), nil, ToEither, []float64{
			1.000000059604645, 1.0000000596046448, 0.1, 1e-46, 1.000000178813934, 2.1019476964872253e-45}},
		"double": {file("f.csv", "0.1,1.00000005960464477540\n"), nil, ToFloat64, []float64{0.1, 1.0000000596046448}},
	} {
		for _, most := range []int{1, 2, 100} {
			if tt.path == "-" && most != 1 {
				continue
			}
			got, err := readNumbers(t, tt.path, 2, tt.names, tt.round, most)
			if err != nil || !same(got, tt.want) {
				t.Errorf("%s, %d rows at a time: %v, want %v: %v", name, most, got, tt.want, err)
			}
		}
	}
	for want, path := range map[string]string{
		`bad.csv:2:2: "x" is not a number`: file("bad.csv", "1,2\n3,x\n"),
		`huge.csv:2:1: "-1e400" is beyond`: file("huge.csv", "1e308,2\n-1e400,3\n"),
		"short.csv:2:":                     file("short.csv", "1,2\n3\n"),
		"wide.csv":                         file("wide.csv", "1,2,3\n"),
		"is empty":                         file("empty.csv", ""),
		"name a table .csv":                file("words.txt", "a b"),
		"unknown kind of file":             file("words.bin", "a b"),
		"builtin:random: rows of plain":    "builtin:random",
	} {
		_, err := readNumbers(t, path, 2, nil, ToFloat64, 10)
		if err == nil || !strings.Contains(err.Error(), want) || !(errors.Is(err, ErrFormat) || errors.Is(err, ErrSetting)) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	if _, err := readNumbers(t, file("which.csv", "a,b\n1,2\n"), 3, []string{" a", "a ", "b"}, ToFloat64, 1); err == nil || !strings.Contains(err.Error(), `the header has "a"`) {
		t.Errorf("a header that could mean two columns: %v", err)
	}
	if _, err := readNumbers(t, dir+"/none.csv", 2, nil, ToFloat64, 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
	// A folder's files are read one after another.
	sub := filepath.Join(dir, "all")
	os.Mkdir(sub, 0o755)
	file("all/1.csv", "1,2\n")
	file("all/2.csv", "3,4\n5,6\n")
	if got, err := readNumbers(t, sub, 2, nil, ToFloat64, 2); err != nil || !same(got, []float64{1, 2, 3, 4, 5, 6}) {
		t.Errorf("a folder: %v: %v", got, err)
	}
}

// TestWithBlanks: names without the blanks of the schema's are these, unless that could be two columns of the schema or of the header.
func TestWithBlanks(t *testing.T) {
	for _, tt := range []struct{ schema, header, want []string }{
		{[]string{" a", "b\t"}, []string{"b", "a", "c"}, []string{"b\t", " a", "c"}},
		{[]string{" a", "a "}, []string{"a"}, []string{"a"}},
		{[]string{" a", "a"}, []string{"a", " a"}, []string{"a", " a"}},
		{[]string{" a"}, []string{"a", " a"}, []string{"a", " a"}},
		{[]string{" a"}, []string{" a", "a"}, []string{" a", "a"}},
		{[]string{" a", " a"}, []string{"a", "a"}, []string{" a", " a"}},
		{[]string{"a"}, []string{" a"}, []string{" a"}},
		{[]string{"  "}, []string{"", "a"}, []string{"  ", "a"}},
		{nil, []string{"a"}, []string{"a"}},
	} {
		var s Schema
		for _, name := range tt.schema {
			s.Columns = append(s.Columns, Column{Name: name})
		}
		if got := WithBlanks(tt.header, &s); !slices.Equal(got, tt.want) {
			t.Errorf("%q with the names of %q is %q, want %q", tt.header, tt.schema, got, tt.want)
		}
	}
}

// TestIntegers: an integer is rounded once, from itself and not from the nearest float64. Random ones lie near half-way
// between two float32 numbers.
func TestIntegers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var signed []int64
	var unsigned []uint64
	for range 2000 {
		exponent := 24 + rng.IntN(40)
		n := (1<<24+2*rng.Uint64N(1<<23)+1)<<(exponent-24)>>1 + rng.Uint64N(5) - 2
		unsigned, signed = append(unsigned, n), append(signed, int64(n>>1), -int64(n>>1))
	}
	unsigned = append(unsigned, 0, math.MaxUint64, math.MaxUint64-1<<39, 1<<53+1)
	signed = append(signed, 0, math.MaxInt64, math.MinInt64, math.MinInt64+1, -(1<<53 + 1))
	twice := 0
	check := func(v Value, n *big.Int) {
		x := new(big.Float).SetInt(n)
		double, _ := x.Float64()
		single, _ := x.Float32()
		if float32(double) != single {
			twice++
		}
		either := v.Rounded(ToEither)
		if v.Kind != Number || v.Rounded(ToFloat64) != double || v.Rounded(ToFloat32) != float64(single) ||
			float32(either) != single || !(math.Abs(either-double) <= math.Nextafter(math.Abs(double), math.Inf(1))-math.Abs(double)) {
			t.Errorf("%v is %v, %v and %v; want %v and %v", n, v.Rounded(ToFloat64), v.Rounded(ToFloat32), either, double, single)
		}
	}
	for _, n := range signed {
		check(Integer(n), big.NewInt(n))
	}
	for _, n := range unsigned {
		check(Integer(n), new(big.Int).SetUint64(n))
	}
	if twice < 400 {
		t.Errorf("%d of the integers differ where they are rounded twice, want 400", twice)
	}
	for _, tt := range []struct {
		descr string
		order binary.AppendByteOrder
		n     uint64
		want  float64
	}{
		{"<i8", binary.LittleEndian, 1<<55 + 1<<31 + 1, 1<<55 + 1<<32},
		{">i8", binary.BigEndian, -(1<<55 + 1<<31 + 1) & math.MaxUint64, -(1<<55 + 1<<32)},
		{"<u8", binary.LittleEndian, 1<<63 + 1<<39 + 1, 1<<63 + 1<<40},
		{"<u8", binary.LittleEndian, 1<<63 + 1<<39, 1 << 63},
	} {
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (1, 1), }\n", tt.descr)
		file := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
		got, err := readNumbers(t, save(t, "a.npy", tt.order.AppendUint64(append(file, head...), tt.n)), 1, nil, ToFloat32, 1)
		if err != nil || !same(got, []float64{tt.want}) {
			t.Errorf("%s %d is read as %v, want %v: %v", tt.descr, tt.n, got, tt.want, err)
		}
	}
}

// TestNamesTwice: columns of one name are told apart by their order alone, without a header or with one that has the names in it.
func TestNamesTwice(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string][]float64{"1,2,3\n": {1, 2, 3}, "a,b,a\n1,2,3\n": {1, 2, 3}, "b,a,a\n1,2,3\n": nil, "a,b\n1,2\n": nil} {
		path := filepath.Join(dir, "rows.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := readNumbers(t, path, 3, []string{"a", "b", "a"}, ToFloat64, 2)
		if want == nil && (!errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `"a"`)) || want != nil && err != nil || !same(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// TestNumberedHeader has columns whose names are numbers: a row of numbers is the header
// where it is all names in order, and data otherwise.
func TestNumberedHeader(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []float64
	}{
		{"0,1\n5,6\n", []float64{5, 6}},
		{"1,0\n5,6\n", []float64{1, 0, 5, 6}},
		{"0,0\n5,6\n", []float64{0, 0, 5, 6}},
		{"1,\n5,6\n", []float64{1, math.NaN(), 5, 6}},
	} {
		path := save(t, "a.csv", []byte(tt.text))
		r, err := OpenNumbers(path, 2, []string{"0", "1"}, ToFloat64, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, 8)
		n, err := r.Read(context.Background(), got)
		if err != nil {
			t.Fatalf("%q: %v", tt.text, err)
		}
		if !slices.EqualFunc(got[:2*n], tt.want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("%q: %v, want %v", tt.text, got[:2*n], tt.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestParseNumber: a cell alone is what it is in a file.
func TestParseNumber(t *testing.T) {
	nan := math.NaN()
	for cell, want := range map[string]float64{"": nan, "NA": nan, "?": nan, "1.5": 1.5, "-1e308": -1e308, "1e39": 1e39} {
		if x, ok := ParseNumber([]byte(cell), ToFloat64); !ok || !same([]float64{x}, []float64{want}) {
			t.Errorf("%q is %v, %v, want %v", cell, x, ok, want)
		}
	}
	for _, cell := range []string{"1e400", "-1e400", "inf", "0x1p3", "1_0", "x", " 1"} {
		if x, ok := ParseNumber([]byte(cell), ToFloat32); ok {
			t.Errorf("%q is %v, want no number", cell, x)
		}
	}
}

// TestNumberReaderRoom: without room for a row there are rows left all the same, and names that are too few are refused.
func TestNumberReaderRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte("1,2,3\n4,5,6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenNumbers(path, 3, nil, ToFloat64, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := r.Read(t.Context(), make([]float64, 2)); n != 0 || !errors.Is(err, ErrSetting) {
		t.Errorf("room for 2 numbers of 3: %d rows, %v; want ErrSetting", n, err)
	}
	if n, err := r.Read(t.Context(), make([]float64, 7)); n != 2 || err != nil {
		t.Errorf("then %d rows, %v; want both", n, err)
	}
	if _, err := OpenNumbers(path, 3, []string{"a"}, ToFloat64, Options{}); !errors.Is(err, ErrSetting) {
		t.Errorf("a name for 3 columns: %v, want ErrSetting", err)
	}
	for _, columns := range []int{-1, 0, MaxColumns + 1} {
		if _, err := OpenNumbers(path, columns, nil, ToFloat64, Options{}); !errors.Is(err, ErrSetting) {
			t.Errorf("%d columns: %v, want ErrSetting", columns, err)
		}
	}
}
