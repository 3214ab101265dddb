package simt

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMemo compares a memo with a map, with few different hashes, with places forgotten in between, and when turns begin again.
func TestMemo(t *testing.T) {
	for _, turn := range []uint32{0, math.MaxUint32 - 3} {
		rng := rand.New(rand.NewPCG(1, uint64(turn)))
		m, want := memo{turn: turn}, map[int32]bool{}
		hash := func(place int32) uint32 { return uint32(place) % 97 << 20 }
		for step := range 20_000 {
			place := rng.Int32N(500)
			at, ok := m.find(hash(place), func(p int32) bool { return p == place })
			if ok != want[place] || ok && at != place {
				t.Fatalf("turn %d, step %d: place %d is found as %d, %v; want %v", turn, step, place, at, ok, want[place])
			}
			if !ok {
				m.add(hash(place), place)
				want[place] = true
			}
			if rng.IntN(1000) == 0 {
				m.forget()
				clear(want)
			}
		}
		if len(m.slots) > 2048 {
			t.Errorf("turn %d: %d slots for at most 500 places", turn, len(m.slots))
		}
	}
}
