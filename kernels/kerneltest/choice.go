package kerneltest

import (
	"hash/fnv"
	"sync"
	"testing"

	"github.com/pce-engine/pce/kernels"
)

// Choices that name no tenth.
const (
	Whole = "whole" // every case of the suite, at full depth
	Short = "short" // a tenth of the cases at the suite's own depth, always the same ones
)

// Choose returns the part of the suite that a choice names. An empty choice leaves the
// suite as it is. Any other than Whole and Short, such as the hash of a commit, names a
// tenth of the whole suite's cases: the same ones each time, and other ones for another
// choice.
func (s Suite) Choose(choice string) Suite {
	s.choice = choice
	if choice != "" && choice != Short {
		s.Depth = Full
	}
	return s
}

// share is how many cases a choice of a part takes one of.
const share = 10

// chosen reports whether a case belongs to the part that a choice names.
func chosen(choice, name string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(choice + "\x00" + name)) // a hash never fails
	sum := h.Sum64()
	return (sum^sum>>32)%share == 0 // the low bits of FNV alone depend on few bits of the text
}

// choose returns open, for a choice of a part one that skips the test of a case that
// does not belong to it. A case is the test that opens a device, and does so before it
// does anything that takes time.
func (s Suite) choose(t *testing.T) Open {
	if s.choice == "" || s.choice == Whole {
		return s.Open
	}
	var mu sync.Mutex // guards played and all
	played, all := map[string]bool{}, map[string]bool{}
	t.Cleanup(func() { // after every part
		t.Logf("%d of %d cases belong to the part that %s names", len(played), len(all), s.choice)
		if len(played) == 0 && uint64(len(all)) > 20*share {
			t.Errorf("none of %d cases was played", len(all))
		}
	})
	return func(t testing.TB) kernels.Device {
		in := chosen(s.choice, t.Name())
		mu.Lock()
		all[t.Name()] = true
		if in {
			played[t.Name()] = true
		}
		mu.Unlock()
		if !in {
			t.SkipNow()
		}
		return s.Open(t)
	}
}
