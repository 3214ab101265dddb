package pce_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/forest"
)

// benchForest returns the file of the forest in the folder that PCE_FOREST names, or else of
// the shared forest higgs, 100 trees of depth 8, and the rows beside it.
func benchForest(b *testing.B) (file string, rows []float32) {
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
	for _, line := range lines {
		for word := range strings.SplitSeq(line, ",") {
			x, err := strconv.ParseFloat(word, 32)
			if err != nil {
				b.Fatal(err)
			}
			rows = append(rows, float32(x))
		}
	}
	return files[0], rows
}

// openForest opens a forest that closes with the benchmark.
func openForest(b *testing.B, file string, threads int) *pce.Model {
	m, err := pce.Open(b.Context(), file, pce.Options{Threads: threads})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	return m
}

// repeated returns n rows, the given ones over and over.
func repeated(rows []float32, n, columns int) []float32 {
	batch := make([]float32, 0, n*columns)
	for len(batch) < cap(batch) {
		batch = append(batch, rows[:min(len(rows), cap(batch)-len(batch))]...)
	}
	return batch
}

// BenchmarkPredict measures a forest on its real rows; rows/s is the figure. One thread
// computes, and for the two largest batches two as well. "plain" is the evaluator that defines what
// is right.
func BenchmarkPredict(b *testing.B) {
	file, rows := benchForest(b)
	for _, threads := range []int{1, 2} {
		m := openForest(b, file, threads)
		f := m.Forest()
		sizes, name := []int{1, 64, 512, 4096, 200000}, "rows="
		if threads > 1 {
			sizes, name = sizes[3:], "threads=2/rows="
		}
		for _, n := range sizes {
			b.Run(fmt.Sprint(name, n), func(b *testing.B) {
				batch, out := repeated(rows, n, f.Features), make([]float32, n*f.Width(forest.Prediction))
				for b.Loop() {
					if err := m.Predict(context.Background(), batch, out); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
	f := openForest(b, file, 1).Forest()
	b.Run("plain", func(b *testing.B) {
		all := len(rows) / f.Features
		out := make([]float64, all*f.Width(forest.Prediction))
		for b.Loop() {
			if err := forest.Evaluate(f, forest.Prediction, rows, out); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(all)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// BenchmarkPredictBatch is BenchmarkPredict of 200,000 rows on one thread, whose cells come column by column.
func BenchmarkPredictBatch(b *testing.B) {
	file, rows := benchForest(b)
	m := openForest(b, file, 1)
	columns := len(m.Schema().Columns)
	batch := &dataset.Batch{Rows: 200_000, Columns: make([]dataset.Cells, columns)}
	for c := range batch.Columns {
		batch.Columns[c].Values = make([]float32, batch.Rows)
		for r := range batch.Rows {
			batch.Columns[c].Values[r] = rows[(r*columns+c)%len(rows)]
		}
	}
	out := make([]float32, batch.Rows*m.Forest().Width(forest.Prediction))
	for b.Loop() {
		if err := m.PredictBatch(b.Context(), batch, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(batch.Rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkPredictTail times each prediction of one row while another goroutine computes
// without a pause, and prints the median and the 99th percentile.
func BenchmarkPredictTail(b *testing.B) {
	file, rows := benchForest(b)
	m := openForest(b, file, 1)
	f := m.Forest()
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for x := 1.0; ; x = math.Sqrt(x + 1) {
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	out, all := make([]float32, f.Width(forest.Prediction)), len(rows)/f.Features
	times := make([]time.Duration, 0, 1<<20)
	for i := 0; b.Loop(); i++ {
		row := rows[i%all*f.Features:][:f.Features]
		from := time.Now()
		if err := m.Predict(context.Background(), row, out); err != nil {
			b.Fatal(err)
		}
		if took := time.Since(from); len(times) < cap(times) {
			times = append(times, took)
		}
	}
	close(stop)
	busy.Wait()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2]), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100]), "p99-ns")
}

// BenchmarkFirstPrediction opens the file and predicts one row.
func BenchmarkFirstPrediction(b *testing.B) {
	file, rows := benchForest(b)
	for b.Loop() {
		m, err := pce.Open(b.Context(), file, pce.Options{Threads: 1})
		if err != nil {
			b.Fatal(err)
		}
		f := m.Forest()
		if err := m.Predict(b.Context(), rows[:f.Features], make([]float32, f.Width(forest.Prediction))); err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
