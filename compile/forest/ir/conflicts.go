package ir

import (
	"maps"
	"slices"

	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/kernels/simt/fold"
)

// manyRows takes the place of the rows of a call, which are not known. They are more than splits leave out.
const manyRows = 1 << 31

// iterations returns how many a loop has of what the loops around it leave.
func iterations(l *schedule.Loop, left int) int {
	n := max(0, left-l.Skip)
	if l.Most > 0 {
		n = min(n, l.Most)
	}
	return (n + l.Step - 1) / l.Step
}

// width returns how many places loops take in a dimension of what an iteration around them leaves, 1 at least: as many as
// if the last of uneven tiles were as large as the others, so that each place has one iteration.
func width(list []*schedule.Loop, dim string, left int) int {
	most := 1
	for _, l := range list {
		if l.Dim == dim {
			most = max(most, iterations(l, left)*width(l.Body, dim, l.Step))
		} else {
			most = max(most, width(l.Body, dim, left))
		}
	}
	return most
}

// conflicts returns the names of the parallel loops whose iterations add to the same sums. What is kept of each tree has a
// place of its own.
func conflicts(f *Func) (names []string) {
	into := &fold.Buffer{Sizes: []int{manyRows}}
	if f.keeps {
		into.Sizes = append(into.Sizes, len(f.Ensemble.Trees))
	}
	var items func(list []*schedule.Loop, left map[string]int, at map[string]fold.Index) []fold.Item
	items = func(list []*schedule.Loop, left map[string]int, at map[string]fold.Index) (out []fold.Item) {
		for _, l := range list {
			n := iterations(l, left[l.Dim])
			if n == 0 { // what a split left of a tile, which is smaller: width does not count it either
				continue
			}
			inner, index := maps.Clone(left), maps.Clone(at)
			inner[l.Dim] = l.Step
			index[l.Dim] = append(slices.Clone(at[l.Dim]), fold.Term{Loop: l.Name, Stride: width(l.Body, l.Dim, l.Step)})
			body := items(l.Body, inner, index)
			if l.Innermost() {
				place := []fold.Index{index[schedule.Batch], index[schedule.Tree]}
				body = []fold.Item{{Reduce: &fold.Reduce{Into: into, At: place[:len(into.Sizes)]}}}
			}
			out = append(out, fold.Item{Loop: &fold.Loop{Name: l.Name, N: n, Parallel: l.Parallel, Body: body}})
		}
		return out
	}
	body := items(f.Nest.Loops, map[string]int{schedule.Batch: manyRows, schedule.Tree: len(f.Ensemble.Trees)}, map[string]fold.Index{})
	for _, l := range fold.Conflicts(body, into) {
		names = append(names, l.Name)
	}
	return names
}
