package pce_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/forest"
)

// BenchmarkPredict measures the forest in the folder that PCE_FOREST names, or else the
// shared forest higgs, 100 trees of depth 8, on its real rows, with one thread; rows/s is
// the figure. "plain" is the evaluator that defines what is right.
func BenchmarkPredict(b *testing.B) {
	dir := os.Getenv("PCE_FOREST")
	if dir == "" {
		dir = filepath.Join("..", "shared", "data", "forest", "xgb-higgs")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json*"))
	files = slices.DeleteFunc(files, func(name string) bool { return filepath.Base(name) == "case.json" })
	inputs, _ := filepath.Glob(filepath.Join(dir, "input.csv*"))
	if len(files) != 1 || len(inputs) != 1 {
		b.Skipf("SKIPPED: needs a model and an input.csv in %s, which is not part of the repository: place the folder shared beside it, or set PCE_FOREST", dir)
	}
	text, err := os.ReadFile(inputs[0])
	if err != nil {
		b.Fatal(err)
	}
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		if text, err = io.ReadAll(z); err != nil {
			b.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) > 2000 {
		lines = lines[1000:] // the first are random rows, which take shorter ways than real ones
	}
	var rows []float32
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			x, err := strconv.ParseFloat(word, 32)
			if err != nil {
				b.Fatal(err)
			}
			rows = append(rows, float32(x))
		}
	}
	m, err := pce.Open(context.Background(), files[0], pce.Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	f := m.Forest()
	all, width := len(rows)/f.Features, f.Width(forest.Prediction)
	for _, n := range []int{1, 64, 512, 4096, 200000} {
		b.Run(fmt.Sprint("rows=", n), func(b *testing.B) {
			batch := make([]float32, 0, n*f.Features)
			for len(batch) < cap(batch) {
				batch = append(batch, rows[:min(len(rows), cap(batch)-len(batch))]...)
			}
			out := make([]float32, n*width)
			for b.Loop() {
				if err := m.Predict(context.Background(), batch, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	b.Run("plain", func(b *testing.B) {
		out := make([]float64, all*width)
		for b.Loop() {
			if err := forest.Evaluate(f, forest.Prediction, rows, out); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(all)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
