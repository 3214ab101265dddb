package main

import (
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction"
)

// TestDiffers: infinite terms explain a difference of floats from NaN or infinity, and no other.
func TestDiffers(t *testing.T) {
	floats, ints := &reduction.Tensor{Floats: []float64{1}}, &reduction.Tensor{Ints: []int64{1}}
	for _, tc := range []struct {
		by     float64
		output *reduction.Tensor
		want   string
	}{
		{math.Inf(1), floats, "where a number is infinite or NaN"},
		{0.5, floats, "by 0.5, relative"},
		{math.Inf(1), ints, "by +Inf, relative"},
	} {
		if err := differs("S", tc.by, tc.output); !strings.Contains(err.Error(), tc.want) || exitCode(err) != exitData {
			t.Errorf("%v: %v, want %s", tc.by, err, tc.want)
		}
	}
}
