package format_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/circuit/format/text"
)

func init() {
	format.Register(native.Format)
	format.Register(text.Format)
}

// everything returns the same model as a native file and as a text.
func everything(t testing.TB) (m *format.Model, nativeFile, textFile []byte) {
	t.Helper()
	textFile = []byte(formattest.Everything)
	m, err := text.Parse(formattest.Everything)
	if err != nil {
		t.Fatal(err)
	}
	return m, write(t, m), textFile
}

// write returns a model's native file.
func write(t testing.TB, m *format.Model) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := native.Write(path, m.Graph, m.Meta, m.Params); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(b []byte) (*format.Model, error) {
	return format.Decode(bytes.NewReader(b), int64(len(b)))
}

func TestOpenRecognisesContent(t *testing.T) {
	want, nativeFile, textFile := everything(t)
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"native":    nativeFile,
		"native.gz": formattest.Compress(t, nativeFile),
		"text":      textFile,
		"text.gz":   formattest.Compress(t, textFile),
		"comment":   append([]byte("\n  # first\n\n"), textFile...),
		"windows":   bytes.ReplaceAll(textFile, []byte("\n"), []byte("\r\n")),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := format.Open(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := formattest.Diff(m, want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, b := range map[string]string{
		"empty": "", "json": `{"a":1}`, "words": "circuits 3\n", "npy": "\x93NUMPY\x01\x00v\x00{'descr'", "pickle": "\x80\x04\x95",
		"gzip of gzip": string(formattest.Compress(t, formattest.Compress(t, nativeFile))),
		"empty gzip":   string(formattest.Compress(t, nil)),
	} {
		_, err := decode([]byte(b))
		if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "(tried: native, text") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %q, want one line that matches ErrModel and names the formats", name, err)
		}
	}
}

// TestRegister adds a format, replaces it, and sees it tried and named. The formats of earlier runs are there still.
func TestRegister(t *testing.T) {
	m, _, _ := everything(t)
	name := fmt.Sprintf("toy %d", len(format.Names()))
	toy := func(magic string) format.Format {
		return format.Format{
			Name:       name,
			Recognises: func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) },
			Decode:     func(io.ReaderAt, int64) (*format.Model, error) { return m, nil },
		}
	}
	if _, err := decode([]byte("toy1")); err == nil || strings.Contains(err.Error(), name) {
		t.Errorf("before Register: %v, want an error that does not name the format", err)
	}
	before := format.Names()
	t.Cleanup(func() { format.Register(toy("\x00never")) })
	format.Register(toy("toy1"))
	format.Register(toy("toy2"))
	if got, want := format.Names(), append(before, name); !slices.Equal(got, want) {
		t.Errorf("formats are %v, want %v", got, want)
	}
	if got, err := decode(formattest.Compress(t, []byte("toy2"))); err != nil || got != m {
		t.Errorf("gzip of a toy file: %v, %v", got, err)
	}
	if _, err := decode([]byte("toy1")); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a file of the format that was replaced: %v, want an error that names the new one", err)
	}
}

func TestOpenSpecialFiles(t *testing.T) {
	if _, err := format.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v, want ErrNotExist", err)
	}
	if _, err := format.Open(t.TempDir()); !errors.Is(err, format.ErrModel) {
		t.Errorf("directory: %v, want ErrModel", err)
	}
	_, b, _ := everything(t)
	for _, limit := range []int64{1 << 20, int64(len(b)), int64(len(b)) - 1} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil { // fits the pipe's buffer
			t.Fatal(err)
		}
		w.Close()
		_, err = format.OpenWithin(r, limit)
		if (err == nil) != (limit >= int64(len(b))) {
			t.Errorf("pipe of %d bytes with limit %d: %v", len(b), limit, err)
		}
		r.Close()
	}
}

// TestOpenChanged: parameters are not read from a file that was written over since it was opened, as they would be those of another
// model, which no checksum tells. A file that was renamed over it leaves the opened one as it is.
func TestOpenChanged(t *testing.T) {
	_, b, _ := everything(t)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	write := func(path string) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(path)
	m, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var p [4]float32
	write(path + ".new")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if err := m.Params(0, p[:]); err != nil {
		t.Errorf("another file has the name: %v", err)
	}
	over, err := format.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	write(path)
	if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil { // clocks of files are coarse
		t.Fatal(err)
	}
	if err := over.Params(0, p[:]); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "was changed while it was open") {
		t.Errorf("the file was written over: %v, want ErrModel", err)
	}
}

// TestCompressedBomb: what does not fit is refused before it is all there.
func TestCompressedBomb(t *testing.T) {
	z := formattest.Compress(t, make([]byte, 1<<22))
	_, err := format.DecodeWithin(bytes.NewReader(z), int64(len(z)), 1<<20)
	if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("error is %v, want the limit", err)
	}
}

func TestParamsUse(t *testing.T) {
	want, b, _ := everything(t)
	m, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		id  circuit.NodeID
		len int
	}{{-1, 0}, {99, 0}, {0, 1}, {0, 3}, {7, 1}} {
		if err := m.Params(tc.id, make([]float32, tc.len)); !errors.Is(err, format.ErrModel) {
			t.Errorf("Params(%d, [%d]) = %v, want ErrModel", tc.id, tc.len, err)
		}
	}
	var own, tied [4]float32
	if err := errors.Join(m.Params(0, own[:]), m.Params(5, tied[:])); err != nil || own != tied || own != [4]float32{0.75, 0.25, 0.1, 0.9} {
		t.Errorf("node 0 has %v, node 5, tied to it, %v: %v", own, tied, err)
	}
	if err := m.Params(7, nil); err != nil { // a product
		t.Error(err)
	}
	if got := want.NumParams(); got != 45 || m.NumParams() != got {
		t.Errorf("%d and %d parameters, want 45", got, m.NumParams())
	}
	if p := make([]float64, 2); m.Params64(-1, nil) == nil || m.Params64(0, p) == nil || want.Params64(99, nil) == nil || want.Params64(1, p) == nil {
		t.Error("Params64 takes another number of parameters or another node than there is")
	}
	if err := format.NewModel(m.Graph, nil, format.Params{}).Params64(0, make([]float64, 4)); !errors.Is(err, format.ErrNoParams) {
		t.Errorf("a model without parameters: %v, want ErrNoParams", err)
	}
	open, err := text.Parse("circuit 1\na = input x0 bernoulli\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := open.Params(0, own[:2]); !errors.Is(err, format.ErrNoParams) {
		t.Errorf("an open node: %v, want ErrNoParams", err)
	}
	if err := open.Verify(); err != nil {
		t.Errorf("a model with an open node: %v, want nil", err)
	}
}
