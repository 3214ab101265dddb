package run

import (
	"math"
	"slices"
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
