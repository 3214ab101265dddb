package circuit

import "hash/maphash"

// scopeSketch knows the scope of every node of a smooth and decomposable graph
// by its size and two sums of random numbers, one for each variable. Explicit
// sets would take memory that is quadratic in the length of a chain; the
// sketch takes 24 bytes for each node, and two of its entries are equal where
// the scopes are. They are equal by chance with a probability below 2^-78.
type scopeSketch struct {
	size   []int32     // by node: its variables
	prints [][2]uint64 // by node: for either seed, the sum of its variables' hashes
}

// sketchScopes returns the sketch of a graph whose wiring is in order, nil where
// the graph is not shown to be smooth and decomposable. unsmooth is then the
// first sum whose children differ, None if there is none before the walk ended.
// Time is linear in edges.
//
// Children of a product are taken as multisets: a variable that two of them have
// counts twice, in the product and in everything above it. So all products are
// decomposable if each node without parents counts as many variables as it
// reaches.
func sketchScopes(g *Graph) (s *scopeSketch, unsmooth, child NodeID) {
	s = &scopeSketch{size: make([]int32, len(g.Nodes)), prints: make([][2]uint64, len(g.Nodes))}
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	inner := make([]bool, len(g.Nodes)) // has parents
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for _, c := range n.Children {
			inner[c] = true
		}
		switch n.Kind {
		case Input:
			s.size[i] = 1
			for k, seed := range seeds {
				s.prints[i][k] = maphash.Comparable(seed, n.Var)
			}
		case Sum:
			first := n.Children[0]
			for _, c := range n.Children[1:] {
				if s.size[c] != s.size[first] || s.prints[c] != s.prints[first] {
					return nil, NodeID(i), c
				}
			}
			s.size[i], s.prints[i] = s.size[first], s.prints[first]
		case Product:
			size := int64(0)
			for _, c := range n.Children {
				size += int64(s.size[c])
				for k := range seeds {
					s.prints[i][k] += s.prints[c][k]
				}
			}
			if size > int64(g.NumVars) { // some variable counts twice
				return nil, None, None
			}
			s.size[i] = int32(size)
		}
	}
	w := newScopeWalk(g)
	if !w.reaches(g.Root, s.size[g.Root]) {
		return nil, None, None
	}
	for i := range g.Nodes {
		if !inner[i] && NodeID(i) != g.Root && !w.reaches(NodeID(i), s.size[i]) {
			return nil, None, None
		}
	}
	return s, None, None
}

// numbers gives equal scopes equal numbers, dense from 0.
func (s *scopeSketch) numbers() (nodes []int32, distinct int) {
	type key struct {
		size   int32
		prints [2]uint64
	}
	known := map[key]int32{}
	nodes = make([]int32, len(s.size))
	for i := range nodes {
		k := key{s.size[i], s.prints[i]}
		number, ok := known[k]
		if !ok {
			number = int32(len(known))
			known[k] = number
		}
		nodes[i] = number
	}
	return nodes, len(known)
}

// scopeWalk counts the variables below nodes.
type scopeWalk struct {
	g      *Graph
	number int32   // of the present walk, from 1
	nodes  []int32 // by node, by variable: the last walk that came there
	vars   []int32
	stack  []NodeID
	left   int // steps until walks are given up
}

// walkSteps bounds the steps of all walks as a multiple of the nodes. A walk from
// the root takes one for each node; nodes that the root cannot reach may share
// what is below them and want it walked again.
const walkSteps = 8

func newScopeWalk(g *Graph) *scopeWalk {
	last := 0
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Kind == Input { // Var of others means nothing and may be any number
			last = max(last, n.Var)
		}
	}
	return &scopeWalk{g: g, nodes: make([]int32, len(g.Nodes)), vars: make([]int32, last+1), left: walkSteps * len(g.Nodes)}
}

// reaches reports whether a node reaches n variables. It also returns false when
// the walks take too many steps.
func (w *scopeWalk) reaches(id NodeID, n int32) bool {
	w.number++
	w.nodes[id] = w.number
	w.stack = append(w.stack[:0], id)
	for len(w.stack) > 0 {
		node := &w.g.Nodes[w.stack[len(w.stack)-1]]
		w.stack = w.stack[:len(w.stack)-1]
		if w.left--; w.left < 0 {
			return false
		}
		if node.Kind == Input && w.vars[node.Var] != w.number {
			w.vars[node.Var] = w.number
			n--
		}
		for _, c := range node.Children {
			if w.nodes[c] != w.number {
				w.nodes[c] = w.number
				w.stack = append(w.stack, c)
			}
		}
	}
	return n == 0
}
