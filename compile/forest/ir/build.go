package ir

import (
	"fmt"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/schedule"
)

// maxUnrolled bounds the iterations of an unrolled loop.
const maxUnrolled = 4096

// Build makes the MIR of an ensemble, which Apply has changed as the nest says. A walk that cannot be peeled as far
// as the nest says, and a loop that cannot be unrolled or specialized, is an error.
func Build(e *hir.Ensemble, n *schedule.Nest) (*Func, error) {
	f := &Func{Ensemble: e, Nest: n}
	b := &builder{f: f}
	out := &block{f: f}
	b.ensemble = out.one(Ensemble, 0)
	b.row = f.value() // %rows, an argument; in kernels the lane's row of it
	predict := out.add(Op{Kind: PredictEnsemble, Args: []Value{b.ensemble, b.row}}, 0)
	in := &block{f: f}
	if err := b.loops(in, n.Loops, scope{last: len(e.Trees), known: true, index: None}); err != nil {
		return nil, err
	}
	predict.Body = in.ops
	f.Body = out.ops
	return f, nil
}

// None is the absence of a value.
const None Value = -1

// scope is what the loops around an operation leave: trees from first to last, if known exactly these.
type scope struct {
	first, last int
	known       bool
	index       Value // of the loop over trees around it
}

type builder struct {
	f             *Func
	ensemble, row Value
}

// lanesOf reports whether a loop is the one over single rows.
func lanesOf(l *schedule.Loop) bool { return l.Dim == schedule.Batch && l.Step == 1 }

