package engine

import "testing"

// TestFrontier adds more partial completions than a search can extend: those of the largest bounds stay, in
// order, and what no completion exceeds is still the largest bound of all when the others have gone.
func TestFrontier(t *testing.T) {
	s := &search{left: 3, best: -1e9, rest: -1e9}
	const n = 5 * searchRoom
	for k := range n {
		s.push(&partial{open: 1, bound: -float64(k * 7919 % n)})
		if len(s.frontier) > 2*searchRoom {
			t.Fatalf("%d partial completions in a frontier for %d", len(s.frontier), searchRoom)
		}
	}
	for want := range 3 {
		if p := s.pop(); p == nil || p.bound != -float64(want) {
			t.Fatalf("%+v comes after %d others", p, want)
		}
	}
	if p := s.pop(); p != nil {
		t.Errorf("%+v comes after the last that may", p)
	}
	if got := s.upper(); got != -3 {
		t.Errorf("nothing exceeds %v, want -3", got)
	}
	if s.frontier = nil; s.upper() < -2*searchRoom || s.upper() > -searchRoom {
		t.Errorf("nothing that had no place exceeds %v", s.upper())
	}
}

// TestSearchesAtOnce keeps the partial completions of few rows where each row may have many.
func TestSearchesAtOnce(t *testing.T) {
	for _, limit := range []int{1, 200, searchRoom, 1 << 15, 1 << 20, searchMost, 1 << 30} {
		if n := searchesAtOnce(limit); n < 1 || n > 1 && n*max(limit, searchRoom) > searchMost || limit <= searchRoom && n < 256 {
			t.Errorf("%d rows at once, each with %d partial completions", n, limit)
		}
	}
}
