package structures

import (
	"fmt"
	"slices"
)

// Tree is a rooted tree over variables: Parent[v] is the parent of variable v,
// -1 for the root.
type Tree struct {
	Parent []int
}

// NewTree returns the tree of the n-1 undirected edges over n variables, rooted
// at its centre, the variable from which the tree is least deep (the smaller of
// two).
func NewTree(n int, edges [][2]int) (Tree, error) {
	if n < 1 || len(edges) != n-1 {
		return Tree{}, fmt.Errorf("%w: %d edges over %d variables; a tree has one edge less than variables", ErrOptions, len(edges), n)
	}
	next := make([][]int, n)
	for _, e := range edges {
		if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= n || e[0] == e[1] {
			return Tree{}, fmt.Errorf("%w: edge %v of a tree over %d variables; its ends must be different variables", ErrOptions, e, n)
		}
		next[e[0]] = append(next[e[0]], e[1])
		next[e[1]] = append(next[e[1]], e[0])
	}
	order, _ := search(next, 0)
	if len(order) != n {
		return Tree{}, fmt.Errorf("%w: %d edges join only %d of %d variables to variable 0; a tree has no cycle", ErrOptions, len(edges), len(order), n)
	}
	// The middle of a longest path is a centre: the variable last reached from
	// anywhere is one end of such a path.
	order, parent := search(next, order[n-1])
	path := []int{order[n-1]}
	for v := parent[path[0]]; v >= 0; v = parent[v] {
		path = append(path, v)
	}
	centre := min(path[(len(path)-1)/2], path[len(path)/2])
	_, parent = search(next, centre)
	return Tree{Parent: parent}, nil
}

// search walks breadth first from root: the variables in the order they are
// reached, and their parents.
func search(next [][]int, root int) (order, parent []int) {
	parent = make([]int, len(next))
	for v := range parent {
		parent[v] = -2
	}
	parent[root] = -1
	order = append(make([]int, 0, len(next)), root)
	for i := 0; i < len(order); i++ {
		for _, w := range next[order[i]] {
			if parent[w] == -2 {
				parent[w] = order[i]
				order = append(order, w)
			}
		}
	}
	return order, parent
}

// walk returns the children of each variable, ascending, and the variables with
// children before parents, or an error if t is not a tree.
func (t Tree) walk() (children [][]int, order []int, err error) {
	root := -1
	children = make([][]int, len(t.Parent))
	for v, p := range t.Parent {
		switch {
		case p == -1 && root == -1:
			root = v
		case p == -1:
			return nil, nil, fmt.Errorf("%w: variables %d and %d are both roots of the tree; give one of them a parent", ErrOptions, root, v)
		case p < 0 || p >= len(t.Parent):
			return nil, nil, fmt.Errorf("%w: variable %d has parent %d in a tree over %d variables; -1 marks the root", ErrOptions, v, p, len(t.Parent))
		default:
			children[p] = append(children[p], v)
		}
	}
	if root == -1 {
		return nil, nil, fmt.Errorf("%w: tree over %d variables without a root; give one of them parent -1", ErrOptions, len(t.Parent))
	}
	// Depth first, so that a variable is near its children.
	stack := []int{root}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		order = append(order, v)
		stack = append(stack, children[v]...)
	}
	if len(order) != len(t.Parent) {
		return nil, nil, fmt.Errorf("%w: only %d of %d variables hang from root %d; the others form a cycle", ErrOptions, len(order), len(t.Parent), root)
	}
	slices.Reverse(order)
	return children, order, nil
}

// Inner returns the number of variables that have children, counting the root
// in any case.
func (t Tree) Inner() int {
	inner, n := make([]bool, len(t.Parent)), 0
	for v, p := range t.Parent {
		if p < 0 {
			p = v
		}
		if p < len(inner) && !inner[p] {
			inner[p] = true
			n++
		}
	}
	return n
}

// Height returns the number of edges between the root and the variable farthest
// from it, or an error if t is not a tree.
func (t Tree) Height() (int, error) {
	_, order, err := t.walk()
	if err != nil {
		return 0, err
	}
	depth := make([]int, len(t.Parent))
	for _, v := range slices.Backward(order) {
		if p := t.Parent[v]; p >= 0 {
			depth[v] = depth[p] + 1
		}
	}
	return slices.Max(depth), nil
}