func (b *builder) loops(out *block, list []*schedule.Loop, s scope) error {
	for _, l := range list {
		if err := b.loop(out, l, s); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) loop(out *block, l *schedule.Loop, s scope) error {
	if l.Dim == schedule.Batch {
		return b.rows(out, l, s)
	}
	in := s
	in.first = min(s.first+l.Skip, s.last)
	if s.known && l.Most > 0 {
		in.last = min(in.last, in.first+l.Most)
	}
	if in.first >= in.last {
		return nil // no trees are left for it
	}
	if !s.known {
		in.first, in.last = s.first, s.last
	}
	if l.Specialize {
		return b.specialize(out, l, s, in)
	}
	return b.trees(out, l, s, in)
}

// rows makes a loop over rows: the lanes of a kernel, or one around kernels.
func (b *builder) rows(out *block, l *schedule.Loop, s scope) error {
	op := out.add(Op{Kind: For, Loop: l}, 1)
	in := &block{f: b.f}
	if l.Cache {
		in.add(Op{Kind: CacheRows, Args: op.Out, N: l.Step}, 0)
	}
	if !lanesOf(l) {
		err := b.loops(in, l.Body, s)
		op.Body = in.ops
		return err
	}
	kernel := &block{f: b.f}
	var err error
	if l.Innermost() {
		err = b.walk(kernel, l, s)
	} else {
		err = b.loops(kernel, l.Body, s)
	}
	in.add(Op{Kind: Kernel, Body: kernel.ops}, 0)
	op.Body = in.ops
	return err
}

// specialize makes a loop of its own for each run of trees of one depth.
func (b *builder) specialize(out *block, l *schedule.Loop, s, in scope) error {
	if !s.known {
		return fmt.Errorf("%w: specialize of %s: which trees it has is not known before it runs; unroll the loops over trees around it", ErrLower, l.Name)
	}
	trees := b.f.Ensemble.Trees
	for at := in.first; at < in.last; {
		end := at + 1
		for end < in.last && trees[end].Depth == trees[at].Depth && trees[end].Shallowest == trees[at].Shallowest {
			end++
		}
		run := in
		run.first, run.last = at, end
		if err := b.trees(out, l, s, run); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// trees makes a loop over trees, or its iterations if it is unrolled. s is what the loops around leave, in what the
// loop goes over.
func (b *builder) trees(out *block, l *schedule.Loop, s, in scope) error {
	if l.Unroll {
		return b.unroll(out, l, s, in)
	}
	op := out.add(Op{Kind: For, Loop: l, First: in.first, Last: in.last, Known: s.known}, 1)
	body := &block{f: b.f}
	if l.Cache {
		body.add(Op{Kind: CacheTrees, Args: op.Out, N: l.Step}, 0)
	}
	in.index = op.Out[0]
	in.known = s.known && in.last-in.first <= l.Step // it has one iteration
	var err error
	if l.Innermost() {
		err = b.walk(body, l, in)
	} else {
		err = b.loops(body, l.Body, in)
	}
	op.Body = body.ops
	return err
}

// unroll makes the iterations of a loop.
func (b *builder) unroll(out *block, l *schedule.Loop, s, in scope) error {
	if !s.known {
		return fmt.Errorf("%w: unroll of %s: which trees it has is not known before it runs; unroll the loops over trees around it", ErrLower, l.Name)
	}
	if n := (in.last - in.first + l.Step - 1) / l.Step; n > maxUnrolled {
		return fmt.Errorf("%w: unroll of %s: %d iterations, want at most %d; tile it", ErrLower, l.Name, n, maxUnrolled)
	}
	for at := in.first; at < in.last; at += l.Step {
		one := *l // of this iteration alone
		one.Skip, one.Most, one.Unroll = at-s.first, min(l.Step, in.last-at), false
		part := in
		part.first, part.last = at, at+one.Most
		if err := b.trees(out, &one, s, part); err != nil {
			return err
		}
	}
	return nil
}

// walk makes the walk of the trees of an innermost loop, one or as many as are interleaved, and adds their leaves.
func (b *builder) walk(out *block, l *schedule.Loop, s scope) error {
	width := 1
	if l.Dim == schedule.Tree && l.Interleave > 0 {
		width = l.Interleave
	}
	trees := b.f.Ensemble.Trees[s.first:s.last]
	depth, shallowest := 0, trees[0].Shallowest
	for i := range trees {
		depth, shallowest = max(depth, trees[i].Depth), min(shallowest, trees[i].Shallowest)
		if l.PeelWalk > trees[i].Shallowest {
			return fmt.Errorf("%w: peelWalk %s %d: tree %d of the model has a leaf at depth %d; peel less, or pad", ErrLower, l.Name, l.PeelWalk, trees[i].Model, trees[i].Shallowest)
		}
	}
	walk := Op{Kind: WalkDecisionTree, Unroll: max(l.UnrollWalk, 1), Peel: l.PeelWalk, Depth: depth, Shallowest: shallowest}
	for k := range width {
		walk.Args = append(walk.Args, out.one(GetTree, k, b.ensemble, s.index))
	}
	op := out.add(walk, 0)
	steps := &block{f: b.f}
	op.Next = b.steps(steps, op)
	op.Body = steps.ops
	for range op.Next {
		op.Out = append(op.Out, b.f.value())
	}
	op.Args = append(op.Args, b.row)
	for k, leaf := range op.Out {
		args := []Value{out.one(GetTreeClassID, 0, op.Args[k]), out.one(GetLeafValue, 0, op.Args[k], leaf)}
		if k > 0 { // there may be fewer trees
			args = append(args, out.one(Within, k, s.index))
		}
		out.add(Op{Kind: Reduce, Args: args}, 0)
	}
	return nil
}

// steps makes the steps of a walk from the roots to the leaves: first those without a look for leaves, then turns of
// a loop until all walks are at leaves.
func (b *builder) steps(out *block, w *Op) []Value {
	trees := w.Args
	nodes := make([]Value, len(trees))
	for i, t := range trees {
		nodes[i] = out.one(GetRoot, 0, t)
	}
	step := func(out *block, from []Value) []Value {
		to := make([]Value, len(from))
		for i, n := range from {
			to[i] = out.one(TraverseTreeTile, 0, trees[i], n, b.row)
		}
		return to
	}
	free := w.Peel
	if w.Depth == w.Shallowest && w.Unroll >= w.Depth { // every walk has as many steps
		free = w.Depth
	}
	for range free {
		nodes = step(out, nodes)
	}
	rest := w.Depth - free
	if rest == 0 {
		return nodes
	}
	unroll := min(w.Unroll, rest)
	even := w.Depth == w.Shallowest && rest%unroll == 0 // all walks end with a turn
	turn := out.add(Op{Kind: Repeat, N: (rest + unroll - 1) / unroll, Args: nodes}, 0)
	body := &block{f: b.f}
	for range nodes {
		turn.Carried = append(turn.Carried, b.f.value())
	}
	now := turn.Carried
	for k := range unroll {
		// A single walk that takes a turn is not at a leaf, unless it is the first turn and the root is one.
		sure := even || k == 0 && len(nodes) == 1 && w.Shallowest > free
		next := step(body, now)
		if !sure {
			for i := range next {
				next[i] = body.one(Choose, 0, body.one(IsLeaf, 0, trees[i], now[i]), now[i], next[i])
			}
		}
		now = next
	}
	for i := range now {
		turn.Until = append(turn.Until, body.one(IsLeaf, 0, trees[i], now[i]))
		turn.Out = append(turn.Out, b.f.value())
	}
	turn.Next, turn.Body = now, body.ops
	return turn.Out
}
