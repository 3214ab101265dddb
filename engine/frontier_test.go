package engine

import (
	"testing"
	"unsafe"
)

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
	there := map[float64]bool{0: true, -1: true, -2: true}
	for _, p := range s.frontier {
		there[p.bound] = true
	}
	largest := 0.0 // of those that went
	for there[largest] {
		largest--
	}
	if s.frontier = nil; s.upper() != largest || largest > -searchRoom {
		t.Errorf("nothing that had no place exceeds %v, want %v", s.upper(), largest)
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

// TestPointRows keeps the points of few rows where each row may have many.
func TestPointRows(t *testing.T) {
	for _, points := range []int{0, 1, 300, maxSupport, maxSupport + 1, pointsLen, 1 << 24} {
		for _, rows := range []int{1, 8, 15, 512, 2048} {
			if n := pointRows(rows, points); n < 1 || n > 1 && (8*n > rows || n*points > pointsLen) || rows == 512 && points <= maxSupport && n != 64 {
				t.Errorf("%d rows of %d points at once, where a launch has %d", n, points, rows)
			}
		}
	}
	if point, partial := unsafe.Sizeof(point{}), unsafe.Sizeof(partial{}); point > pointBytes || partial+2*unsafe.Sizeof(&search{}) > partialBytes {
		t.Errorf("a point has %d bytes, a partial completion %d beside its place", point, partial)
	}
}

// TestPosteriorBytes wants the plan to hold the posteriors of any columns: those of few have rows to make up for it.
func TestPosteriorBytes(t *testing.T) {
	for _, all := range []int{1, 8, 6000, posteriorLen/2 + 1, posteriorLen, posteriorLen + 1, 1 << 24} {
		for _, rows := range []int{1, 512, 2048} {
			most := 0
			for _, some := range []int{1, 3, 1000, 1 << 20, 3 << 20, all/2 + 1, all} {
				if some <= all {
					most = max(most, some*posteriorRows(rows, some))
				}
			}
			if got := PosteriorBytes(rows, all); got < 4*int64(most) || got > 4*int64(max(all, min(rows*all, posteriorLen))) {
				t.Errorf("%d bytes planned for launches of %d rows of %d elements; some columns take %d", got, rows, all, 4*most)
			}
		}
	}
}
