package schedule

import (
	"fmt"
	"slices"
)

// mark notes a verb about a loop, and returns why it is illegal there.
func (a *applier) mark(l *Loop, v Verb) string {
	if slices.ContainsFunc(l.Marks(), func(m string) bool { return m == v.Name || len(m) > len(v.Name) && m[:len(v.Name)+1] == v.Name+" " }) {
		return "it is said already; say it once"
	}
	innermost := func() string {
		if !l.Innermost() {
			return fmt.Sprintf("%s has loops within it; %s wants an innermost loop", l.Name, v.Name)
		}
		return ""
	}
	trees := func() string {
		if l.Dim != Tree {
			return fmt.Sprintf("%s goes over rows, whose sums are apart; %s wants a loop over trees", l.Name, v.Name)
		}
		return ""
	}
	switch v.Name {
	case "unroll":
		if l.Dim == Batch && !a.known(l) {
			return fmt.Sprintf("how many iterations %s has depends on the rows of a call; tile the batch first", l.Name)
		}
		l.Unroll = true
	case "specialize":
		if l.Dim != Tree || l.Step > 1 {
			return fmt.Sprintf("%s goes over %s; only a loop over single trees has depths", l.Name, over(l))
		}
		l.Specialize = true
	case "gpuDimension":
		l.Dimension = v.Args[1]
	case "cache":
		if l.Step == 1 {
			return fmt.Sprintf("%s goes over single %s; cache wants a loop over tiles", l.Name, over(l))
		}
		l.Cache = true
	case "parallel":
		l.Parallel = true
	case "interleave":
		l.Interleave = v.size(1)
		return innermost()
	case "unrollWalk":
		l.UnrollWalk = v.size(1)
		return innermost()
	case "peelWalk":
		l.PeelWalk = v.size(1)
		return innermost()
	case "atomicReduce":
		l.Atomic = true
		return trees()
	case "sharedReduce":
		l.Shared = true
		return trees()
	case "vectorReduce":
		l.VectorWidth = v.size(1)
		if wrong := trees(); wrong != "" {
			return wrong
		}
		return innermost()
	}
	return ""
}

// over names what a loop goes over.
func over(l *Loop) string {
	what := map[string]string{Batch: "rows", Tree: "trees"}[l.Dim]
	if l.Step > 1 {
		return fmt.Sprintf("tiles of %d %s", l.Step, what)
	}
	return what
}

// known reports whether at most how many iterations a loop has is known before there are rows.
func (a *applier) known(l *Loop) bool {
	if l.Most > 0 {
		return true
	}
	inside := false // another loop of its dimension is around it
	each(a.Loops, func(outer *Loop) {
		if outer != l && outer.Dim == l.Dim && outer.Step > 1 {
			each(outer.Body, func(x *Loop) { inside = inside || x == l })
		}
	})
	return inside
}

// check returns why the loops are illegal together.
func (n *Nest) check() string {
	if n.Represent == Sliced {
		wrong := ""
		each(n.Loops, func(l *Loop) {
			for _, m := range l.Marks() {
				if m != "parallel" && wrong == "" {
					wrong = fmt.Sprintf("represent sliced takes no steps from node to node, so %s of %s has no meaning; leave it out", m, l.Name)
				}
			}
		})
		switch {
		case wrong != "":
			return wrong
		case n.Pad || n.SortTrees || n.TileNodes > 0:
			return "represent sliced takes no steps from node to node, so pad, sortTrees and tileNodes have no meaning; leave them out"
		case len(n.Loops) != 1 || n.Loops[0].Step != 1 || len(n.Loops[0].Body) != 1 || n.Loops[0].Body[0].Step != 1 || n.Loops[0].Dim != Batch || len(n.Loops[0].Body[0].Body) > 0:
			return "represent sliced has loops of its own over blocks of rows; leave batch and tree as they are"
		}
	}
	return n.checkPath(n.Loops, nil)
}

// checkPath checks loops and what is within them, below those on the path from outside.
func (n *Nest) checkPath(list []*Loop, path []*Loop) string {
	for _, l := range list {
		if wrong := n.checkLoop(l, path); wrong != "" {
			return wrong
		}
		if wrong := n.checkPath(l.Body, append(path[:len(path):len(path)], l)); wrong != "" {
			return wrong
		}
	}
	return ""
}

// checkLoop checks a loop below others.
func (n *Nest) checkLoop(l *Loop, path []*Loop) string {
	reduces := l.Atomic || l.Shared || l.VectorWidth > 0
	switch {
	case n.Exact && reduces:
		return fmt.Sprintf("the reduction of %s adds trees in another order than the model, and the schedule is exact", l.Name)
	case l.Parallel && l.Dimension != "":
		return fmt.Sprintf("%s is parallel on threads and on %s of a card; choose one", l.Name, l.Dimension)
	case l.Dim == Tree && (l.Parallel || l.Dimension != "") && !l.Atomic && !l.Shared:
		return fmt.Sprintf("iterations of %s race on the sums of a row; mark it with atomicReduce or sharedReduce", l.Name)
	case l.Atomic && !l.Parallel && l.Dimension == "":
		return fmt.Sprintf("atomicReduce of %s, whose iterations follow each other; make it parallel first", l.Name)
	case l.Shared && (len(l.Dimension) < 5 || l.Dimension[:5] != "block"):
		return fmt.Sprintf("sharedReduce of %s, which is not over threads of a block; give it gpuDimension block.x, y or z", l.Name)
	case l.Unroll && (l.Parallel || l.Dimension != ""):
		return fmt.Sprintf("%s is unrolled and parallel; choose one", l.Name)
	case l.Unroll && l.Interleave > 0:
		return fmt.Sprintf("%s is unrolled and interleaved; choose one", l.Name)
	case l.Unroll && l.VectorWidth > 0:
		return fmt.Sprintf("%s is unrolled, so none of its iterations share sums; leave vectorReduce out", l.Name)
	case l.VectorWidth > 0 && l.Interleave > 0 && l.VectorWidth%l.Interleave != 0:
		return fmt.Sprintf("%s has %d sums and %d walks together; want a multiple", l.Name, l.VectorWidth, l.Interleave)
	}
	for _, outer := range path {
		switch {
		case l.Parallel && outer.Parallel:
			return fmt.Sprintf("%s is parallel within %s, which is parallel; choose one", l.Name, outer.Name)
		case l.Dimension != "" && l.Dimension == outer.Dimension:
			return fmt.Sprintf("%s and %s around it are both on %s", l.Name, outer.Name, l.Dimension)
		case l.Dimension != "" && l.Dimension[:4] == "grid" && outer.Dimension != "" && outer.Dimension[:4] == "bloc":
			return fmt.Sprintf("%s is on %s within %s on %s; blocks are within the grid", l.Name, l.Dimension, outer.Name, outer.Dimension)
		}
	}
	return ""
}
