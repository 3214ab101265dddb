package native

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/text"
	"github.com/pce-engine/pce/internal/safetensors"
)

func init() {
	format.Register(Format)
	format.Register(text.Format)
}

func mustParse(t testing.TB, input string) *format.Model {
	t.Helper()
	m, err := text.Parse(input)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustEncode(t testing.TB, m *format.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, m.Graph, m.Meta, m.Params); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustEncode64(t testing.TB, m *format.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, m.Graph, m.Meta, m.Params64); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decodeBytes(b []byte) (*format.Model, error) {
	return format.Decode(bytes.NewReader(b), int64(len(b)))
}

func TestRoundTripOfRandomCircuits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for range 100 {
		want := formattest.Random(t, rng)
		if err := Write(path, want.Graph, want.Meta, want.Params); err != nil {
			t.Fatal(err)
		}
		got, err := format.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := formattest.Diff(got, want); d != "" {
			t.Fatal(d)
		}
		if got.NumParams() != circuitParams(want.Graph) {
			t.Errorf("NumParams is %d, want %d", got.NumParams(), circuitParams(want.Graph))
		}
		if err := errors.Join(got.Verify(), got.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFloat64RoundTrip: every bit of float64 parameters survives a file, and
// readers of float32 get them rounded once.
func TestFloat64RoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for range 100 {
		want := formattest.Random64(t, rng)
		if err := Write64(path, want.Graph, want.Meta, want.Params64); err != nil {
			t.Fatal(err)
		}
		got, err := format.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := formattest.Diff64(got, want); d != "" {
			t.Fatal(d)
		}
		for i := range got.Graph.Nodes {
			id := circuit.NodeID(i)
			wide := make([]float64, got.Graph.NumParams(id))
			narrow := make([]float32, len(wide))
			if err := errors.Join(got.Params64(id, wide), got.Params(id, narrow)); err != nil {
				t.Fatal(err)
			}
			for k := range wide {
				if narrow[k] != float32(wide[k]) {
					t.Fatalf("node %d has %v as float32 and %v as float64", i, narrow[k], wide[k])
				}
			}
		}
		if err := errors.Join(got.Verify(), got.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAlignment: tensors start on multiples of the size of their elements, as
// programs that map a file into memory need it.
func TestAlignment(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	for _, b := range [][]byte{mustEncode(t, m), mustEncode64(t, m)} {
		f, err := safetensors.NewFile(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0) // the data start on a multiple of safetensors.Alignment
		for _, x := range f.Tensors {
			if at%int64(x.DType.Size()) != 0 {
				t.Errorf("tensor %s of type %s starts at byte %d", x.Name, x.DType, at)
			}
			at += x.Len() * int64(x.DType.Size())
		}
	}
}

// TestParamsOfManyReaders reads one model from several goroutines; the race
// detector watches.
func TestParamsOfManyReaders(t *testing.T) {
	want := mustParse(t, formattest.Everything)
	got, err := decodeBytes(mustEncode(t, want))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if d := formattest.Diff(got, want); d != "" {
				t.Error(d)
			}
		})
	}
	wg.Wait()
}

func circuitParams(g *circuit.Graph) int64 {
	n := int64(0)
	for i := range g.Nodes {
		if g.OwnsParams(circuit.NodeID(i)) {
			n += int64(g.NumParams(circuit.NodeID(i)))
		}
	}
	return n
}

// TestGoldenFileOfEachVersion: a file of every version that was ever released
// opens as the model that its text says.
func TestGoldenFileOfEachVersion(t *testing.T) {
	for _, version := range []string{"1.0", "1.1", "1.2"} {
		text, err := os.ReadFile("testdata/v" + version + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		m, err := format.Open("testdata/v" + version + ".safetensors")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		diff := formattest.Diff
		if version == "1.2" {
			diff = formattest.Diff64
		}
		if d := diff(m, mustParse(t, string(text))); d != "" {
			t.Errorf("version %s: %s", version, d)
		}
		if m.Unchecked != (version == "1.0") {
			t.Errorf("version %s is unchecked: %t", version, m.Unchecked)
		}
		write := map[string]func(testing.TB, *format.Model) []byte{"1.1": mustEncode, "1.2": mustEncode64}[version]
		if write != nil {
			want, err := os.ReadFile("testdata/v" + version + ".safetensors")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(write(t, m), want) {
				t.Errorf("version %s is written in other bytes than before; raise the minor version", version)
			}
		}
	}
}

func TestDigestNamesTheStructure(t *testing.T) {
	digest := func(text string) [32]byte {
		d, err := Digest(mustParse(t, text).Graph)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := digest(formattest.Everything)
	if digest(strings.ReplaceAll(formattest.Everything, "0.25 0.75", "0.75 0.25")) != first {
		t.Error("the digest depends on parameters")
	}
	for _, edit := range [][]string{ // pairs of old and new
		{"circuit 4", "circuit 5"},
		{"root s", "s2 = sum s : 1\nroot s2"},
		{"root s", "s2 = sum s : 1\nroot s"},
		{"edges=0,2,5", "edges=0,3,5"},
		{"mask 11 01 10", "mask 11 10 10", "/ 0 0.5 /", "/ 0.5 0 /"},
		{" mask 11 01 10", "", " mask 11 01 10 tied", " tied"},
		{"bernoulli tied a", "bernoulli"},
		{"product m d h", "product d m h"},
		{"min_sigma=0.01", "min_sigma=0.02"},
		{"sum[3] s : 1 / 1 / 1", "sum[2] s : 1 / 1"},
	} {
		if digest(strings.NewReplacer(edit...).Replace(formattest.Everything)) == first {
			t.Errorf("%q keeps the digest", edit)
		}
	}
}

// TestFormat holds the format to what all of them promise.
func TestFormat(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	formattest.Run(t, Format, mustEncode64(t, m), mustEncode(t, m))
}

// TestEveryByteCounts cuts a file at every byte and flips two bits of every byte
// in turn: it is refused each time.
func TestEveryByteCounts(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	files := [][]byte{mustEncode64(t, m), mustEncode(t, m)}
	if testing.Short() {
		files = files[:1]
	}
	for _, b := range files {
		for n := range b {
			if _, err := decodeBytes(b[:n]); !errors.Is(err, format.ErrModel) {
				t.Fatalf("%d of %d bytes: error is %v, want ErrModel", n, len(b), err)
			}
		}
		for i := range b {
			for _, bit := range []int{0, 7} {
				b[i] ^= 1 << bit
				if _, err := decodeBytes(b); !errors.Is(err, format.ErrModel) {
					t.Errorf("byte %d, bit %d: error is %v, want ErrModel", i, bit, err)
				}
				b[i] ^= 1 << bit
			}
		}
	}
}

// TestDamagedGzip flips bits of a compressed file: it is refused, or the flip
// changes nothing of the model, for gzip has bytes that say nothing about the
// contents.
func TestDamagedGzip(t *testing.T) {
	good := mustParse(t, formattest.Everything)
	for _, b := range [][]byte{mustEncode(t, good), mustEncode64(t, good)} {
		want, err := decodeBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		z := formattest.Compress(t, b)
		for i := range z {
			for _, bit := range []int{0, 7} {
				z[i] ^= 1 << bit
				if m, err := decodeBytes(z); err == nil {
					if d := formattest.Diff64(m, want); d != "" {
						t.Errorf("byte %d, bit %d: accepted as another model: %s", i, bit, d)
					}
				}
				z[i] ^= 1 << bit
			}
		}
	}
}

// TestNoChecksum takes the checksum off a file of the present version: it is
// refused, also if the file then says that it is older.
func TestNoChecksum(t *testing.T) {
	b := mustEncode(t, mustParse(t, formattest.Everything))
	f, err := safetensors.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	params := make([]float32, mustParse(t, formattest.Everything).NumParams())
	if err := safetensors.Read(f, paramTensor, 0, params); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ version, name, want string }{
		{"1.1", "other", "no tensor sha256"}, {"1.0", checkTensor, "checksum"}, {"1.1", checkTensor, "checksum"},
	} {
		f.Metadata[keyVersion] = tc.version
		tensors := slices.Clone(f.Tensors)
		tensors[len(tensors)-1].Name = tc.name
		var out bytes.Buffer
		err := safetensors.Write(&out, f.Metadata, tensors, func(x *safetensors.Tensor, s *safetensors.Sink) error {
			switch x.DType {
			case safetensors.F32:
				params[0] += 0.5
				return safetensors.Append(s, params)
			case safetensors.I32:
				return copyTensor[int32](f, x, s)
			case safetensors.I64:
				return copyTensor[int64](f, x, s)
			case safetensors.U64:
				return copyTensor[uint64](f, x, s)
			}
			v := make([]uint8, x.Len())
			if x.Name == kindTensor {
				err = safetensors.Read(f, x.Name, 0, v)
			}
			return errors.Join(err, safetensors.Append(s, v))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeBytes(out.Bytes()); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("version %s with a tensor %s: error is %v, want ErrModel and %q", tc.version, tc.name, err, tc.want)
		}
	}
}

func copyTensor[T safetensors.Element](f *safetensors.File, x *safetensors.Tensor, s *safetensors.Sink) error {
	v := make([]T, x.Len())
	return errors.Join(safetensors.Read(f, x.Name, 0, v), safetensors.Append(s, v))
}

func TestDiskFull(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	size := len(mustEncode(t, m))
	for n := range size {
		if err := encode(&formattest.FullDisk{Room: n}, m.Graph, m.Meta, m.Params); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room for %d of %d bytes: error is %v, want ENOSPC", n, size, err)
		}
	}
	if err := encode(&formattest.FullDisk{Room: size}, m.Graph, m.Meta, m.Params); err != nil {
		t.Fatal(err)
	}
}
