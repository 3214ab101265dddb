package ndarray

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
)

// npy returns a file of version 1 with a header and some bytes of elements.
func npy(header string, data ...byte) []byte {
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

func header(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, fortran, shape)
}

func rows(r *Reader) (string, error) {
	var out []string
	row := make([]float64, r.Columns())
	for {
		if err := r.Next(row); err == io.EOF {
			return strings.Join(out, " "), nil
		} else if err != nil {
			return strings.Join(out, " "), err
		}
		out = append(out, fmt.Sprint(row))
	}
}

func bytesOf(t *testing.T, order binary.ByteOrder, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, order, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNPYTypes(t *testing.T) {
	for _, tt := range []struct {
		descr string
		data  any
		want  string
	}{
		{"|u1", []uint8{0, 255}, "[0] [255]"},
		{"|i1", []int8{-128, 127}, "[-128] [127]"},
		{"|b1", []uint8{0, 1}, "[0] [1]"},
		{"<u2", []uint16{0, 65535}, "[0] [65535]"},
		{">i2", []int16{-32768, 3}, "[-32768] [3]"},
		{"<u4", []uint32{0, 1<<32 - 1}, "[0] [4.294967295e+09]"},
		{">i4", []int32{-5, 6}, "[-5] [6]"},
		{"<i8", []int64{-5, 1 << 40}, "[-5] [1.099511627776e+12]"},
		{">u8", []uint64{5, 1 << 40}, "[5] [1.099511627776e+12]"},
		{"<f2", []uint16{0x3c00, 0xc500}, "[1] [-5]"},
		{">f2", []uint16{0x0001, 0x8400}, "[5.960464477539063e-08] [-6.103515625e-05]"},
		{"<f2", []uint16{0x7bff, 0x3555}, "[65504] [0.333251953125]"},
		{"<f2", []uint16{0x7c00, 0xfc00}, "[+Inf] [-Inf]"},
		{"<f2", []uint16{0x7e00, 0x8000}, "[NaN] [-0]"},
		{"<f4", []float32{-0.5, 1e9}, "[-0.5] [1e+09]"},
		{">f8", []float64{-0.1, 1e-300}, "[-0.1] [1e-300]"},
	} {
		var order binary.ByteOrder = binary.LittleEndian
		if tt.descr[0] == '>' {
			order = binary.BigEndian
		}
		r, err := OpenNPY(bytes.NewReader(npy(header(tt.descr, "False", "(2,)"), bytesOf(t, order, tt.data)...)))
		if err != nil {
			t.Errorf("%s: %v", tt.descr, err)
			continue
		}
		if got, err := rows(r); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.descr, got, err, tt.want)
		}
	}
}

// TestColumns: rows of several numbers of two bytes and more, and the integers of 64 bits behind those that float64 rounds.
func TestColumns(t *testing.T) {
	const exact = 1<<62 + 1
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		sign := map[binary.ByteOrder]string{binary.LittleEndian: "<", binary.BigEndian: ">"}[order]
		open := func(descr string, data any) *Reader {
			r, err := OpenNPY(bytes.NewReader(npy(header(sign+descr, "False", "(2, 3)"), bytesOf(t, order, data)...)))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		r := open("i2", []int16{1, -2, 3, 4, 5, -600})
		if got, err := rows(r); err != nil || got != "[1 -2 3] [4 5 -600]" {
			t.Errorf("%si2: %s, %v", sign, got, err)
		}
		if bits, ok := r.Integer(1); ok {
			t.Errorf("%si2 has an integer of 64 bits: %d", sign, bits)
		}
		r = open("i8", []int64{7, exact, -exact, 8, 9, exact})
		row := make([]float64, 3)
		if err := r.Next(row); err != nil {
			t.Fatal(err)
		}
		for i, want := range []int64{7, exact, -exact} {
			if bits, ok := r.Integer(i); !ok || int64(bits) != want || row[i] != float64(want) {
				t.Errorf("%si8: number %d is %d (%t) and %v, want %d", sign, i, int64(bits), ok, row[i], want)
			}
		}
	}
	r, err := OpenNPY(bytes.NewReader(npy(header("<f8", "False", "(1,)"), make([]byte, 8)...)))
	if err != nil {
		t.Fatal(err)
	}
	if bits, ok := r.Integer(0); ok {
		t.Errorf("f8 has an integer: %d", bits)
	}
}

