package formattest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
)

// maxPerByte is how much a decoder may allocate for each byte of a file, and maxBase
// what it may allocate for any file.
const (
	maxPerByte = 600
	maxBase    = 4 << 20
)

// Decode reads a file that may be damaged with f's decoder and fails the test unless
// it keeps the promises of a format. It returns the forest, nil if the file was
// refused.
func Decode(t testing.TB, f format.Format, file []byte) *forest.Forest {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := f.Decode(file)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxBase+maxPerByte*uint64(len(file)) {
		t.Errorf("%s: a file of %d bytes took %d bytes of memory", f.Name, len(file), n)
	}
	if err != nil {
		if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") {
			t.Errorf("%s: error %q, want one line", f.Name, text)
		}
		return nil
	}
	if err := got.Check(); err != nil {
		t.Errorf("%s: it returned a forest that is invalid: %v", f.Name, err)
		return nil
	}
	if got.Features > 0 && got.Features < 1<<16 {
		row := make([]float64, got.Features)
		for i := range row {
			row[i] = []float64{math.NaN(), 0, -1e9, math.Inf(1)}[i%4]
		}
		for _, what := range []forest.What{forest.Prediction, forest.Margin, forest.Leaves, forest.Class} {
			if got.Has(what) != nil {
				continue
			}
			if err := forest.Evaluate(got, what, row, make([]float64, got.Width(what))); err != nil {
				t.Errorf("%s: the forest cannot be evaluated: %v", f.Name, err)
			}
		}
	}
	return got
}

// Run holds a format to its promises on its own files: each is recognised and opened,
// plain and packed; cut short at any byte it is refused; and with any byte changed it
// is refused or gives a forest that can be evaluated.
func Run(t *testing.T, f format.Format, files ...[]byte) {
	t.Helper()
	format.Register(f)
	for i, file := range files {
		if !f.Recognises(file[:min(len(file), format.HeadBytes)]) {
			t.Errorf("%s does not recognise file %d", f.Name, i)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(file)
		z.Close()
		for _, b := range [][]byte{file, packed.Bytes()} {
			if _, err := format.Decode(b); err != nil {
				t.Fatalf("file %d: %v", i, err)
			}
		}
		step := 1
		if testing.Short() {
			step = 7
		}
		for cut := 0; cut < len(file); cut += step {
			if got := Decode(t, f, file[:cut]); got != nil && len(bytes.TrimSpace(file[cut:])) > 0 {
				t.Errorf("%s: file %d cut to %d of %d bytes was not refused", f.Name, i, cut, len(file))
			}
			if _, err := format.Decode(file[:cut]); err != nil && !errors.Is(err, format.ErrModel) {
				t.Errorf("%s: error %v does not match ErrModel", f.Name, err)
			}
		}
		for at := 0; at < len(file); at += step {
			damaged := bytes.Clone(file)
			for _, x := range []byte{0xff, file[at] ^ 1, file[at] ^ 0x80} {
				damaged[at] = x
				Decode(t, f, damaged)
			}
		}
	}
}

// Fuzz decodes anything, starting from files of the format.
func Fuzz(f *testing.F, format format.Format, files ...[]byte) {
	for _, file := range files {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) { Decode(t, format, file) })
}

// Example returns a small forest of float32 numbers with every kind of test that
// XGBoost has: two trees of two outputs, categories, missing cells both ways.
func Example() *forest.Forest {
	return &forest.Forest{
		Source: "example", Target: "multi:softprob", Features: 3, Names: []string{"a", "b", "c"}, Outputs: 2, Classes: 2,
		Base: []float64{0.5, 0.5}, Link: forest.Softmax, Alpha: 1,
		Trees: []forest.Tree{
			{
				Weight: 1,
				Nodes: []forest.Node{
					{Test: forest.Less, Feature: 0, Threshold: 0.25, MissingYes: true, Yes: 1, No: 2},
					{First: 0, Last: 1, ID: 1},
					{Test: forest.In, Feature: 2, Yes: 4, No: 3, First: 0, Last: 3},
					{First: 1, Last: 2, ID: 3},
					{First: 2, Last: 3, ID: 4},
				},
				Values:     []forest.Value{{Value: -1.5}, {Value: 0.75}, {Value: 3.0517578125e-05}},
				Categories: []float64{0, 2, 40},
			},
			{
				Weight: 1,
				Nodes:  []forest.Node{{First: 0, Last: 1}},
				Values: []forest.Value{{Output: 1, Value: 0.125}},
			},
		},
	}
}
