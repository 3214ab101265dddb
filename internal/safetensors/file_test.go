package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// pack puts a header in front of data, as any writer of the format would.
func pack(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func parse(b []byte) (*File, error) {
	return NewFile(bytes.NewReader(b), int64(len(b)))
}

// TestReadForeignFile reads bytes that this package did not write: no padding,
// keys and tensors in another order, a scalar, an empty tensor.
func TestReadForeignFile(t *testing.T) {
	b := pack(`{"b":{"shape":[2],"data_offsets":[4,8],"dtype":"U16"},"empty":{"dtype":"F64","shape":[0,9223372036854775807,4],"data_offsets":[4,4]},`+
		`"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"__metadata__":{"k":"v \u00e9"}}  `,
		0, 0, 0xc0, 0x3f, 1, 0, 0, 1)
	f, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range f.Tensors {
		names = append(names, fmt.Sprintf("%s %s %v", x.Name, x.DType, x.Shape))
	}
	if want := []string{"a F32 []", "empty F64 [0 9223372036854775807 4]", "b U16 [2]"}; !slices.Equal(names, want) {
		t.Errorf("tensors %v, want %v", names, want)
	}
	if f.Metadata["k"] != "v é" {
		t.Errorf("metadata %v", f.Metadata)
	}
	var a [1]float32
	var u [2]uint16
	if err := errors.Join(Read(f, "a", 0, a[:]), Read(f, "b", 0, u[:]), Read(f, "empty", 0, []float64{})); err != nil {
		t.Fatal(err)
	}
	if a[0] != 1.5 || u != [2]uint16{1, 256} {
		t.Errorf("read %v %v, want 1.5 and [1 256]", a, u)
	}
}

// TestWrittenBytes fixes what is written, byte for byte.
func TestWrittenBytes(t *testing.T) {
	var b bytes.Buffer
	err := Write(&b, map[string]string{"z": "<&>", "a": ""}, []Tensor{{Name: "w", DType: I32, Shape: []int64{1, 2}}},
		func(_ *Tensor, s *Sink) error { return Append(s, []int32{1, -2}) })
	if err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"a":"","z":"\u003c\u0026\u003e"},"w":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]}}`
	header += strings.Repeat(" ", 120-len(header))
	if want := pack(header, 1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff); !bytes.Equal(b.Bytes(), want) {
		t.Errorf("wrote\n%s\nwant\n%s", hex.Dump(b.Bytes()), hex.Dump(want))
	}
}

// roundTrip writes v in ragged pieces and reads it back in others.
func roundTrip[T Element](t *testing.T, rng *rand.Rand, v []T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	tensors := []Tensor{
		{Name: "pad", DType: U8, Shape: []int64{3}}, // leaves v unaligned
		{Name: "v", DType: DTypeOf[T](), Shape: []int64{int64(len(v)), 1}},
	}
	err = Write(out, nil, tensors, func(x *Tensor, s *Sink) error {
		if x.Name == "pad" {
			return Append(s, []uint8{1, 2, 3})
		}
		for rest := v; len(rest) > 0; {
			n := min(len(rest), rng.IntN(2*chunkBytes)+1)
			if err := Append(s, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		return nil
	})
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Metadata != nil {
		t.Errorf("metadata %v, want nil", f.Metadata)
	}
	got := make([]T, len(v))
	for at := 0; at < len(v); {
		n := min(len(v)-at, rng.IntN(2*chunkBytes))
		if err := Read(f, "v", int64(at), got[at:at+n]); err != nil {
			t.Fatal(err)
		}
		at += n
	}
	for i := range v {
		if got[i] != v[i] {
			t.Fatalf("%T: element %d is %v, want %v", v, i, got[i], v[i])
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, chunkBytes/4 - 1, chunkBytes/4 + 1, 3*chunkBytes + 5} {
		var (
			f32 = make([]float32, n)
			f64 = make([]float64, n)
			i32 = make([]int32, n)
			i64 = make([]int64, n)
			u8  = make([]uint8, n)
			u16 = make([]uint16, n)
			u64 = make([]uint64, n)
		)
		for i := range n {
			bits := rng.Uint64()
			f32[i], f64[i] = float32(rng.NormFloat64()), rng.NormFloat64()
			i32[i], i64[i], u8[i], u16[i], u64[i] = int32(bits), int64(bits), uint8(bits), uint16(bits), bits
		}
		roundTrip(t, rng, f32)
		roundTrip(t, rng, f64)
		roundTrip(t, rng, i32)
		roundTrip(t, rng, i64)
		roundTrip(t, rng, u8)
		roundTrip(t, rng, u16)
		roundTrip(t, rng, u64)
	}
}

// TestHostileHeaders has one edit of a valid file in each row.
func TestHostileHeaders(t *testing.T) {
	const ok = `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U16","shape":[2],"data_offsets":[4,8]}}`
	data := make([]byte, 8)
	if _, err := parse(pack(ok, data...)); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, new string }{
		{"not an object", ok, `[]`},
		{"leading space", ok, " " + ok},
		{"empty header", ok, ""},
		{"trailing text", ok, ok + "x"},
		{"cut JSON", ok, ok[:len(ok)-1]},
		{"unknown type", `"U8"`, `"U9"`},
		{"type is a number", `"U8"`, `8`},
		{"duplicate name", `"b":`, `"a":`},
		{"duplicate name, escaped", `"b":`, `"\u0061":`},
		{"duplicate field", `"dtype":"U8"`, `"dtype":"U8","dtype":"U8"`},
		{"missing field", `"dtype":"U8",`, ``},
		{"unknown field", `"dtype":"U8"`, `"dtype":"U8","x":1`},
		{"negative dimension", `[4],"data`, `[-4],"data`},
		{"two negative dimensions", `[4],"data`, `[-2,-2],"data`},
		{"fraction", `[4],"data`, `[4.0],"data`},
		{"exponent", `[4],"data`, `[4e0],"data`},
		{"string dimension", `[4],"data`, `["4"],"data`},
		{"dimension over 64 bits", `[4],"data`, `[18446744073709551620],"data`},
		{"product overflows to 4", `[4],"data`, `[4611686018427387905,4],"data`},
		{"size overflows", `"shape":[2]`, `"shape":[9223372036854775807]`},
		{"shape too small", `[4],"data`, `[3],"data`},
		{"three offsets", `[0,4]`, `[0,4,4]`},
		{"no offsets", `[0,4]`, `[]`},
		{"offsets reversed", `[4,8]`, `[8,4]`},
		{"negative offset", `[0,4]`, `[-4,0]`},
		{"overlap", `[4,8]`, `[2,6]`},
		{"hole", `[4,8]`, `[5,9]`},
		{"same span twice", `[4,8]`, `[0,4]`},
		{"overlap that ends right", `[2],"data_offsets":[4,8]}`, `[2],"data_offsets":[2,6]},"c":{"dtype":"U8","shape":[2],"data_offsets":[6,8]}`},
		{"hole that ends right", `"U16","shape":[2],"data_offsets":[4,8]`, `"U8","shape":[3],"data_offsets":[5,8]`},
		{"missing shape", ok, `{"a":{"dtype":"U64","data_offsets":[0,8]}}`},
		{"missing offsets", `{"a":`, `{"c":{"dtype":"U8","shape":[0]},"a":`},
		{"negative dimension of an empty tensor", `{"a":`, `{"c":{"dtype":"U8","shape":[0,-1],"data_offsets":[0,0]},"a":`},
		{"past the end", ok, strings.ReplaceAll(strings.ReplaceAll(ok, "[2]", "[3]"), "[4,8]", "[4,10]")},
		{"data left over", ok, `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`},
		{"metadata value is no string", `{"a"`, `{"__metadata__":{"x":1},"a"`},
		{"metadata is no object", `{"a"`, `{"__metadata__":"x","a"`},
		{"metadata key twice", `{"a"`, `{"__metadata__":{"x":"","x":""},"a"`},
		{"not UTF-8", `"a"`, "\"\xff\""},
		{"deep nesting", `[4],"data`, strings.Repeat("[", 1<<16) + `,"data`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			header := strings.Replace(ok, tc.old, tc.new, 1)
			if header == ok {
				t.Fatal("the edit changed nothing")
			}
			if _, err := parse(pack(header, data...)); !errors.Is(err, ErrFormat) {
				t.Errorf("error is %v, want ErrFormat", err)
			}
		})
	}
	for _, n := range []uint64{0, 1 << 20, MaxHeaderBytes + 1, 1 << 63, math.MaxUint64} {
		b := pack(ok, data...)
		binary.LittleEndian.PutUint64(b, n)
		if _, err := parse(b); !errors.Is(err, ErrFormat) {
			t.Errorf("header length %d: error is %v, want ErrFormat", n, err)
		}
	}
}

