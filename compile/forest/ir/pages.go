package ir

import (
	"slices"

	"github.com/pce-engine/pce/compile/forest/hir"
)

// pages lays the trees out in pages of n, each as if it had all trees, so that shared memory can have one page in place of
// another: every buffer is the pages' own, one after the other and of one length. Behind the last tree come copies of it.
func pages(f *Func, n int) (*Func, error) {
	e := f.Ensemble
	var all [][]Buffer
	var first *Func
	for trees := range slices.Chunk(e.Trees, n) {
		page := *e
		page.Trees = slices.Clone(trees)
		for len(page.Trees) < n {
			page.Trees = append(page.Trees, trees[len(trees)-1])
		}
		layout, err := represent(f.Nest.Represent)
		if err != nil {
			return nil, err
		}
		buffers, err := layout.Buffers(&page)
		if err != nil {
			return nil, err
		}
		if all = append(all, buffers); first == nil {
			first = &Func{Ensemble: &page, Nest: f.Nest, layout: layout}
		}
	}
	for i, b := range all[0] {
		size := 0
		for _, buffers := range all {
			size = max(size, len(buffers[i].Bits))
		}
		joined := Buffer{Name: b.Name, Type: b.Type, Bits: make([]uint64, 0, size*len(all))}
		for p, buffers := range all {
			joined.Bits = append(joined.Bits, buffers[i].Bits...)
			for len(joined.Bits) < size*(p+1) { // where no row comes
				joined.Bits = append(joined.Bits, 0)
			}
		}
		first.buffers = append(first.buffers, joined)
	}
	return first, nil
}

// pageCount is how many pages of n trees an ensemble has.
func pageCount(e *hir.Ensemble, n int) int { return (len(e.Trees) + n - 1) / n }
