package engine

import (
	"math"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// TestAsValues compares cells of each kind with what they are one by one, and wants the first
// infinite value and the first number that is not a code, wherever it is.
func TestAsValues(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	out := make([]float32, 3)
	same := func(what string, want ...float32) {
		t.Helper()
		for i, x := range want {
			if out[i] != x && (x == x || out[i] == out[i]) {
				t.Errorf("%s: %v, want %v", what, out, want)
			}
		}
	}
	narrow := dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{9, 0, 65535, 65534}}}
	if bad := asValues(&narrow, 1, out); bad != -1 {
		t.Errorf("narrow codes: row %d is infinite", bad)
	}
	same("narrow codes", 0, nan, 65534)
	wide := dataset.Cells{Codes: dataset.Codes{Wide: []uint32{9, 65535, math.MaxUint32, 1 << 24}}}
	if bad := asValues(&wide, 1, out); bad != -1 {
		t.Errorf("wide codes: row %d is infinite", bad)
	}
	same("wide codes", 65535, nan, 1<<24)
	large := []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 0, nan, float32(math.Copysign(0, -1)), math.Float32frombits(0xffc00001), 1e9}
	out = make([]float32, len(large))
	if bad := asValues(&dataset.Cells{Values: large}, 0, out); bad != -1 {
		t.Errorf("row %d of %v is infinite", bad, large)
	}
	same("values", large...)
	for _, x := range []float32{inf, -inf} {
		for i := range large {
			cells := dataset.Cells{Values: append([]float32{inf}, large...)}
			cells.Values[1+i] = x
			if bad := asValues(&cells, 1, out); bad != i {
				t.Errorf("%v at %d is found at %d", x, i, bad)
			}
		}
	}

	for n := range 20 { // whole words and what is left of them
		for i := range n {
			values := make([]float32, n)
			for k := range values {
				values[k] = []float32{1, -1, nan, math.MaxFloat32, 0, math.SmallestNonzeroFloat32}[(i+k)%6]
			}
			if hasInfinite(values) {
				t.Errorf("%v has an infinite value", values)
			}
			values[i] = -inf
			if !hasInfinite(values) {
				t.Errorf("%v has no infinite value", values)
			}
		}
	}

	for _, c := range []struct {
		code uint16
		bad  bool
	}{{0, false}, {3, false}, {4, true}, {65534, true}, {65535, false}} {
		for i := range 3 {
			cells := dataset.Cells{Codes: dataset.Codes{Narrow: []uint16{7, 1, 2, 65535}}}
			cells.Codes.Narrow[1+i] = c.code
			values := make([]float32, 3)
			asValues(&cells, 1, values)
			if bad := notCode(&cells, 1, values, 4); (bad == i) != c.bad || bad != i && bad != -1 {
				t.Errorf("code %d at %d of four: found at %d", c.code, i, bad)
			}
		}
	}
	for _, c := range []struct {
		value float32
		bad   bool
	}{{0, false}, {3, false}, {nan, false}, {4, true}, {-1, true}, {0.5, true}, {3e9, true}} {
		cells := dataset.Cells{Values: []float32{1, c.value}}
		if bad := notCode(&cells, 0, cells.Values, 4); (bad == 1) != c.bad {
			t.Errorf("value %v of four codes: found at %d", c.value, bad)
		}
	}
}
