package pce_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/forest"
)

// BenchmarkPredict measures the shared forest higgs, 100 trees of depth 8, on its real
// rows, with one thread; rows/s is the figure. "plain" is the evaluator that defines
// what is right.
func BenchmarkPredict(b *testing.B) {
	dir := filepath.Join("..", "shared", "data", "forest", "xgb-higgs")
	files, _ := filepath.Glob(filepath.Join(dir, "*_save.json.gz"))
	packed, err := os.ReadFile(filepath.Join(dir, "input.csv.gz"))
	if err != nil || len(files) != 1 {
		b.Skipf("SKIPPED: needs %s, which is not part of the repository: place the folder shared beside it", dir)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(z); err != nil {
		b.Fatal(err)
	}
	var rows []float32
	for i, line := range strings.Split(strings.TrimSpace(text.String()), "\n") {
		if i < 1000 {
			continue // random rows, which take shorter ways than real ones
		}
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
	all := len(rows) / 28
	for _, n := range []int{1, 64, 512, 2000} {
		n = min(n, all)
		b.Run(fmt.Sprint("rows=", n), func(b *testing.B) {
			out := make([]float32, n)
			for b.Loop() {
				if err := m.Predict(context.Background(), rows[:28*n], out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	b.Run("plain", func(b *testing.B) {
		out := make([]float64, all)
		for b.Loop() {
			if err := forest.Evaluate(m.Forest(), forest.Prediction, rows, out); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(all)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
