package format

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/internal/safetensors"
)

// everything is a small model with every feature of the formats.
const everything = `circuit 4
meta "schema" "{\"columns\":4}\n"
meta "" "ü"
a = input[2] x0 bernoulli 0.25 / 0.9
b = input[2] x1 categorical categories=3 0.2 0.3 0.5 / 0.1 0.1 0.8
c = input[2] x1 categorical categories=3 0.5 0.5 0 / 1 0 0
d = input[2] x2 gaussian min_sigma=0.01 0 1 / -2.5 0.5
e = input[2] x3 histogram edges=0,2,5 0.5 0.5 / 1 0
f = input[2] x0 bernoulli tied a
i = input[2] x3 indicator codes=5 value=4
p = product a b
q = product f c
m = sum[2] p q edges 1x2 (0,0) (1,0) (1,1) mask 11 01 10 : 0.25 0.75 / 0 0.5 / 0.5 0
m2 = sum[2] q p edges 1x2 (0,0) (1,0) (1,1) mask 11 01 10 tied m
h = sum[2] e i : 0.25 0.25 0.25 0.25 / 0 0 0 1
r = product m d h
r2 = product m2 d h
s = sum r r2 : 0.1 0.2 0.3 0.4
after = sum[3] s : 1 / 1 / 1
root s
`

