package format_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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

// TestShortened: a file that is cut short while a decoder reads it is an error. A panic of a decoder stays one.
func TestShortened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, append([]byte("shortened"), make([]byte, 1<<20)...), 0o644); err != nil {
		t.Fatal(err)
	}
	cut := true
	format.Register(format.Format{Name: "shortened", Recognises: func(head []byte) bool { return bytes.HasPrefix(head, []byte("shortened")) }, Decode: func(b []byte) (*forest.Forest, error) {
		if !cut {
			panic("a mistake")
		}
		if err := os.Truncate(path, 10); err != nil {
			return nil, err
		}
		f := formattest.Example()
		f.Base[0] = float64(b[len(b)-1]) // of a page that is gone
		return f, nil
	}})
	f, err := format.Open(path)
	if err == nil && f.Base[0] == 0 {
		t.Skip("SKIPPED: files are not mapped here, so decoders have bytes of their own")
	}
	if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), "became shorter") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	cut = false
	defer func() {
		if r := recover(); r != "a mistake" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, err = format.Open(path)
	t.Errorf("a decoder's panic became %v", err)
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
	n := len(format.Names()) // with those of earlier runs
	name := fmt.Sprintf("toy %d", n)
	toy := func(magic string) format.Format {
		return format.Format{Name: name, Recognises: func(head []byte) bool { return string(head) == magic }, Decode: func([]byte) (*forest.Forest, error) { return formattest.Example(), nil }}
	}
	t.Cleanup(func() { format.Register(toy("\x00never")) })
	format.Register(toy("one"))
	format.Register(toy("two"))
	if names := format.Names(); len(names) != n+1 || names[n] != name {
		t.Errorf("formats are %v", names)
	}
	if _, err := format.Decode([]byte("one")); err == nil {
		t.Error("a format that was replaced is still there")
	}
	if _, err := format.Decode([]byte("two")); err != nil {
		t.Error(err)
	}
}
