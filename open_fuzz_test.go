package pce_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit/reference"
)

// FuzzOpen opens damaged and hostile models: Open fails, or queries work.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(rain))
	f.Add([]byte("circuit 1\na = input x0 gaussian min_sigma=0.1 0 1\n"))
	f.Add([]byte("circuit 1000000000\na = input[100000] x0 poisson\ns = sum a\n"))
	f.Add([]byte("circuit 2\na = input[4] x0 categorical categories=60000\nb = sum[100000] a\nc = sum b\n"))
	m := openText(f, rain)
	path := filepath.Join(f.TempDir(), "m.safetensors")
	if err := m.Save(f.Context(), path); err != nil {
		f.Fatal(err)
	}
	native, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(native)
	f.Add(native[:len(native)-9])
	f.Add(bytes.Replace(native, []byte("discrete"), []byte("discreet"), 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "m")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := pce.Open(t.Context(), path, pce.Options{Rows: 4, Threads: 1, MaxMemory: 64 << 20})
		if err != nil {
			return
		}
		defer m.Close()
		if m.Graph().NumVars > 1000 {
			return
		}
		b := reference.Batch(m.Schema(), [][]float64{nans(m.Graph().NumVars)})
		if _, err := m.LogLikelihoodBatch(t.Context(), b); err != nil {
			t.Errorf("log-likelihood of an open model: %v", err)
		}
		if err := m.SampleBatch(t.Context(), b, 1, 0); err != nil {
			t.Errorf("sample of an open model: %v", err)
		}
	})
}

// openText opens a model in the text format.
func openText(t testing.TB, text string) *pce.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := pce.Open(t.Context(), path, pce.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}