// greedy notes the longest read that is asked of it.
type greedy struct {
	*bytes.Reader
	longest int
}

func (g *greedy) ReadAt(b []byte, at int64) (int, error) {
	g.longest = max(g.longest, len(b))
	return g.Reader.ReadAt(b, at)
}

// TestNothingIsAllocatedUnchecked: a length that the file cannot have is not
// even tried.
func TestNothingIsAllocatedUnchecked(t *testing.T) {
	b := pack("{}")
	for _, n := range []uint64{3, MaxHeaderBytes, math.MaxUint64} {
		binary.LittleEndian.PutUint64(b, n)
		r := &greedy{Reader: bytes.NewReader(b)}
		if _, err := NewFile(r, int64(len(b))); !errors.Is(err, ErrFormat) || r.longest > prefixBytes {
			t.Errorf("header length %d: error %v after a read of %d bytes, want ErrFormat after %d", n, err, r.longest, prefixBytes)
		}
	}
}

// TestTruncated cuts a file at every byte.
func TestTruncated(t *testing.T) {
	b := pack(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 1, 2, 3, 4)
	for n := range b {
		if _, err := parse(b[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("%d bytes: error is %v, want ErrFormat", n, err)
		}
	}
	// The file shrinks after it was opened.
	f, err := NewFile(bytes.NewReader(b[:len(b)-1]), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := Read(f, "a", 0, make([]uint8, 4)); !errors.Is(err, ErrFormat) {
		t.Errorf("error is %v, want ErrFormat", err)
	}
}

func TestWrongUse(t *testing.T) {
	f, err := parse(pack(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 1, 2, 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]uint8, 5)
	for name, err := range map[string]error{
		"unknown tensor":  Read(f, "b", 0, buf),
		"other type":      Read(f, "a", 0, make([]uint16, 1)),
		"past the end":    Read(f, "a", 0, buf),
		"offset past":     Read(f, "a", 5, buf[:0]),
		"offset negative": Read(f, "a", -1, buf[:1]),
		"offset overflow": Read(f, "a", math.MaxInt64, buf),
	} {
		if !errors.Is(err, ErrUse) {
			t.Errorf("%s: error is %v, want ErrUse", name, err)
		}
	}
	four := []Tensor{{Name: "a", DType: U8, Shape: []int64{4}}}
	write := func(meta map[string]string, tensors []Tensor, n int) error {
		return Write(io.Discard, meta, tensors, func(_ *Tensor, s *Sink) error { return Append(s, make([]uint8, n)) })
	}
	if err := write(nil, four, 4); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"too few":  write(nil, four, 3),
		"too many": write(nil, four, 5),
		"no type":  write(nil, []Tensor{{Name: "a"}}, 0),
		"twice":    write(nil, append(four, four...), 4),
		"reserved": write(nil, []Tensor{{Name: metadataKey, DType: U8}}, 1),
		"negative": write(nil, []Tensor{{Name: "a", DType: U8, Shape: []int64{-1}}}, 0),
		"sum overflows": Write(io.Discard, nil, []Tensor{{Name: "a", DType: U8, Shape: []int64{math.MaxInt64}}, {Name: "b", DType: U8}},
			func(*Tensor, *Sink) error { return errors.New("the header was written") }),
		"name not UTF-8": write(nil, []Tensor{{Name: "\xff", DType: U8}}, 1),
		"meta not UTF-8": write(map[string]string{"a": "\xff"}, four, 4),
		"other type": Write(io.Discard, nil, four, func(_ *Tensor, s *Sink) error {
			return Append(s, []float32{1})
		}),
	} {
		if !errors.Is(err, ErrUse) {
			t.Errorf("%s: error is %v, want ErrUse", name, err)
		}
	}
}

// TestHeaderLimit writes the longest header, which is padded, and one with a byte more.
func TestHeaderLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("half a gigabyte of text; run without -short")
	}
	const longest = (MaxHeaderBytes+prefixBytes)/Alignment*Alignment - prefixBytes - len(`{"__metadata__":{"a":""}}`)
	for n, want := range map[int]error{longest: nil, longest + 1: ErrUse} {
		if err := Write(io.Discard, map[string]string{"a": strings.Repeat("x", n)}, nil, nil); !errors.Is(err, want) {
			t.Errorf("%d bytes of text: error is %v, want %v", n, err, want)
		}
	}
}

