package dataset

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// realFile returns a file of the shared density data, or skips the test.
func realFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "data", "density", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: needs %s, density data that is not part of the repository: place the folder shared beside it", path)
	}
	return path
}

func TestRealFiles(t *testing.T) {
	for _, tt := range []struct {
		file                      string
		rows, columns, categories int // categories of the first column
		image                     [3]int
	}{
		{"nltcs/nltcs.train.data.gz", 16181, 16, 2, [3]int{}},
		{"plants/plants.test.data.gz", 3482, 69, 2, [3]int{}},
		{"nips/nips.train.data.gz", 400, 500, 2, [3]int{}},
		{"nips-bow/nips100.csv.gz", 1500, 100, 0, [3]int{}},
		{"mnist/t10k-images-idx3-ubyte.gz", 10000, 784, 256, [3]int{28, 28, 1}},
		{"mnist/t10k-labels-idx1-ubyte.gz", 10000, 1, 10, [3]int{}},
		{"text/wikitext2.valid.txt.gz", 0, 32, 0, [3]int{}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			if testing.Short() && tt.image[0] > 0 {
				t.Skip("10,000 images take most of a second; run without -short")
			}
			src, err := Open(context.Background(), realFile(t, tt.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := src.Schema()
			if tt.rows != 0 && src.Rows() != tt.rows || len(s.Columns) != tt.columns || tt.categories != 0 && s.Columns[0].Categories != tt.categories || s.Image != tt.image {
				t.Errorf("%d rows, %d columns, %d categories, image %v", src.Rows(), len(s.Columns), s.Columns[0].Categories, s.Image)
			}
		})
	}
}

// TestRealValues compares sums with those of other programs: the mean pixel of
// MNIST's test images is 0.1325 of white, and digit counts are published.
func TestRealValues(t *testing.T) {
	if testing.Short() {
		t.Skip("whole data sets; without -short")
	}
	images, err := Open(context.Background(), realFile(t, "mnist/t10k-images-idx3-ubyte.gz"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	summary, err := Summarize(context.Background(), images)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for _, c := range summary {
		mean += c.Mean / 255 / 784
	}
	if !(mean > 0.13245 && mean < 0.13255) {
		t.Errorf("mean pixel %v, want 0.1325", mean)
	}
	labels, err := Open(context.Background(), realFile(t, "mnist/t10k-labels-idx1-ubyte.gz"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := new(Batch)
	if err := labels.Gather(context.Background(), b, span(0, 10000)); err != nil {
		t.Fatal(err)
	}
	var counts [10]int
	for _, c := range b.Columns[0].Codes.Narrow {
		counts[c]++
	}
	if want := [10]int{980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}; counts != want {
		t.Errorf("digits %v, want %v", counts, want)
	}
	train, err := Open(context.Background(), realFile(t, "nltcs/nltcs.train.data.gz"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	test, err := Open(context.Background(), realFile(t, "nltcs/nltcs.test.data.gz"), Options{Schema: train.Schema()})
	if err != nil || test.Rows() != 3236 {
		t.Errorf("test split: %v", err)
	}
}