func mustParse(t testing.TB, text string) *Model {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustEncode(t testing.TB, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, m.Graph, m.Meta, m.Params); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decodeBytes(b []byte) (*Model, error) { return Decode(bytes.NewReader(b), int64(len(b))) }

// diff says how two models differ, bit by bit; "" if they do not.
func diff(a, b *Model) string {
	if !reflect.DeepEqual(a.Graph, b.Graph) {
		return fmt.Sprintf("graphs %+v and %+v", a.Graph, b.Graph)
	}
	if !maps.Equal(a.Meta, b.Meta) {
		return fmt.Sprintf("strings %q and %q", a.Meta, b.Meta)
	}
	for i := range a.Graph.Nodes {
		id := circuit.NodeID(i)
		p := make([]float32, a.Graph.NumParams(id))
		q := make([]float32, len(p))
		errA, errB := a.Params(id, p), b.Params(id, q)
		if errors.Is(errA, ErrNoParams) && errors.Is(errB, ErrNoParams) {
			continue
		}
		if err := errors.Join(errA, errB); err != nil {
			return err.Error()
		}
		same := func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
		if !slices.EqualFunc(p, q, same) {
			return fmt.Sprintf("node %d: parameters %v and %v", i, p, q)
		}
	}
	return ""
}

// randomModel is a random circuit with random parameters.
func randomModel(t testing.TB, rng *rand.Rand) *Model {
	t.Helper()
	g := reference.Random(rng, reference.RandomOptions{})
	p, err := reference.Init(g, rng.Uint64(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Model{Graph: g, Meta: map[string]string{"k": "v"}, params: p.Read}
}

func TestNativeRoundTripOfRandomCircuits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "model.safetensors")
	for range 100 {
		want := randomModel(t, rng)
		if err := Write(path, want.Graph, want.Meta, want.Params); err != nil {
			t.Fatal(err)
		}
		got, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(got, want); d != "" {
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

// TestParamsOfManyReaders reads one model from several goroutines; the race
// detector watches.
func TestParamsOfManyReaders(t *testing.T) {
	want := mustParse(t, everything)
	got, err := decodeBytes(mustEncode(t, want))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if d := diff(got, want); d != "" {
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
	for _, version := range []string{"1.0", "1.1"} {
		text, err := os.ReadFile("testdata/v" + version + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		m, err := Open("testdata/v" + version + ".safetensors")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if d := diff(m, mustParse(t, string(text))); d != "" {
			t.Errorf("version %s: %s", version, d)
		}
		if m.Unchecked != (version == "1.0") {
			t.Errorf("version %s is unchecked: %t", version, m.Unchecked)
		}
		if version == fmt.Sprintf("%d.%d", majorVersion, minorVersion) {
			want, err := os.ReadFile("testdata/v" + version + ".safetensors")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(mustEncode(t, m), want) {
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
	first := digest(everything)
	if digest(strings.ReplaceAll(everything, "0.25 0.75", "0.75 0.25")) != first {
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
		if digest(strings.NewReplacer(edit...).Replace(everything)) == first {
			t.Errorf("%q keeps the digest", edit)
		}
	}
}

// TestTruncated cuts the files at every byte.
func TestTruncated(t *testing.T) {
	b := mustEncode(t, mustParse(t, everything))
	for n := range b {
		if _, err := decodeBytes(b[:n]); !errors.Is(err, ErrModel) {
			t.Fatalf("%d of %d bytes: error is %v, want ErrModel", n, len(b), err)
		}
	}
	z := compress(t, b)
	for n := range z {
		if _, err := decodeBytes(z[:n]); !errors.Is(err, ErrModel) {
			t.Fatalf("gzip, %d of %d bytes: error is %v, want ErrModel", n, len(z), err)
		}
	}
	for n := range everything { // a shorter text may be a model; it must not panic
		if m, err := decodeBytes([]byte(everything[:n])); err == nil && m.Verify() != nil || err != nil && !errors.Is(err, ErrModel) {
			t.Fatalf("text, %d bytes: %v, want a good model or ErrModel", n, err)
		}
	}
}

// TestFlippedBits flips two bits of every byte of a file in turn: it is refused. Of a
// compressed one, a flip may also change nothing of the model: gzip has bytes that
// say nothing about the contents.
func TestFlippedBits(t *testing.T) {
	good := mustParse(t, everything)
	b := mustEncode(t, good)
	for i := range b {
		for _, bit := range []int{0, 7} {
			b[i] ^= 1 << bit
			if _, err := decodeBytes(b); !errors.Is(err, ErrModel) || strings.Contains(err.Error(), "\n") {
				t.Errorf("byte %d, bit %d: error is %v, want one line of ErrModel", i, bit, err)
			}
			b[i] ^= 1 << bit
		}
	}
	z := compress(t, b)
	for i := range z {
		for _, bit := range []int{0, 7} {
			z[i] ^= 1 << bit
			m, err := decodeBytes(z)
			if err == nil {
				if d := diff(m, good); d != "" {
					t.Errorf("gzip, byte %d, bit %d: accepted as another model: %s", i, bit, d)
				}
			} else if !errors.Is(err, ErrModel) {
				t.Errorf("gzip, byte %d, bit %d: error is %v, want ErrModel", i, bit, err)
			}
			z[i] ^= 1 << bit
		}
	}
}

// TestNoChecksum takes the checksum off a file of the present version: it is
// refused, also if the file then says that it is older.
func TestNoChecksum(t *testing.T) {
	b := mustEncode(t, mustParse(t, everything))
	f, err := safetensors.NewFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	params := make([]float32, mustParse(t, everything).NumParams())
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
		if _, err := decodeBytes(out.Bytes()); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("version %s with a tensor %s: error is %v, want ErrModel and %q", tc.version, tc.name, err, tc.want)
		}
	}
}

func copyTensor[T safetensors.Element](f *safetensors.File, x *safetensors.Tensor, s *safetensors.Sink) error {
	v := make([]T, x.Len())
	return errors.Join(safetensors.Read(f, x.Name, 0, v), safetensors.Append(s, v))
}

func compress(t *testing.T, b []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write(b)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

func TestOpenRecognisesContent(t *testing.T) {
	want := mustParse(t, everything)
	native := mustEncode(t, want)
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"native":    native,
		"native.gz": compress(t, native),
		"text":      []byte(everything),
		"text.gz":   compress(t, []byte(everything)),
		"comment":   []byte("\n  # first\n\n" + everything),
		"windows":   []byte(strings.ReplaceAll(everything, "\n", "\r\n")),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := diff(m, want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, b := range map[string]string{
		"empty": "", "json": `{"a":1}`, "words": "circuits 3\n", "npy": "\x93NUMPY\x01\x00v\x00{'descr'", "pickle": "\x80\x04\x95",
		"gzip of gzip": string(compress(t, compress(t, native))),
	} {
		if _, err := decodeBytes([]byte(b)); !errors.Is(err, ErrModel) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %q, want one line that matches ErrModel", name, err)
		}
	}
}

func TestOpenSpecialFiles(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v, want ErrNotExist", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrModel) {
		t.Errorf("directory: %v, want ErrModel", err)
	}
	native := mustEncode(t, mustParse(t, everything))
	for _, limit := range []int64{1 << 20, int64(len(native)), int64(len(native)) - 1} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(native); err != nil { // fits the pipe's buffer
			t.Fatal(err)
		}
		w.Close()
		_, err = open(r, limit)
		if (err == nil) != (limit >= int64(len(native))) {
			t.Errorf("pipe of %d bytes with limit %d: %v", len(native), limit, err)
		}
		r.Close()
	}
}

// TestCompressedBomb: what does not fit is refused before it is all there.
func TestCompressedBomb(t *testing.T) {
	z := compress(t, make([]byte, 1<<22))
	_, err := decode(bytes.NewReader(z), int64(len(z)), 1<<20)
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("error is %v, want the limit", err)
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
	m := mustParse(t, everything)
	size := len(mustEncode(t, m))
	for n := range size {
		if err := encode(&fullDisk{n}, m.Graph, m.Meta, m.Params); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room for %d of %d bytes: error is %v, want ENOSPC", n, size, err)
		}
	}
	if err := encode(&fullDisk{size}, m.Graph, m.Meta, m.Params); err != nil {
		t.Fatal(err)
	}
}