// fullDisk takes n bytes, then fails.
type fullDisk struct{ n int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.n {
		return d.n, syscall.ENOSPC
	}
	d.n -= len(p)
	return len(p), nil
}

func TestDiskFull(t *testing.T) {
	tensors := []Tensor{{Name: "a", DType: F64, Shape: []int64{chunkBytes}}}
	for _, room := range []int{0, 100, 1 << 16, 8*chunkBytes + 100} {
		err := Write(&fullDisk{room}, nil, tensors, func(_ *Tensor, s *Sink) error {
			return Append(s, make([]float64, chunkBytes))
		})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d bytes: error is %v, want ENOSPC", room, err)
		}
	}
}

// FuzzFile reads hostile files. Whatever is accepted must survive a copy.
func FuzzFile(f *testing.F) {
	f.Add(pack(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"__metadata__":{"x":"y"}}`, 1, 2, 3, 4))
	f.Add(pack(`{}`))
	f.Add(pack(`{"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"I64","shape":[0],"data_offsets":[4,4]}}`, 0, 0, 0xc0, 0x7f))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse(b)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Write(&out, file.Metadata, file.Tensors, func(x *Tensor, s *Sink) error { return copyTensor(file, x, s) }); err != nil {
			t.Fatal(err)
		}
		again, err := parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(file.Metadata, again.Metadata) || len(file.Tensors) != len(again.Tensors) {
			t.Fatalf("%v and %d tensors became %v and %d", file.Metadata, len(file.Tensors), again.Metadata, len(again.Tensors))
		}
		data := func(f *File) []byte {
			p, err := io.ReadAll(f.data)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		if !bytes.Equal(data(file), data(again)) {
			t.Fatal("the copy has other data")
		}
	})
}

func copyTensor(f *File, x *Tensor, s *Sink) error {
	switch x.DType {
	case F32: // as bits: NaN payloads must survive
		return copyAs[float32](f, x, s)
	case F64:
		return copyAs[float64](f, x, s)
	case I32:
		return copyAs[int32](f, x, s)
	case I64:
		return copyAs[int64](f, x, s)
	case U8:
		return copyAs[uint8](f, x, s)
	case U16:
		return copyAs[uint16](f, x, s)
	}
	return copyAs[uint64](f, x, s)
}

func copyAs[T Element](f *File, x *Tensor, s *Sink) error {
	v := make([]T, x.Len())
	if err := Read(f, x.Name, 0, v); err != nil {
		return err
	}
	return Append(s, v)
}
