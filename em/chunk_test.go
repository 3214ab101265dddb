package em

import (
	"errors"
	"testing"
)

// TestChunks goes through lists of floats around the length of a chunk, and wants each
// float once, in order, and the first error.
func TestChunks(t *testing.T) {
	for _, n := range []int64{0, 1, chunkFloats - 1, chunkFloats, chunkFloats + 1, 3*chunkFloats + 5} {
		next, calls := int64(0), 0
		err := eachChunk(n, func(at int64, buf []float32) error {
			if at != next || len(buf) == 0 || len(buf) > chunkFloats {
				t.Errorf("%d floats: a chunk of %d at %d, want it at %d", n, len(buf), at, next)
			}
			next, calls = at+int64(len(buf)), calls+1
			return nil
		})
		if err != nil || next != n || int64(calls) != (n+chunkFloats-1)/chunkFloats {
			t.Errorf("%d floats: %d in %d chunks, %v", n, next, calls, err)
		}
	}
	stop, calls := errors.New("stop"), 0
	err := eachChunk(2*chunkFloats, func(int64, []float32) error {
		calls++
		return stop
	})
	if !errors.Is(err, stop) || calls != 1 {
		t.Errorf("after an error: %d calls, %v", calls, err)
	}
}
