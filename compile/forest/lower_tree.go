package forest

import (
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/sliced"
)

// treeLowering lowers trees, one after the other.
type treeLowering struct {
	*lowering
	order []int32 // nodes of the tree, parents before children
	place []int32 // of each node in it: as sliced.Node names children
	stack []int32
}

// tree lowers tree i: nodes in their own order where that has parents first, or else in that of a walk.
func (l *treeLowering) tree(i int) sliced.Tree {
	t := &l.f.Trees[i]
	part := &l.parts[partOf(l.parts, i)]
	asked := part.asked[part.starts[i-part.first]:]
	inner := l.arrange(t)
	out := sliced.Tree{
		Root: l.place[0], Nodes: make([]sliced.Node, 0, inner),
		Leaves: make([]sliced.Leaf, 0, len(l.order)-inner), Values: make([]sliced.Value, 0, len(t.Values)),
	}
	for _, at := range l.order {
		n := &t.Nodes[at]
		if n.Test != forest.Leaf {
			out.Nodes = append(out.Nodes, sliced.Node{Mask: part.masks[asked[at]], Yes: l.place[n.Yes], No: l.place[n.No]})
			continue
		}
		first := int32(len(out.Values))
		for _, v := range t.Values[n.First:n.Last] {
			x := t.Weight * v.Value
			if l.m.Single {
				x = float64(float32(x))
			}
			out.Values = append(out.Values, sliced.Value{Output: v.Output, Value: x})
		}
		out.Leaves = append(out.Leaves, sliced.Leaf{First: first, Last: int32(len(out.Values)), ID: n.ID})
	}
	return out
}

// arrange sets the order and the places of the nodes that the root reaches, and returns how many are not leaves.
func (l *treeLowering) arrange(t *forest.Tree) int {
	l.order, l.place, l.stack = l.order[:0], grown(l.place, len(t.Nodes)), append(l.stack[:0], 0)
	if ordered(t) {
		for at := range t.Nodes {
			l.order = append(l.order, int32(at))
		}
	} else {
		for len(l.stack) > 0 {
			at := l.stack[len(l.stack)-1]
			l.stack = l.stack[:len(l.stack)-1]
			l.order = append(l.order, at)
			if n := &t.Nodes[at]; n.Test != forest.Leaf {
				l.stack = append(l.stack, n.No, n.Yes)
			}
		}
	}
	inner, leaves := int32(0), int32(0)
	for _, at := range l.order {
		if t.Nodes[at].Test == forest.Leaf {
			l.place[at] = ^leaves
			leaves++
		} else {
			l.place[at] = inner
			inner++
		}
	}
	return int(inner)
}

// ordered says whether the root reaches all nodes and children come after their parents.
func ordered(t *forest.Tree) bool {
	children := 0
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Test == forest.Leaf {
			continue
		}
		if int(n.Yes) <= i || int(n.No) <= i {
			return false
		}
		children += 2
	}
	return children == len(t.Nodes)-1 // a node has at most one parent, so all have one
}

func partOf(parts []testPart, tree int) int { return tree / (parts[0].last - parts[0].first) }

// grown returns n elements over the memory of s, if that is enough.
func grown(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}
