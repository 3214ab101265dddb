package formattest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format"
)

// Run registers f and holds it to what Open promises of every format, with the
// contents of small files: they are told by their content, open with and without
// gzip as the same model, and what damage leaves of them is a valid model or an
// error of one line that matches format.ErrModel.
func Run(t *testing.T, f format.Format, files ...[]byte) {
	format.Register(f)
	if len(files) == 0 {
		t.Fatal("no files; give at least one")
	}
	for _, other := range []string{"", "\x00", `{"a":1}`, "[1]", "<xml>", "\x93NUMPY\x01\x00v\x00{'descr'", "\x80\x04\x95", "\x1f\x8b\x08"} {
		if f.Recognises([]byte(other)) {
			t.Errorf("%s recognises %q as one of its files", f.Name, other)
		}
	}
	for i, b := range files {
		t.Run(fmt.Sprint("file ", i), func(t *testing.T) {
			if !f.Recognises(b[:min(len(b), format.HeadBytes)]) {
				t.Errorf("%s does not recognise its own file", f.Name)
			}
			want, err := f.Decode(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			if err := want.Verify(); err != nil {
				t.Error(err)
			}
			z := Compress(t, b)
			for name, b := range map[string][]byte{"plain": b, "gzip": z} {
				got, err := format.Decode(bytes.NewReader(b), int64(len(b)))
				if err != nil {
					t.Errorf("%s: %v", name, err)
				} else if d := Diff(got, want) + Diff64(got, want); d != "" {
					t.Errorf("%s: %s", name, d)
				}
			}
			for n := range b {
				survives(t, fmt.Sprintf("cut to %d bytes", n), b[:n])
			}
			for n := range z {
				if _, err := format.Decode(bytes.NewReader(z[:n]), int64(n)); !errors.Is(err, format.ErrModel) {
					t.Errorf("gzip cut to %d of %d bytes: error is %v, want ErrModel", n, len(z), err)
				}
			}
			for _, whole := range [][]byte{b, z} {
				for n := range whole {
					for _, bit := range []int{0, 7} {
						whole[n] ^= 1 << bit
						survives(t, fmt.Sprintf("bit %d of byte %d of %d flipped", bit, n, len(whole)), whole)
						whole[n] ^= 1 << bit
					}
				}
			}
		})
	}
}

// survives opens a damaged file.
func survives(t *testing.T, damage string, b []byte) {
	t.Helper()
	m, err := format.Decode(bytes.NewReader(b), int64(len(b)))
	if err == nil && m.NumParams() < 1<<20 { // a flipped digit of a text may ask for more
		err = m.Verify()
	}
	if err != nil && (!errors.Is(err, format.ErrModel) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%s: error is %q, want one line that matches ErrModel", damage, err)
	}
}
