package run

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestEdges cuts what lies between two numbers into bins of one width; one number alone is in the middle of one bin.
func TestEdges(t *testing.T) {
	for _, tc := range []struct {
		leaf           Leaf
		least, largest float64
		want           []float64
	}{
		{Leaf{Bins: 4}, -1, 1, []float64{-1, -0.5, 0, 0.5, 1}},
		{Leaf{Bins: 4}, 3, 3, []float64{2.5, 3.5}},
		{Leaf{Bins: 4, Edges: []float64{0, 1, 5}}, 3, 3, []float64{0, 1, 5}},
	} {
		if got := tc.leaf.edges(tc.least, tc.largest); !slices.Equal(got, tc.want) {
			t.Errorf("%+v, %v to %v: edges %v, want %v", tc.leaf, tc.least, tc.largest, got, tc.want)
		}
	}
}

// TestSpreadRows wants rows at even distances, and never more than asked for: all are read at once.
func TestSpreadRows(t *testing.T) {
	for _, tc := range []struct {
		rows, n int
		want    []int
	}{{10, 4, []int{0, 2, 5, 7}}, {3, 5, []int{0, 1, 2}}, {1, 1, []int{0}}, {0, 4, nil}} {
		if got := spreadRows(tc.rows, tc.n); !slices.Equal(got, tc.want) {
			t.Errorf("%d of %d rows: %v, want %v", tc.n, tc.rows, got, tc.want)
		}
	}
}

// TestLikeliest wants the first of the likeliest classes, also of one class, and none where the row is impossible.
func TestLikeliest(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		p    []float64
		want int
	}{{[]float64{0.5, 0.5}, 0}, {[]float64{0.2, 0.4, 0.4}, 1}, {[]float64{0.1, 0.2, 0.7}, 2}, {[]float64{1}, 0}, {[]float64{nan, nan}, dataset.Missing}} {
		if got := Likeliest(tc.p); got != tc.want {
			t.Errorf("%v: class %d, want %d", tc.p, got, tc.want)
		}
	}
}

// TestClassWriter wants the probability of the class that is named, wherever it is among them, or those of all.
func TestClassWriter(t *testing.T) {
	class := &dataset.Column{Name: "c", Kind: dataset.Discrete, Categories: 3, Labels: []string{"red", "green", "blue"}}
	for all, want := range map[bool][]string{
		false: {"red,0.5", "green,0.75", "blue,0.625", ",NaN"},
		true:  {"red,0.5,0.25,0.25", "green,0.125,0.75,0.125", "blue,0.25,0.125,0.625", ",NaN,NaN,NaN"},
	} {
		var out bytes.Buffer
		w, err := newClassWriter(&out, "out.csv", class, -1, all)
		if err != nil {
			t.Fatal(err)
		}
		nan := math.NaN()
		for _, p := range [][]float64{{0.5, 0.25, 0.25}, {0.125, 0.75, 0.125}, {0.25, 0.125, 0.625}, {nan, nan, nan}} {
			if err := w.Write(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
			t.Errorf("all: %v: %q, want %q", all, got, want)
		}
	}
}
