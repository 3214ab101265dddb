package format_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/forest/format/formattest"
	"github.com/pce-engine/pce/forest/format/xgboost"
)

func example(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := xgboost.Write(&b, formattest.Example()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.bin") // names do not matter
	if err := os.WriteFile(path, example(t), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := format.Open(path)
	if err != nil || len(f.Trees) != 2 {
		t.Fatalf("%v: %v", f, err)
	}
	if _, err := format.Open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
	if _, err := format.Open(t.TempDir()); !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
}

// TestUnknown: what no format recognises says which were tried.
func TestUnknown(t *testing.T) {
	for name, b := range map[string]string{"empty": "", "json": `{"a":1}`, "words": "tree\nsize=1\n", "npy": "\x93NUMPY\x01\x00v\x00{'descr'", "circuit": "circuit 2\n", "short gzip": "\x1f\x8b\x08"} {
		_, err := format.Decode([]byte(b))
		var unknown *format.UnknownError
		if !errors.Is(err, format.ErrModel) || errors.As(err, &unknown) == (name == "short gzip") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		if unknown != nil && !slices.Contains(unknown.Tried, "xgboost-json") {
			t.Errorf("%s: tried %v", name, unknown.Tried)
		}
	}
}

// TestBomb: what unpacks to more than a limit is refused before it is all there.
func TestBomb(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(make([]byte, 1<<22))
	z.Close()
	if _, err := format.DecodeWithin(packed.Bytes(), 1<<20); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("error is %v, want the limit", err)
	}
}

func TestRegister(t *testing.T) {
	toy := func(magic string) format.Format {
		return format.Format{Name: "toy", Recognises: func(head []byte) bool { return string(head) == magic }, Decode: func([]byte) (*forest.Forest, error) { return formattest.Example(), nil }}
	}
	t.Cleanup(func() { format.Register(toy("\x00never")) })
	n := len(format.Names())
	format.Register(toy("one"))
	format.Register(toy("two"))
	if names := format.Names(); len(names) != n+1 || names[n] != "toy" {
		t.Errorf("formats are %v", names)
	}
	if _, err := format.Decode([]byte("one")); err == nil {
		t.Error("a format that was replaced is still there")
	}
	if _, err := format.Decode([]byte("two")); err != nil {
		t.Error(err)
	}
}
