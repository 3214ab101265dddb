package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pce-engine/pce/internal/safetensors"
)

// withoutChecksum writes a model file as version 1.0 had it.
func withoutChecksum(t *testing.T, from, to string) {
	t.Helper()
	f, err := safetensors.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Metadata["format_version"] = "1.0"
	var b bytes.Buffer
	err = safetensors.Write(&b, f.Metadata, f.Tensors[:len(f.Tensors)-1], func(x *safetensors.Tensor, s *safetensors.Sink) error {
		switch x.DType {
		case safetensors.F32:
			return copyAs[float32](f, x, s)
		case safetensors.I32:
			return copyAs[int32](f, x, s)
		case safetensors.I64:
			return copyAs[int64](f, x, s)
		case safetensors.U64:
			return copyAs[uint64](f, x, s)
		}
		return copyAs[uint8](f, x, s)
	})
	if err == nil {
		err = os.WriteFile(to, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyAs[T safetensors.Element](f *safetensors.File, x *safetensors.Tensor, s *safetensors.Sink) error {
	v := make([]T, x.Len())
	return errors.Join(safetensors.Read(f, x.Name, 0, v), safetensors.Append(s, v))
}

// TestEarlierModelFile asks about a model file of the version that had no checksum:
// it is answered like the same model of this version, with a note.
func TestEarlierModelFile(t *testing.T) {
	t.Chdir(t.TempDir())
	runJSON(t, append([]string{"train", "--out", "run"}, tiny...)...)
	withoutChecksum(t, "run/model.safetensors", "old.safetensors")
	ask := func(model string, args ...string) (string, string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := Run(t.Context(), append(args, model), nil, nil, &out, &errs); code != exitOK {
			t.Fatalf("%v %s: exit %d: %s", args, model, code, &errs)
		}
		return out.String(), errs.String()
	}
	const rows = "builtin:random?rows=20&vars=16&categories=4"
	for _, args := range [][]string{{"query", "loglik", "--data", rows, "--model"}, {"info"}, {"check", "--data", rows}} {
		old, note := ask("old.safetensors", args...)
		same, none := ask("run/model.safetensors", args...)
		if want := "note: old.safetensors is of an earlier version, without a checksum"; strings.Count(note, want) != 1 || none != "" {
			t.Errorf("%v: notes %q and %q, want %q once", args, note, none, want)
		}
		if args[0] == "query" && old != same {
			t.Errorf("answers %q, want %q", old, same)
		}
	}
	_, note := ask("copy.jpc", "convert", "old.safetensors")
	if want := "note: old.safetensors is of an earlier version, without a checksum"; strings.Count(note, want) != 1 {
		t.Errorf("convert: notes %q, want %q once", note, want)
	}
	for _, args := range [][]string{
		{"compile", "--target", "rtl", "--output", "hardware"}, {"compile", "--emit", "hispn"},
		{"prune", "--data", rows, "--keep", "0.5", "--out", "small.safetensors", "--model"}, {"grow", "--out", "large.safetensors", "--model"},
	} {
		if _, note := ask("old.safetensors", args...); strings.Count(note, "of an earlier version, without a checksum") != 1 {
			t.Errorf("%v: notes %q, want one about the checksum", args, note)
		}
	}
	damaged, err := os.ReadFile("run/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	damaged[len(damaged)-200] ^= 1
	if err := os.WriteFile("damaged.safetensors", damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"info", "damaged.safetensors"}, nil, nil, &out, &errs); code != exitData || !strings.Contains(errs.String(), "checksum") {
		t.Errorf("a flipped bit: exit %d: %s", code, &errs)
	}
}
