package structures

import (
	"fmt"
	"math/rand/v2"
)

// GridTree returns a random spanning tree of the h×w grid, rooted at its centre.
// Variable y·w + x is the cell in row y and column x.
func GridTree(h, w int, seed uint64) (Tree, error) {
	if h < 1 || w < 1 || h > maxNodes/w {
		return Tree{}, fmt.Errorf("%w: grid of %d×%d variables; choose 1 to %d variables", ErrOptions, h, w, maxNodes)
	}
	var edges [][2]int
	for y := range h {
		for x := range w {
			if x+1 < w {
				edges = append(edges, [2]int{y*w + x, y*w + x + 1})
			}
			if y+1 < h {
				edges = append(edges, [2]int{y*w + x, y*w + x + w})
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0x67726964))
	rng.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	group := make([]int, h*w) // parents of a forest whose trees are connected groups
	for v := range group {
		group[v] = v
	}
	find := func(v int) int {
		for group[v] != v {
			group[v] = group[group[v]]
			v = group[v]
		}
		return v
	}
	tree := edges[:0]
	for _, e := range edges {
		if a, b := find(e[0]), find(e[1]); a != b {
			group[a] = b
			tree = append(tree, e)
		}
	}
	return NewTree(h*w, tree)
}

// RandomTreeInner returns a random tree over n variables of which exactly inner
// have children, rooted at its centre: a random Prüfer sequence in which just
// the inner variables appear.
func RandomTreeInner(n, inner int, seed uint64) (Tree, error) {
	if n < 1 || n > maxNodes {
		return Tree{}, fmt.Errorf("%w: tree over %d variables; choose 1 to %d", ErrOptions, n, maxNodes)
	}
	if most := max(n-2, 1); inner < 1 || inner > most {
		return Tree{}, fmt.Errorf("%w: tree over %d variables of which %d are inner; choose 1 to %d", ErrOptions, n, inner, most)
	}
	if n <= 2 {
		return NewTree(n, [][2]int{{0, n - 1}}[:n-1])
	}
	rng := rand.New(rand.NewPCG(seed, 0x74726565))
	chosen := rng.Perm(n)[:inner]
	seq := append(make([]int, 0, n-2), chosen...)
	for len(seq) < n-2 {
		seq = append(seq, chosen[rng.IntN(inner)])
	}
	rng.Shuffle(len(seq), func(i, j int) { seq[i], seq[j] = seq[j], seq[i] })
	return NewTree(n, decodePruefer(n, seq))
}

// decodePruefer returns the edges of the tree over n ≥ 2 variables whose Prüfer
// sequence is seq: the smallest leaf goes to the next variable of the sequence.
func decodePruefer(n int, seq []int) [][2]int {
	left := make([]int, n) // edges that the variable still lacks
	for v := range left {
		left[v] = 1
	}
	for _, v := range seq {
		left[v]++
	}
	edges := make([][2]int, 0, n-1)
	scan, leaf := 0, -1
	for _, v := range seq {
		if leaf < 0 {
			for left[scan] != 1 {
				scan++
			}
			leaf = scan
		}
		edges = append(edges, [2]int{leaf, v})
		left[leaf]--
		left[v]--
		if leaf = -1; left[v] == 1 && v < scan {
			leaf = v
		}
	}
	var last []int
	for v, d := range left {
		if d == 1 {
			last = append(last, v)
		}
	}
	return append(edges, [2]int{last[0], last[1]})
}
