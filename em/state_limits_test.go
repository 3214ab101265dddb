package em

import (
	"math"
	"testing"
)

// TestStateOfAverages takes weights of averages up to 1 and its rounding.
func TestStateOfAverages(t *testing.T) {
	for _, tc := range []struct {
		weight float64
		ok     bool
	}{
		{0, true}, {1, true}, {1 + 0x1p-41, true}, {1 + 0x1p-40, true}, {1 + 0x1p-39, false}, {2, false}, {-0x1p-60, false}, {math.NaN(), false}, {math.Inf(1), false},
	} {
		s := newState()
		s.Averages = exact(tc.weight)
		if err := s.validate(); (err == nil) != tc.ok {
			t.Errorf("weight %v: %v, want ok: %v", tc.weight, err, tc.ok)
		}
	}
}