func TestNPYOrder(t *testing.T) {
	// a[n, i, j] = 100n + 10i + j, of shape (2, 3, 2).
	want := "[0 1 10 11 20 21] [100 101 110 111 120 121]"
	for fortran, data := range map[string][]byte{
		"False": {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121},
		"True":  {0, 100, 10, 110, 20, 120, 1, 101, 11, 111, 21, 121},
	} {
		r, err := OpenNPY(bytes.NewReader(npy(header("|u1", fortran, "(2, 3, 2)"), data...)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rows(r); err != nil || got != want {
			t.Errorf("fortran_order %s: %s, %v, want %s", fortran, got, err, want)
		}
	}
}

func TestBadNPY(t *testing.T) {
	for _, tt := range []struct {
		in   []byte
		want string
	}{
		{nil, "does not begin like a .npy file; write it with numpy.save"},
		{[]byte("PK\x03\x04 and more"), "does not begin like a .npy file; write it with numpy.save"},
		{[]byte("\x93NUMPY\x09\x00"), "is a .npy file of version 9; versions 1 to 3 can be read"},
		{[]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), "has a header of 4294967295 bytes; it takes at most 65536"},
		{npy("{}")[:9], "ends in its header; the file is cut short"},
		{npy("{}"), "has a header that cannot be read (it has 0 of 3 keys); write it with numpy.save"},
		{npy("["), "has a header that cannot be read (it is not a dictionary); write it with numpy.save"},
		{npy("{'shape': (3, x)}"), "has a header that cannot be read (shape is not a list of up to 32 whole numbers); write it with numpy.save"},
		{npy("{'descr': [('a', '<f8')], "), "has a header that cannot be read (something other than text, such as the fields of a record); write it with numpy.save"},
		{npy(header("<c8", "False", "(2,)")), `has elements of type "<c8"; convert to one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1`},
		{npy(header("|u1", "False", "()"), 1), "holds a single number; save an array of rows"},
		{npy(header("|u1", "False", "(2, 0)")), "shape [2 0] has no rows of 1 to 1048576 numbers"},
		{npy(header("|u1", "False", "(1, 70000, 70000)")), "shape [1 70000 70000] has no rows of 1 to 1048576 numbers"},
		{npy(header("|u1", "False", "(99999999999, 1)")), "axis 0 has 99999999999 elements; it takes 0 to 2147483647"},
		{npy(header("|u1", "False", "(3, 2)"), 1, 2, 3), "ends after 1 of the 3 rows of its header; the file is cut short"},
		{npy(header("|u1", "True", "(3, 2)"), 1, 2, 3), "ends after 1 of the 3 rows of its header; the file is cut short"},
		{append([]byte("\x93NUMPY\x02\x00\x01\x00\x01\x00"), make([]byte, 65537)...), "has a header of 65537 bytes; it takes at most 65536"},
		{npy(header("|u1", "True", "(1073741824, 4)"), 1, 2, 3, 4), "ends after 1 of the 1073741824 rows of its header; the file is cut short"},
		{npy(header("|u1", "True", "(2147483647, 3)"), 1), "array of 6442450941 bytes in Fortran order; save it in C order"},
		{npy(header("|u1", "True", "(858993460, 5)"), 1), "array of 4294967300 bytes in Fortran order; save it in C order"},
		{npy(header("<f8", "True", "(2147483647, 1000)"), 1), "array of 17179869176000 bytes in Fortran order; save it in C order"},
		{npy(header("|u1", "False", "(1, 2)"), 1, 2, 3), "continues after the 1 rows of its header; save one array per file"},
		{npy(header("|b1", "False", "(1, 2)"), 1, 2), "row 1 has 2 for Boolean 2; it takes 0 or 1"},
	} {
		r, err := OpenNPY(bytes.NewReader(tt.in))
		if err == nil {
			_, err = rows(r)
		}
		if err == nil || err.Error() != tt.want {
			t.Errorf("%.60q\ngot  %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

// TestLongestHeader reads a header of as many bytes as one may have.
func TestLongestHeader(t *testing.T) {
	text := header("|u1", "False", "(1, 2)")
	text += strings.Repeat(" ", maxHeaderBytes-len(text))
	in := append([]byte("\x93NUMPY\x02\x00\x00\x00\x01\x00"), text...)
	r, err := OpenNPY(bytes.NewReader(append(in, 7, 8)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rows(r); err != nil || got != "[7 8]" {
		t.Errorf("rows %q, %v", got, err)
	}
}

func TestIDX(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want string
	}{
		{"\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x01\x02\x03\xff", "[1 2] [3 255]"},
		{"\x00\x00\x0b\x01\x00\x00\x00\x02\x01\x00\xff\xfe", "[256] [-2]"},
		{"\x00\x00\x08\x01\x00\x00\x00\x02\x01", "[1] ends after 1 of the 2 rows of its header; the file is cut short"},
		{"\x00\x00\x08\x02\x00\x00\x00\x02\x01", "ends in its header; the file is cut short"},
		{"\x00\x00\x08", "ends in its header; the file is cut short"},
		{"\x89PNG and more", "does not begin like an idx file but with bytes 89 50 4e 47; is it another kind of file?"},
		{"\x00\x00\x08\x02\xff\xff\xff\xff\x00\x00\x00\x01", "axis 0 has 4294967295 elements; it takes 0 to 2147483647"},
	} {
		r, err := OpenIDX(strings.NewReader(tt.in))
		got := ""
		if err == nil {
			got, err = rows(r)
		}
		if err != nil {
			got = strings.TrimSpace(got + " " + err.Error())
		}
		if got != tt.want {
			t.Errorf("%.60q\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

func TestWriteNPYHeader(t *testing.T) {
	for _, tt := range []struct {
		dtype DType
		shape []int
		want  string
	}{
		{DType{Kind: 'f', Size: 8}, []int{3, 4}, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"},
		{DType{Kind: 'u', Size: 1}, []int{5}, "{'descr': '|u1', 'fortran_order': False, 'shape': (5,), }"},
		{DType{Kind: 'u', Size: 2}, []int{1, 28, 28, 3}, "{'descr': '<u2', 'fortran_order': False, 'shape': (1, 28, 28, 3), }"},
	} {
		var b bytes.Buffer
		if err := WriteNPYHeader(&b, tt.dtype, tt.shape...); err != nil {
			t.Fatal(err)
		}
		// NumPy pads the header with blanks and a line end to a multiple of 64.
		if b.Len()%64 != 0 || strings.TrimSpace(string(b.Bytes()[10:])) != tt.want || b.Bytes()[b.Len()-1] != '\n' {
			t.Errorf("got %q", b.Bytes())
		}
		r, err := OpenNPY(&b)
		if err != nil || fmt.Sprint(r.Shape) != fmt.Sprint(tt.shape) || r.DType != tt.dtype {
			t.Errorf("read back %+v, %v", r, err)
		}
	}
}

func FuzzNPY(f *testing.F) {
	f.Add(npy(header("|u1", "True", "(2, 3)"), 1, 2, 3, 4, 5, 6))
	f.Add(npy(header("<f8", "False", "(1,)"), 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(npy(header("|b1", "False", "(2L, 1L)"), 1, 0))
	f.Fuzz(func(t *testing.T, in []byte) { readAll(t, OpenNPY, in) })
}

func FuzzIDX(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02\x01\x02\x03\xff"))
	f.Add([]byte("\x00\x00\x0e\x01\x00\x00\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08"))
	f.Fuzz(func(t *testing.T, in []byte) { readAll(t, OpenIDX, in) })
}

// readAll reads an array to its end; without an error every byte was used.
func readAll(t *testing.T, open func(io.Reader) (*Reader, error), in []byte) {
	r, err := open(bytes.NewReader(in))
	if err != nil {
		return
	}
	row := make([]float64, r.Columns())
	for err == nil {
		err = r.Next(row)
	}
	if err == io.EOF && (r.Row() != r.Rows() || r.Rows()*r.Columns()*r.DType.Size > len(in)) {
		t.Fatalf("%d rows of %d, %d columns of %v from %d bytes", r.Row(), r.Rows(), r.Columns(), r.DType, len(in))
	}
}
