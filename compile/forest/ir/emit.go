package ir

import (
	"fmt"

	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/kernels/nest"
)

// Emit makes a module for CPUs of a function of the LIR: kernels, and the loops around them. What the schedule wants of
// a card, or what a CPU has no code for, is an error.
func Emit(f *Func) (*nest.Module, error) {
	if err := onCPU(f.Nest.Loops, false); err != nil {
		return nil, err
	}
	return emit(f, false)
}

// emit makes a module of a function, for a card or a CPU.
func emit(f *Func, card bool) (*nest.Module, error) {
	e := f.Ensemble
	m := &nest.Module{Features: e.Features, Outputs: e.Outputs, Trees: len(e.Trees), Cell: cellType(e), Sum: sumType(e), Kept: f.keeps}
	h := &host{f: f, m: m, keeps: m.Kept, card: card, private: map[string]bool{}}
	if !card {
		for _, l := range conflicts(f) {
			h.private[l] = true
		}
	}
	for _, o := range f.Body {
		if o.Kind == PredictEnsemble {
			var err error
			if m.Body, err = h.items(o.Body, bounds{known: true, last: len(e.Trees), most: len(e.Trees)}); err != nil {
				return nil, err
			}
		}
	}
	return m, m.Validate()
}

// onCPU refuses what a CPU does not do. lanes says that the loops are within the one over single rows.
func onCPU(list []*schedule.Loop, lanes bool) error {
	for _, l := range list {
		why := ""
		rows := l.Dim == schedule.Batch
		switch {
		case l.Dimension != "":
			why = "gpuDimension is for cards"
		case l.Shared:
			why = "sharedReduce is for cards"
		case l.Parallel && lanes:
			why = "its iterations are within the lanes of a kernel; reorder it around the loops over rows, or make one of these parallel"
		case l.Cache && !rows:
			why = "trees lie in tables of the code, which a CPU reads ahead by itself; cache a loop over rows"
		case l.Interleave > 0 && rows:
			why = "rows are walked together as lanes already; interleave a loop over trees"
		case l.Unroll && rows:
			why = "iterations over rows are lanes of a kernel, or calls of one; unroll a loop over trees"
		}
		if why != "" {
			return fmt.Errorf("%w: for a CPU: %s of %s: %s", ErrLower, l.Marks()[0], l.Name, why)
		}
		if err := onCPU(l.Body, lanes || rows && l.Step == 1); err != nil {
			return err
		}
	}
	return nil
}

// bounds are the trees that loops leave: known, or told to the kernel, and then at most how many.
type bounds struct {
	known       bool
	first, last int
	most        int
}

// host makes the loops around kernels.
type host struct {
	f     *Func
	m     *nest.Module
	keeps bool
	count int
	card  bool
	tile  *schedule.Loop // on a card: the loop over tiles of rows around the operations at hand
	cache bool           // rows are cached there
	trees bool           // so are trees
	page  int            // trees of a tile that are there, if not all
	each  int            // trees that a thread has, whose sums are added atomically; 0: all
	// private names the loops of a CPU whose iterations have sums of their own.
	private map[string]bool
}

func (h *host) items(list []*Op, trees bounds) ([]nest.Item, error) {
	var out []nest.Item
	for _, o := range list {
		if o.Kind != For {
			continue // CacheRows is part of its loop
		}
		l := o.Loop
		it := nest.Item{Skip: l.Skip, Most: l.Most}
		in := trees
		if l.Dim == schedule.Tree {
			if o.Known { // what Specialize and Unroll left of the loop
				it.Skip, it.Most = o.First-trees.first, o.Last-o.First
				in = bounds{known: o.Last-o.First <= l.Step, first: o.First, last: o.Last}
			} else {
				in.known = false
			}
			in.most = min(trees.most, l.Step)
		}
		var err error
		if h.card && l.Dim == schedule.Batch && l.Step > 1 {
			tile, cache := h.tile, h.cache
			h.tile, h.cache = l, h.cache || l.Cache
			body, err := h.items(o.Body, trees)
			h.tile, h.cache = tile, cache
			if err != nil {
				return nil, err
			}
			out = append(out, body...)
			continue
		}
		if l.Dim == schedule.Batch && l.Step == 1 {
			it.Kernel, err = h.kernel(o, trees, o == h.f.added)
		} else {
			near, page := h.trees, h.page
			if l.Cache && l.Dim == schedule.Tree && (l.Step >= len(h.f.Ensemble.Trees) || !h.f.leaves) { // leaves are numbered among all trees
				if h.trees = true; l.Step < len(h.f.Ensemble.Trees) {
					h.page = l.Step
				}
			}
			if h.card && l.Atomic && !h.keeps { // the loop is in the grid
				h.each = l.Step
				body, err := h.items(o.Body, bounds{most: l.Step})
				h.each, h.trees, h.page = 0, near, page
				if err != nil {
					return nil, err
				}
				out = append(out, body...)
				continue
			}
			rows, own := l.Dim == schedule.Batch, h.private[l.Name]
			it.Loop = &nest.Loop{Rows: rows, Step: l.Step, Fetch: l.Cache, Private: own}
			it.Loop.Parallel = l.Parallel && (rows || own || h.keeps) // else it has one iteration
			it.Loop.Body, err = h.items(o.Body, in)
			h.trees, h.page = near, page
		}
		if err != nil {
			return nil, err
		}
		out = append(out, it)
	}
	return out, nil
}

// kernel makes a kernel of a loop over single rows.
func (h *host) kernel(o *Op, trees bounds, adds bool) (*nest.Kernel, error) {
	k := &nest.Kernel{Trees: !trees.known, Keeps: h.keeps && !adds, Adds: adds, Parallel: o.Loop.Parallel}
	if h.card {
		k.Block, k.Staged, k.Shared = blockOf(h.tile, o.Loop), h.cache, h.trees || caches(o.Body)
		if !h.keeps {
			k.Spread, k.Share = h.each, teamOf(o.Loop, max(k.Block, 1), trees.most, h.m.Outputs*h.m.Sum.Bits()/8)
		} else if team(o.Loop.Body) != nil { // a row has one thread here, for which a tile may have too few rows
			k.Block = 0
		}
	}
	f := h.f
	if h.page > 0 {
		var err error
		if f, err = pages(h.f, h.page); err != nil {
			return nil, err
		}
		k.Page, k.Pages = h.page, pageCount(h.f.Ensemble, h.page)
	}
	e := newEmitter(f, fmt.Sprintf("forest_%d", h.count), k)
	h.count++
	if err := e.kernel(o, trees); err != nil {
		return nil, err
	}
	var err error
	if k.Code, err = e.b.Module(); err != nil {
		return nil, err
	}
	return k, fits(k)
}
